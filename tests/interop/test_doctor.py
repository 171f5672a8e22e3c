"""`thalweg doctor`: what is slow about a file, and what mending it gains."""

import json
import shlex

import h5py
import numpy as np
import pytest

from nanopore import SHARED
from test_repack import live


def doctor(thalweg, *arguments):
    return json.loads(thalweg("doctor", *arguments, "--json").stdout)


@pytest.fixture
def scattered(tmp_path):
    return live(tmp_path / "live file.h5", banks=20, chunk=512, rounds=60)


def test_a_live_file_is_scattered_and_its_mending_is_not(thalweg, scattered, tmp_path):
    found = doctor(thalweg, scattered, "--model", "hdd")
    with h5py.File(scattered) as file:
        chunks = sum(file[f"entry/bank{b}_events/{n}"].id.get_num_chunks() for b in range(20) for n in ("event_id", "event_time_offset"))
        bytes = sum(file[f"entry/bank{b}_events/{n}"].nbytes for b in range(20) for n in ("event_id", "event_time_offset"))
    assert (found["chunks"], found["bytes"], found["libhdf5"]["requests"]) == (chunks, bytes, chunks)
    assert found["in_order"] < 0.5 and found["small_share"] == 1
    first = found["findings"][0]
    assert first["kind"] == "scattered" and first["libhdf5"]["total_s"] < found["libhdf5"]["total_s"] / 3
    words = shlex.split(first["command"])
    assert words[:4] == ["thalweg", "convert", "--repack", str(scattered)]
    thalweg(*words[1:])
    mended = doctor(thalweg, words[4], "--model", "hdd")
    assert "scattered" not in [finding["kind"] for finding in mended["findings"]]
    # As it was promised, but for indexes between the chunks.
    assert mended["libhdf5"]["store_s"] <= 1.3 * first["libhdf5"]["store_s"] + 0.1


def test_requests_are_those_of_a_read(thalweg, scattered):
    for throttle in ([], ["--throttle", "bandwidth=150MB/s,requests=2000/s"]):
        planned = doctor(thalweg, scattered, *throttle)
        read = json.loads(thalweg("read", scattered, "--json", *throttle).stdout)
        assert planned["bytes"] == read["bytes_decoded"]
        assert planned["thalweg"]["requests"] == read["requests"]


def test_the_prediction_is_what_the_limits_allow_and_no_read_is_faster(thalweg, scattered):
    found = doctor(thalweg, scattered, "--measure", "--throttle", "bandwidth=3MB/s,latency=2ms,requests=500/s")
    predicted = found["thalweg"]
    allowed = max(predicted["bytes"] / 3e6, predicted["requests"] / 500)
    assert found["throttled"] and allowed <= predicted["store_s"] < 1.25 * allowed, found
    # How much longer it takes depends on what else the machine does; docs/doctor.md has figures.
    assert found["measured_s"] >= allowed, found


def test_assumed_limits_give_a_range(thalweg, scattered):
    found = doctor(thalweg, scattered, "--model", "hdd")
    least, most = found["thalweg"]["range_s"]
    assert found["model_assumed"] and least < found["thalweg"]["total_s"] < most
    assert "is assumed" in thalweg("doctor", scattered, "--model", "hdd").stdout
    held = doctor(thalweg, scattered, "--throttle", "bandwidth=3MB/s,latency=2ms,requests=500/s")
    assert not held["model_assumed"] and held["thalweg"]["range_s"] is None


def test_limits_are_a_model(thalweg, scattered):
    """The same store, held back or only thought of, gives the same prediction."""
    limits = "bandwidth=20MB/s,latency=3ms,requests=100/s,parallel=4"
    asked, held = doctor(thalweg, scattered, "--model", limits), doctor(thalweg, scattered, "--throttle", limits)
    assert not asked["model_assumed"] and asked["model_origin"] == "as --model says"
    for name in ("latency_s", "bandwidth", "request_rate"):
        assert asked["model"][name] == held["model"][name], name
    assert asked["libhdf5"]["store_s"] == held["libhdf5"]["store_s"] > asked["chunks"] * 0.009
    for wrong in ("bandwidth=fast", "speed=3"):
        result = thalweg("doctor", scattered, "--model", wrong, check=False)
        assert result.returncode == 2 and "expected" in result.stderr


def test_longer_chunks_take_more_room(thalweg, tmp_path):
    path, out = tmp_path / "short.h5", tmp_path / "out.h5"
    with h5py.File(path, "w") as file:
        for name in "ab":
            file.create_dataset(name, (1_100_000,), "u4", chunks=(1024,), maxshape=(None,))
        for at in range(0, 1_100_000, 1024):
            for name in "ab":
                end = min(at + 1024, 1_100_000)
                file[name][at:end] = np.arange(at, end)
    first = doctor(thalweg, path)["findings"][0]
    report = json.loads(thalweg("convert", "--repack", path, out, "--chunk", "1Mi", "--json").stdout)
    assert first["bytes_stored"] == doctor(thalweg, out)["bytes_stored"] == 4 << 22
    assert report["bytes_filling"] == (4 << 22) - 2 * 4 * 1_100_000
    assert "the last chunk of each dataset is stored whole" in thalweg("doctor", path).stdout
    assert "to fill up last chunks" in thalweg("convert", "--repack", path, out, "--chunk", "1Mi", "--force").stderr


def test_compression_that_does_not_pay(thalweg, tmp_path):
    path = tmp_path / "gzip.h5"
    with h5py.File(path, "w") as file:
        noise = np.random.default_rng(1).integers(0, 1 << 20, 8 << 20)
        file.create_dataset("d", data=noise.astype("u4"), chunks=(2 << 20,), compression="gzip", compression_opts=1)
    found = doctor(thalweg, path, "--model", "nvme")
    kinds = [finding["kind"] for finding in found["findings"]]
    assert "slow_filter" in kinds and "large_chunks" in kinds
    assert "--filter" in found["findings"][kinds.index("slow_filter")]["command"]
    assert "slow_filter" not in [finding["kind"] for finding in doctor(thalweg, path, "--model", "hdd")["findings"]]


def test_paths_words_and_usage(thalweg, scattered, tmp_path):
    few = doctor(thalweg, scattered, "/entry/bank3_events")
    assert [row["path"] for row in few["datasets"]] and len(few["datasets"]) == 2
    words = thalweg("doctor", scattered).stdout
    for word in ("in order", "libhdf5", "thalweg convert --repack", "predicted"):
        assert word in words
    assert thalweg("doctor", scattered, "--model", "tape", check=False).returncode == 2
    assert thalweg("doctor", scattered, "--model", "hdd", "--measure", check=False).returncode == 2
    assert thalweg("doctor", tmp_path / "none.h5", check=False).returncode == 1
    with h5py.File(tmp_path / "good.h5", "w") as file:
        file["d"] = np.arange(1 << 20)
    assert doctor(thalweg, tmp_path / "good.h5")["findings"] == []


def test_files_of_reads(thalweg, writable):
    text = next(f"slow5/{path.name}" for path in sorted((SHARED / "slow5").glob("*.slow5")))
    found = doctor(thalweg, writable(text))
    assert found["schema"] == "thalweg.doctor/1" and found["thalweg"]["requests"] > 0
    assert "no_index" in [finding["kind"] for finding in found["findings"]]
