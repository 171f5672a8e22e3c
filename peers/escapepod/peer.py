"""escapepod as a benchmark peer. Its bulk call (`get_signals`) decodes on a pool of its own, and the sums of one call
overlap with the decoding of the next, on Python threads. Arguments and output: ../common/python_peer.py."""

import os
import sys
import time

begin_import = time.perf_counter()
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
# its pool is made at the first call, from this
if "--threads" in sys.argv:
    os.environ["RAYON_NUM_THREADS"] = sys.argv[sys.argv.index("--threads") + 1]
from concurrent.futures import ThreadPoolExecutor  # noqa: E402

import escapepod  # noqa: E402
from python_peer import consume, consume_pa, in_list_order, main, windows  # noqa: E402

# reads a call: small enough for the caches, measured to be the fastest
CALL = 32


def rows(reader, reads, args):
    def decode(part):
        if args.mode == "pa":
            return [consume_pa(read_id, signal, args) for read_id, signal in reader.get_signals_pa(part)]
        more = [metadata(read, runs) for read in part] if args.metadata else [()] * len(part)
        signals = zip(reader.get_signals(part), more, strict=True)
        return [consume(read_id, signal, args, *of_read) for (read_id, signal), of_read in signals]

    runs = reader.run_infos if args.metadata else None
    with ThreadPoolExecutor(args.threads) as pool:
        for part in pool.map(decode, windows(reads, CALL)):
            yield from part


def metadata(read, runs):
    run = runs[read.run_info_index]
    numbers = (read.channel, read.read_number, read.well, read.start_sample)
    return (*numbers, run.acquisition_id, run.experiment_name, run.flow_cell_id, run.sequencer_position)


def seq(args):
    reader = escapepod.Reader(args.file)
    yield from rows(reader, reader.reads(), args)


def get(args):
    """It gives a read once, however often it is asked for."""
    reader = escapepod.Reader(args.file)
    for ids in windows(args.ids, args.batch):
        yield from in_list_order(ids, list(rows(reader, reader.get_reads(ids), args)))


def pa(args):
    yield from seq(args) if args.ids is None else get(args)


def get1(args):
    reader = escapepod.Reader(args.file)

    def one(read_id):
        return consume(read_id, reader.get_signal(reader.get_read(read_id)), args)

    return one


def needed_bytes(args):
    reader = escapepod.Reader(args.file)
    return sum(map(reader.byte_count, reader.get_reads(sorted(set(args.ids)))))


if __name__ == "__main__":
    main(
        "escapepod",
        begin_import,
        {"seq": seq, "get": get, "get1": get1, "pa": pa},
        flags="as published",
        needed_bytes=needed_bytes,
        extra=lambda args: {"index_was_there": os.path.exists(args.file + ".p5s")},
    )
