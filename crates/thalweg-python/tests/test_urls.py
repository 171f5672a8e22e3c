"""Objects at URLs, served from a folder."""

import multiprocessing
import pickle
import subprocess

import numpy as np
import pyarrow
import pytest
import thalweg
from conftest import TARGET

SERVER = TARGET / "debug/object-server"


@pytest.fixture(scope="module")
def bucket(files, tmp_path_factory):
    """The folder `files` as a bucket."""
    above = tmp_path_factory.mktemp("buckets")
    (above / "lab").symlink_to(files)
    with subprocess.Popen([SERVER, above], stdout=subprocess.PIPE, text=True) as server:
        address = server.stdout.readline().split()[-1]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ENDPOINT_URL", address)
            patch.setenv("AWS_ACCESS_KEY_ID", "key")
            patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
            patch.setenv("AWS_REGION", "us-east-1")
            patch.delenv("THALWEG_CACHE", raising=False)
            yield "s3://lab"
        server.kill()


def rows(reads):
    return [(read.id, int(read.signal.sum(dtype="i8"))) for read in reads]


@pytest.mark.parametrize("name", ["reads.blow5", "reads.pod5", "reads.slow5"])
def test_reads(bucket, files, name):
    local = thalweg.open(files / name)
    remote = thalweg.open(f"{bucket}/{name}")
    assert rows(remote) == rows(local)
    ids = local.ids[::-2]
    assert rows(remote.get(ids)) == rows(local.get(ids))
    assert remote.paths == [f"{bucket}/{name}"] and next(iter(remote)).path == remote.paths[0]
    assert rows(pickle.loads(pickle.dumps(remote))) == rows(local)


def test_arrays_and_events(bucket, files):
    local = thalweg.open(files / "run.nxs")
    remote = thalweg.open(f"{bucket}/run.nxs")
    path = "/entry/bank1_events/event_id"
    assert np.array_equal(remote[path][::7], local[path][::7])
    assert pyarrow.table(remote.events.batches()) == pyarrow.table(local.events.batches())


def test_a_network(bucket, files):
    local, remote = thalweg.open(files / "network"), thalweg.open(f"{bucket}/network/")
    ours, theirs = (network.neighbors("Astrocyte", [0, 5, 7], "Synapse") for network in (remote, local))
    assert ours.offsets.tolist() == theirs.offsets.tolist() and ours.ids.tolist() == theirs.ids.tolist() != []


def test_a_missing_object(bucket):
    with pytest.raises(thalweg.NoFileError) as error:
        thalweg.open(f"{bucket}/none.pod5")
    with pytest.raises(thalweg.NotFoundError, match="s3://lab/none/: files that end in"):
        thalweg.open(f"{bucket}/none/")
    assert "s3://lab/none.pod5" in str(error.value) and isinstance(error.value, FileNotFoundError)


def kept(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_the_cache_keeps_what_was_read(bucket, files, tmp_path, monkeypatch):
    expected = rows(thalweg.open(files / "reads.blow5"))
    size = (files / "reads.blow5").stat().st_size
    named, usual = tmp_path / "named", tmp_path / "usual"
    url = f"{bucket}/reads.blow5"
    assert rows(thalweg.open(url, cache=f"1GB,free=1,folder={named}")) == expected
    assert kept(named) >= size
    monkeypatch.setenv("THALWEG_CACHE", f"1GB,free=1,folder={usual}")
    assert rows(thalweg.open(url, cache="off")) == expected
    assert not usual.exists()
    assert rows(thalweg.open(url)) == expected
    assert kept(usual) >= size


@pytest.mark.parametrize("text", ["much", "10", "1GB,what"])
def test_a_cache_that_is_no_cache(files, monkeypatch, text):
    with pytest.raises(thalweg.UsageError, match="cache: "):
        thalweg.open(files / "reads.blow5", cache=text)
    monkeypatch.setenv("THALWEG_CACHE", text)
    with pytest.raises(thalweg.UsageError, match="THALWEG_CACHE: "):
        thalweg.open(files / "reads.blow5")


def child(url, sent):
    sent.put(rows(thalweg.open(url)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_open_objects_after_this_one_has(bucket, method):
    url = f"{bucket}/reads.pod5"
    expected = rows(thalweg.open(url))
    context = multiprocessing.get_context(method)
    sent = context.Queue()
    process = context.Process(target=child, args=(url, sent))
    process.start()
    try:
        assert sent.get(timeout=60) == expected
    finally:
        process.kill()
        process.join()
