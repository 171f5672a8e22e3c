"""The peers themselves: what they decode is right, and every arm of a comparison prints the same digest."""

import json
import os
import pathlib
import sys

import pytest

from nanopore import (
    FAST5,
    MALFORMED,
    NEWER_VERSION,
    OLD_POD5,
    REPOSITORY,
    UNRELEASED_CODING,
    expected_rows,
    file_digest,
    pod5_files,
    readable,
    run,
)

PYTHON_PEER = REPOSITORY / "peers/pyslow5/peer.py"
POD5_PYTHON_PEER = REPOSITORY / "peers/pod5_python/peer.py"
ESCAPEPOD_PEER = REPOSITORY / "peers/escapepod/peer.py"
FAST5_PEER = REPOSITORY / "peers/fast5/peer.py"


@pytest.mark.parametrize("mode", ["seq", "pool", "mt"])
@pytest.mark.parametrize("name", readable())
def test_slow5lib_delivers_the_expected_samples(peer, shared, name, mode):
    # a batch smaller than the file: several batches, and the end of the file inside one or right after one
    rows = run(peer, mode, shared / name, "--threads", 2, "--batch", 2, "--digest").stdout.splitlines()
    assert rows == expected_rows(shared, name)


@pytest.mark.parametrize("name", ["blow5/example3.blow5", "slow5/example.slow5"])
def test_all_arms_agree(peer, writable, shared, tmp_path, name):
    file = writable(name)
    rows = expected_rows(shared, name)
    ids = tmp_path / "ids"
    ids.write_text("".join(row.split("\t")[0] + "\n" for row in reversed(rows)))
    results = [
        json.loads(run(*command).stdout)
        for command in (
            (peer, "seq", file),
            (peer, "pool", file),
            (peer, "mt", file),
            (peer, "get", file, "--ids", ids, "--batch", 3),
            (peer, "get1", file, "--ids", ids),
            (sys.executable, PYTHON_PEER, "seq", file),
            (sys.executable, PYTHON_PEER, "get", file, "--ids", ids, "--batch", 3),
            (sys.executable, PYTHON_PEER, "get1", file, "--ids", ids),
        )
    ]
    assert [r["workload"] for r in results] == [
        "slow5lib-forkjoin",
        "slow5lib-pool",
        "slow5lib-mt",
        "slow5lib-get",
        "slow5lib-get1",
        "pyslow5-seq",
        "pyslow5-get",
        "pyslow5-get1",
    ]
    for result in results:
        assert result["digest"] == file_digest(rows)
        assert result["reads"] == len(rows)
        assert result["samples"] == sum(int(row.split("\t")[1]) for row in rows)
        assert result["sum"] == sum(int(row.split("\t")[2]) for row in rows)
        assert result["open_to_last_s"] > 0
        assert sum(stage["exposed_s"] for stage in result["stages"].values()) <= result["open_to_last_s"]


def test_arms_in_picoampere_agree(peer, pod5_peer, thalweg_binary, writable, shared, tmp_path):
    files = {"blow5/example3.blow5": [peer, PYTHON_PEER], "pod5/trna_reads.pod5": [pod5_peer, POD5_PYTHON_PEER, ESCAPEPOD_PEER]}
    for name, arms in files.items():
        file, rows = writable(name), expected_rows(shared, name)
        ids = tmp_path / "ids"
        ids.write_text("".join(row.split("\t")[0] + "\n" for row in rows[::-1]))
        expected = file_digest(["\t".join([row.split("\t")[0], *[row.split("\t")[1]] * 2]) for row in rows])
        commands = [("seq", file, "--pa"), ("get", file, "--ids", ids, "--pa")]
        commands += [("pool", file, "--pa")] if arms[0] == peer else []
        commands = [(arms[0], *rest) for rest in commands]
        for arm in arms[1:]:
            commands += [(sys.executable, arm, "pa", file), (sys.executable, arm, "pa", file, "--ids", ids)]
        for command in commands:
            result = json.loads(run(*command, "--threads", 2, "--batch", 3).stdout)
            assert (result["digest"], result["reads"]) == (expected, len(rows)), command
        report = json.loads(run(thalweg_binary, "read", file, "--pa", "--json").stdout)
        assert report["digest"] == expected


