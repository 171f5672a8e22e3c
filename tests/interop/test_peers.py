"""The peers themselves: what they decode is right, and every arm of a comparison prints the same digest."""

import json
import sys

import pytest

from nanopore import (
    MALFORMED,
    NEWER_VERSION,
    REPOSITORY,
    UNRELEASED_CODING,
    expected_rows,
    file_digest,
    readable,
    run,
)

PYTHON_PEER = REPOSITORY / "peers/pyslow5/peer.py"


@pytest.mark.parametrize("mode", ["seq", "mt"])
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
            (peer, "mt", file),
            (peer, "get", file, "--ids", ids, "--batch", 3),
            (peer, "get1", file, "--ids", ids),
            (sys.executable, PYTHON_PEER, "seq", file),
            (sys.executable, PYTHON_PEER, "get", file, "--ids", ids, "--batch", 3),
        )
    ]
    assert [r["workload"] for r in results] == [
        "slow5lib-forkjoin",
        "slow5lib-mt",
        "slow5lib-get",
        "slow5lib-get1",
        "pyslow5-seq",
        "pyslow5-get",
    ]
    for result in results:
        assert result["digest"] == file_digest(rows)
        assert result["reads"] == len(rows)
        assert result["samples"] == sum(int(row.split("\t")[1]) for row in rows)
        assert result["sum"] == sum(int(row.split("\t")[2]) for row in rows)
        assert result["open_to_last_s"] > 0
        assert sum(stage["exposed_s"] for stage in result["stages"].values()) <= result["open_to_last_s"]


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


def test_the_build_says_what_it_is(peer, shared):
    build = json.loads(run(peer, "seq", shared / "blow5/example3.blow5").stdout)["build"]
    assert "-O3" in build["flags"]
    assert build["zstd_source"].endswith(f"zstd.{build['zstd']}")


@pytest.mark.parametrize("mode", ["seq", "mt"])
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
