"""How runs end: when they are closed, by an interrupt, and with the program."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import thalweg


class Slow:
    """An open file that counts its reads, each of which takes a while."""

    def __init__(self, path, seconds=0.02):
        self.file = open(path, "rb")  # noqa: SIM115
        self.seconds = seconds
        self.reads = 0

    def seek(self, offset, whence=0):
        return self.file.seek(offset, whence)

    def tell(self):
        return self.file.tell()

    def read(self, size=-1):
        self.reads += 1
        time.sleep(self.seconds)
        return self.file.read(size)


def test_a_closed_stream_reads_no_more(files, command, tmp_path):
    path = tmp_path / "run.nxs"
    command("synth", path, "--kind", "nexus-live", "--size", "4MB", "--banks", "4")
    whole, file = Slow(path, 0), Slow(path)
    # No event has such a time, so that no batch comes before the end.
    selection = {"tof": (1e18, 2e18)}
    assert list(thalweg.open(whole).events.batches(**selection)) == []
    batches = thalweg.open(file).events.batches(**selection)
    before = file.reads
    batches.close()
    assert file.reads - before < whole.reads / 2


def test_an_interrupt_ends_one_run_only(files):
    reads = thalweg.open(files / "reads.blow5")
    expected = reads.ids
    others, ended = [], threading.Event()

    def go_on():
        while not ended.is_set():
            others.append([read.id for read in reads] == expected)

    other = threading.Thread(target=go_on)
    other.start()
    try:
        for _ in range(5):
            timer = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT])
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                while True:
                    for _read in reads:
                        pass
            timer.join()
    finally:
        ended.set()
        other.join()
    assert others and all(others)


class Closing(Slow):
    """A file that closes the stream that reads it."""

    stream = None

    def read(self, size=-1):
        if self.stream is not None:
            self.stream.close()
        return super().read(size)


def test_a_file_may_close_the_stream_that_reads_it(files):
    file = Closing(files / "reads.blow5", 0)
    stream = thalweg.open(file, memory="1MB").batches()
    file.stream = stream
    try:
        list(stream)
    except thalweg.Error as error:
        assert "cancelled" in str(error)


def test_a_file_that_gives_too_many_bytes_is_refused(files):
    class Many(Slow):
        def read(self, size=-1):
            return super().read(size + 1)

    with pytest.raises(thalweg.IoError, match="expected at most"):
        list(thalweg.open(Many(files / "reads.slow5", 0)))


AT_EXIT = """
import sys, time, threading, thalweg
sys.path.insert(0, sys.argv[1])
from test_runs import Slow
reads = iter(thalweg.open(Slow(sys.argv[2], 0.001), memory="1MB", threads=2))
next(reads)
"""


@pytest.mark.parametrize("suffix", ["blow5", "pod5"])
def test_the_program_may_end_while_an_open_file_is_read(files, suffix):
    arguments = [sys.executable, "-c", AT_EXIT, os.path.dirname(__file__), files / f"reads.{suffix}"]
    for _ in range(5):
        ran = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
        assert (ran.returncode, ran.stderr) == (0, "")


def test_threads_and_memory_are_checked(files):
    path = files / "reads.blow5"
    for wrong in [{"threads": 0}, {"threads": -1}, {"threads": "2"}, {"threads": 10**6}]:
        with pytest.raises(thalweg.UsageError, match=r"threads: found .*, expected a whole number from 1 to 1024"):
            thalweg.open(path, **wrong)
    for wrong in [0, -1, float("nan"), "0", "much", "", []]:
        with pytest.raises(thalweg.UsageError, match=r"memory: found .*, expected bytes above 0"):
            thalweg.open(path, memory=wrong)
    for wrong in [0, -1, float("nan"), float("inf"), "x"]:
        with pytest.raises(thalweg.UsageError, match=r"timeout: found .*, expected seconds above 0"):
            thalweg.open(path, timeout=wrong)
    assert len(thalweg.open(path, memory=64e6, threads=2, timeout=1.5)) > 0


def test_warnings_of_the_library_are_shown(files, command, tmp_path):
    path = tmp_path / "reads.pod5"
    path.write_bytes((files / "reads.pod5").read_bytes())
    command("index", path)
    index = tmp_path / "reads.pod5.idx"
    damaged = bytearray(index.read_bytes())
    damaged[-1] ^= 0xFF
    index.write_bytes(damaged)
    reads = thalweg.open(path)
    with pytest.warns(RuntimeWarning, match="reads.pod5.idx"):
        list(reads.get(thalweg.open(files / "reads.pod5").ids))