def test_arms_take_the_same_metadata(peer, pod5_peer, thalweg_binary, shared):
    files = {"pod5/trna_reads.pod5": pod5_peer, "pod5/b1.pod5": pod5_peer, "blow5/example3.blow5": peer}
    for name, arm in files.items():
        file = shared / name
        commands = [(arm, "seq", file), (thalweg_binary, "read", file, "--json")]
        if arm == peer:
            commands += [(peer, "pool", file), (peer, "mt", file), (sys.executable, PYTHON_PEER, "seq", file)]
        else:
            commands += [(sys.executable, one, "seq", file) for one in (POD5_PYTHON_PEER, ESCAPEPOD_PEER)]
        digests = {json.loads(run(*command, "--metadata").stdout)["digest"] for command in commands}
        assert len(digests) == 1 and file_digest(expected_rows(shared, name)) not in digests, name


def test_ids_are_delivered_in_list_order_repeats_included(peer, writable, shared, tmp_path):
    file = writable("blow5/example3.blow5")
    wanted = [row for row in expected_rows(shared, "blow5/example3.blow5")[::-1] for _ in range(2)]
    ids = tmp_path / "ids"
    ids.write_text("\n".join(row.split("\t")[0] for row in wanted))
    for command in (
        (peer, "get", file, "--ids", ids, "--batch", 3, "--digest"),
        (peer, "get1", file, "--ids", ids, "--digest"),
        (sys.executable, PYTHON_PEER, "get", file, "--ids", ids, "--batch", 3, "--digest"),
    ):
        assert run(*command).stdout.splitlines() == wanted


def test_an_index_made_on_the_way_is_admitted(peer, shared, tmp_path):
    file = tmp_path / "reads.blow5"
    file.write_bytes((shared / "blow5/example3.blow5").read_bytes())
    ids = tmp_path / "ids"
    ids.write_text(expected_rows(shared, "blow5/example3.blow5")[0].split("\t")[0])
    first, second = (json.loads(run(peer, "get", file, "--ids", ids).stdout) for _ in range(2))
    assert (first["index_was_there"], second["index_was_there"]) == (False, True)


def test_the_bytes_needed_by_id_are_those_of_the_records(peer, writable, shared, tmp_path):
    file = writable("blow5/example3.blow5")
    names = [row.split("\t")[0] for row in expected_rows(shared, "blow5/example3.blow5")]

    def needed(*wanted):
        ids = tmp_path / "ids"
        ids.write_text("\n".join(wanted))
        return json.loads(run(peer, "get", file, "--ids", ids).stdout)["needed_bytes"]

    assert needed(names[0], names[3], names[0]) == needed(names[0]) + needed(names[3])
    # SLOW5 specification, "BLOW5 header": a u32 at 64 is the length of the text that follows; 5 bytes end the file
    header = 68 + int.from_bytes(file.read_bytes()[64:68], "little")
    assert needed(*names) == file.stat().st_size - header - 5


def test_the_build_reports_its_features(peer, shared):
    build = json.loads(run(peer, "seq", shared / "blow5/example3.blow5").stdout)["build"]
    assert "-O3" in build["flags"]
    assert build["zstd_source"].endswith(f"zstd.{build['zstd']}")


@pytest.mark.parametrize("mode", ["seq", "pool", "mt"])
@pytest.mark.parametrize("name", [*MALFORMED, NEWER_VERSION, UNRELEASED_CODING])
def test_a_failure_is_a_failure(peer, shared, name, mode):
    done = run(peer, mode, shared / name, check=False)
    assert done.returncode == 1
    assert done.stdout == ""


def test_an_unknown_read_is_a_failure(peer, writable, tmp_path):
    ids = tmp_path / "ids"
    ids.write_text("no-such-read\n")
    for mode in ("get", "get1"):
        done = run(peer, mode, writable("blow5/example3.blow5"), "--ids", ids, check=False)
        assert done.returncode == 1
        assert "no-such-read" in done.stderr


@pytest.mark.parametrize("reader", [["cat_peer"], ["raw_peer", "--block", 65536, "--depth", 3]])
def test_plain_readers_read_the_whole_file(shared, reader):
    file = shared / "blow5/z1.blow5"
    result = json.loads(run(REPOSITORY / "target/peers" / reader[0], file, *reader[1:]).stdout)
    assert result["bytes"] == file.stat().st_size


