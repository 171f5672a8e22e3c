"""Reads and events divided among processes, and objects that are sent to them."""

import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import thalweg
from thalweg._parts import blocks


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_parts_make_the_whole(files, size):
    reads = thalweg.open(files / "reads.pod5")
    parts = [reads.part(rank, size) for rank in range(size)]
    assert [read.id for part in parts for read in part] == reads.ids
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    events = thalweg.open(files / "run.nxs").events
    parts = [events.read(part=(rank, size)) for rank in range(size)]
    for number, whole in enumerate(events.read()):
        for name in ["event_id", "pulse", "pulse_time"]:
            joined = np.concatenate([getattr(part[number], name) for part in parts])
            assert np.array_equal(joined, getattr(whole, name)), (size, name)
    with pytest.raises(ValueError, match="expected a number"):
        reads.part(size, size)
    with pytest.raises(ValueError, match="expected a number"):
        events.read(part=(size, size))


def test_some_reads_are_reads(files):
    reads = thalweg.open(files / "reads.blow5")
    long = reads.filter("samples > 50000")
    expected = [read.id for read in reads if read.samples > 50_000]
    assert long.ids == [read.id for read in long] == expected and len(long) == len(expected) > 3
    assert long[expected[1]].id == expected[1]
    assert [read.id for read in long.get(expected[::-2])] == expected[::-2]
    other = next(read_id for read_id in reads.ids if read_id not in expected)
    for wrong in [lambda: long[other], lambda: list(long.get([other])), lambda: long.filter(ids=[other])]:
        with pytest.raises(KeyError, match=other):
            wrong()
    chosen = reads.filter(ids=[expected[2], other, expected[0], other])
    assert chosen.ids == [expected[2], other, expected[0]]
    assert chosen.filter("samples > 50000").ids == [i for i in reads.ids if i in (expected[0], expected[2])]
    assert chosen.part(1, 3).ids == [other] and chosen.to_table(columns=["read_id"]).num_rows == 3
    with pytest.raises(KeyError, match="not found"):
        reads.filter(ids=["none"])
    assert reads.filter(ids=["none", other], missing_ok=True).ids == [other]
    assert reads.filter() is reads


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("shards", [1, 3, 50])
def test_readers_share_blocks(seed, shards):
    ids = [str(number) for number in range(1003)]
    parts = [blocks(ids, 64, shard, shards, seed) for shard in range(shards)]
    assert sorted((i for part in parts for block in part for i in block), key=int) == ids
    for block in (block for part in parts for block in part):
        numbers = sorted(map(int, block))
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) and numbers[0] % 64 == 0
    if seed is None:
        assert [i for block in parts[0] for i in block][:64] == ids[:64]
    else:
        assert parts == [blocks(ids, 64, shard, shards, seed) for shard in range(shards)]
        assert parts != [blocks(ids, 64, shard, shards, seed + 1) for shard in range(shards)]


def total(reads):
    return sum(int(read.signal.sum(dtype="i8")) for read in reads)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_reads_are_sent_to_processes(files, method):
    reads = thalweg.open(files / "reads.blow5")
    expected = total(reads)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert sum(pool.map(total, [reads.part(rank, 4) for rank in range(4)])) == expected


def test_a_fork_reads_what_its_parent_has_open(files):
    reads = thalweg.open(files / "reads.pod5")
    expected = total(reads)
    child = os.fork()
    if child == 0:
        os._exit(0 if total(reads) == expected else 1)
    assert total(reads) == expected
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


FORKED = """
import os, sys
import pyarrow
import thalweg

stream = thalweg.open(sys.argv[1], memory="1MB").batches()
batches = iter(stream)
lent = [next(batches), next(batches)]
arrow = pyarrow.RecordBatchReader.from_stream(thalweg.open(sys.argv[1], memory="1MB").batches())
arrow.read_next_batch()
child = os.fork()
if child == 0:
    for rest in (batches, arrow):
        try:
            list(rest)
        except Exception as error:
            assert "forked" in str(error), error
        else:
            raise AssertionError("a process without the run's threads has batches")
    rows = sum(map(len, lent))
    stream.close()
    del stream, batches, lent, arrow, rest
    assert len(thalweg.open(sys.argv[1])) >= rows
else:
    assert list(batches) and list(arrow)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_stream_that_was_begun_is_an_error_in_a_fork(files, tmp_path):
    script = tmp_path / "forked.py"
    script.write_text(FORKED)
    for _ in range(10):
        command = [sys.executable, script, files / "reads.blow5"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")


def test_pickled_reads_are_opened_again(files, tmp_path, monkeypatch):
    reads = thalweg.open(files / "reads.pod5", threads=1).filter("samples > 50000")
    again = pickle.loads(pickle.dumps(reads))
    assert again.ids == reads.ids and total(again) == total(reads)
    monkeypatch.chdir(files)
    sent = pickle.dumps(thalweg.open("reads.pod5"))
    monkeypatch.chdir(tmp_path)
    assert pickle.loads(sent).paths == [files / "reads.pod5"]


RANK = """
import sys
import numpy
import thalweg
from mpi4py import MPI

comm = MPI.COMM_WORLD
reads = thalweg.open(sys.argv[1]).part(comm.rank, comm.size)
events = thalweg.open(sys.argv[2]).events.read(part=(comm.rank, comm.size))
own = (
    len(reads),
    sum(int(read.signal.sum(dtype="i8")) for read in reads),
    sum(int(bank.event_id.sum(dtype="i8")) for bank in events),
)
sums = comm.gather(own, root=0)
if comm.rank == 0:
    print(*numpy.sum(sums, axis=0), sum(count > 0 for count, *_ in sums))
"""


def test_ranks_of_mpi_share_reads_and_events(files, tmp_path):
    pytest.importorskip("mpi4py")
    mpiexec = Path(sys.executable).parent / "mpiexec"
    (tmp_path / "rank.py").write_text(RANK)
    ranks = [mpiexec, "-n", "3", sys.executable, tmp_path / "rank.py", files / "reads.blow5", files / "run.nxs"]
    done = subprocess.run(list(map(str, ranks)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    reads = thalweg.open(files / "reads.blow5")
    events = thalweg.open(files / "run.nxs").events.read()
    ids = sum(int(bank.event_id.sum(dtype="i8")) for bank in events)
    assert done.stdout.split() == [str(len(reads)), str(total(reads)), str(ids), "3"]