def pod5_arms(pod5_peer, name):
    """The programs that read a POD5 file, and what the name of their workload begins with."""
    arms = [((pod5_peer,), "pod5-c"), ((sys.executable, POD5_PYTHON_PEER), "pod5")]
    return arms if name in OLD_POD5 else [*arms, ((sys.executable, ESCAPEPOD_PEER), "escapepod")]


@pytest.mark.parametrize("name", pod5_files())
def test_pod5_arms_deliver_the_expected_samples(pod5_peer, shared, name):
    for arm, _ in pod5_arms(pod5_peer, name):
        rows = run(*arm, "seq", shared / name, "--threads", 2, "--digest").stdout.splitlines()
        assert rows == expected_rows(shared, name)
    unmapped = {**os.environ, "POD5_DISABLE_MMAP_OPEN": "1"}
    rows = run(pod5_peer, "seq", shared / name, "--digest", env=unmapped).stdout.splitlines()
    assert rows == expected_rows(shared, name)


@pytest.mark.parametrize("name", FAST5)
def test_h5py_delivers_the_expected_samples(shared, name):
    rows = run(sys.executable, FAST5_PEER, "seq", shared / name, "--threads", 2, "--digest").stdout.splitlines()
    assert sorted(rows) == sorted(expected_rows(shared, FAST5[name]))


def check_arms(arms, file, rows, tmp_path):
    """Every way of an arm to read the reads of `rows` prints the same digest; by id, in list order, repeats included."""
    wanted = [row for row in reversed(rows) for _ in range(2)]
    ids = tmp_path / "ids"
    ids.write_text("".join(row.split("\t")[0] + "\n" for row in wanted))
    needed = set()
    for arm, name in arms:
        for mode, expected in (("seq", rows), ("get", wanted), ("get1", wanted)):
            by_id = () if mode == "seq" else ("--ids", ids)
            result = json.loads(run(*arm, mode, file, *by_id, "--threads", 2, "--batch", 3).stdout)
            assert result["workload"] == f"{name}-{mode}"
            assert result["digest"] == file_digest(expected)
            assert result["reads"] == len(expected)
            assert result["samples"] == sum(int(row.split("\t")[1]) for row in expected)
            assert result["sum"] == sum(int(row.split("\t")[2]) for row in expected)
            assert result["open_to_last_s"] > 0
            if by_id:
                assert run(*arm, mode, file, *by_id, "--batch", 3, "--digest").stdout.splitlines() == expected
                needed.add(result["needed_bytes"])
            assert ("latency_us" in result) == (mode == "get1")
    # how many bytes the wanted signals take does not depend on who asks, nor on how often
    assert len(needed) == 1


def test_all_pod5_arms_agree(pod5_peer, writable, shared, tmp_path):
    name = "pod5/trna_reads.pod5"
    check_arms(pod5_arms(pod5_peer, name), writable(name), expected_rows(shared, name), tmp_path)


def test_all_ways_into_fast5_agree(writable, shared, tmp_path):
    name = "fast5/multi_fast5_vbz_v1.fast5"
    rows = expected_rows(shared, FAST5[name])
    check_arms([((sys.executable, FAST5_PEER), "h5py")], writable(name), rows, tmp_path)


def test_no_peer_skips_an_unknown_read(pod5_peer, writable, tmp_path):
    ids = tmp_path / "ids"
    ids.write_text("00000000-1111-2222-3333-444444444444\n")
    arms = [(arm, "pod5/b1.pod5") for arm, _ in pod5_arms(pod5_peer, "pod5/b1.pod5")]
    for arm, name in [*arms, ((sys.executable, FAST5_PEER), "fast5/compat_file.fast5")]:
        for mode in ("get", "get1"):
            done = run(*arm, mode, writable(name), "--ids", ids, check=False)
            assert done.returncode == 1
            assert done.stdout == ""


def test_the_c_peer_says_whether_it_maps_the_file(pod5_peer, shared):
    file = shared / "pod5/b1.pod5"
    assert json.loads(run(pod5_peer, "seq", file).stdout)["mmap"] is True
    unmapped = {**os.environ, "POD5_DISABLE_MMAP_OPEN": "1"}
    assert json.loads(run(pod5_peer, "seq", file, env=unmapped).stdout)["mmap"] is False


def test_a_damaged_pod5_is_a_failure(pod5_peer, shared, tmp_path):
    file = tmp_path / "cut.pod5"
    file.write_bytes((shared / "pod5/b1.pod5").read_bytes()[:-1000])
    for arm, _ in pod5_arms(pod5_peer, "pod5/b1.pod5"):
        done = run(*arm, "seq", file, check=False)
        assert done.returncode == 1
        assert done.stdout == ""


def tool(name):
    """A converter as suites run it."""
    return sys.executable, pathlib.Path(sys.executable).parent / name


def test_the_converters_keep_all_reads(peer, pod5_peer, shared, tmp_path):
    blow5, pod5, packed = tmp_path / "reads.blow5", tmp_path / "reads.pod5", tmp_path / "packed.pod5"
    name = "pod5/trna_reads.pod5"
    expected = file_digest(expected_rows(shared, name))
    run(*tool("blue-crab"), "p2s", shared / name, "-o", blow5, "-c", "zstd", "-s", "svb-zd", "--iop", 2, "--threads", 2)
    assert json.loads(run(peer, "seq", blow5).stdout)["digest"] == expected
    run(*tool("blue-crab"), "s2p", blow5, "-o", pod5, "--iop", 2)
    assert json.loads(run(pod5_peer, "seq", pod5).stdout)["digest"] == expected
    name = "fast5/multi_fast5_zip.fast5"
    run(*tool("pod5"), "convert", "fast5", shared / name, "--output", packed, "--threads", 2)
    digest = json.loads(run(pod5_peer, "seq", packed).stdout)["digest"]
    assert digest == file_digest(expected_rows(shared, FAST5[name]))


def test_the_loops_of_slow5tools_keep_all_reads(slow5_tools, thalweg_binary, shared, tmp_path):
    def rows(*paths):
        return run(thalweg_binary, "read", *paths, "--digest", "--index-in", "none").stdout.splitlines()

    def metadata(path):
        return int(json.loads(run(thalweg_binary, "read", path, "--metadata", "--json").stdout)["digest"], 16)

    files = [tmp_path / f"{seed}.blow5" for seed in (1, 2)]
    for seed, file in enumerate(files):
        run(thalweg_binary, "synth", file, "--samples", "500k", "--seed", seed, "--index-in", "none")
    expected = [rows(file) for file in files]
    for record, signal in [("none", "none"), ("zlib", "svb-zd"), ("zstd", "ex-zd")]:
        out = tmp_path / f"{record}.blow5"
        coding = ("--record", record, "--signal", signal, "--threads", 2, "--batch", 3)
        run(slow5_tools, "copy", *files, "-o", out, *coding)
        assert rows(out) == [row for of_file in expected for row in of_file]
        assert run(thalweg_binary, "check", out, check=False).returncode == 0
        # The run of each read is part of this digest, so that read groups are right.
        assert metadata(out) == sum(map(metadata, files)) & ((1 << 64) - 1)
        parts = tmp_path / f"{record}-parts"
        parts.mkdir()
        run(slow5_tools, "split", files[0], "-o", parts, "--reads", 3, *coding)
        assert [row for part in sorted(parts.iterdir()) for row in rows(part)] == expected[0]
        assert len(list(parts.iterdir())) == -(-len(expected[0]) // 3)
    run(slow5_tools, "index", out)
    made = out.with_name(f"{out.name}.idx")
    theirs = made.read_bytes()
    made.unlink()
    run(thalweg_binary, "index", out)
    assert made.read_bytes() == theirs
    real = [shared / "blow5" / name for name in ("example3.blow5", "sequin_rna.blow5")]
    for inputs, found in [(real, "other auxiliary fields"), ([out], "read groups")]:
        assert found in run(slow5_tools, "copy", *inputs, "-o", tmp_path / "x", check=False).stderr
    for wrong in [("copy", files[0]), ("split", files[0], "-o", tmp_path), ("copy", shared / MALFORMED[0], "-o", tmp_path / "x")]:
        assert run(slow5_tools, *wrong, check=False).returncode != 0
