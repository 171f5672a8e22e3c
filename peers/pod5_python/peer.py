"""pod5's Python library as a benchmark peer, in its fastest documented way: batches whose samples its own threads load
ahead (`preload`), as many as there are cores; it cannot be told how many. Arguments and output: ../common/python_peer.py.
"""

import os
import sys
import time

begin_import = time.perf_counter()
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import pod5  # noqa: E402
from python_peer import consume, consume_pa, in_list_order, main, windows  # noqa: E402


def rows(reader, args, selection=None):
    for batch in reader.read_batches(selection=selection, preload={"samples"}):
        for read in batch.reads():
            yield consume(str(read.read_id), read.signal, args, *(metadata(read) if args.metadata else ()))


def metadata(read):
    pore, run = read.pore, read.run_info
    numbers = (pore.channel, read.read_number, pore.well, read.start_sample)
    return (*numbers, run.acquisition_id, run.experiment_name, run.flow_cell_id, run.sequencer_position)


def seq(args):
    with pod5.Reader(args.file) as reader:
        yield from rows(reader, args)


def get(args):
    """It delivers in file order."""
    with pod5.Reader(args.file) as reader:
        for ids in windows(args.ids, args.batch):
            yield from in_list_order(ids, list(rows(reader, args, ids)))


def rows_pa(reader, args, selection=None):
    for batch in reader.read_batches(selection=selection, preload={"samples"}):
        for read in batch.reads():
            yield consume_pa(str(read.read_id), read.signal_pa, args)


def pa(args):
    with pod5.Reader(args.file) as reader:
        if args.ids is None:
            yield from rows_pa(reader, args)
            return
        for ids in windows(args.ids, args.batch):
            yield from in_list_order(ids, list(rows_pa(reader, args, ids)))


def get1(args):
    reader = pod5.Reader(args.file)

    def one(read_id):
        read = next(reader.reads(selection=[read_id]))
        return consume(read_id, read.signal, args)

    return one


def needed_bytes(args):
    with pod5.Reader(args.file) as reader:
        return sum(read.byte_count for read in reader.reads(selection=sorted(set(args.ids))))


if __name__ == "__main__":
    main(
        "pod5",
        begin_import,
        {"seq": seq, "get": get, "get1": get1, "pa": pa},
        flags="lib_pod5 as published",
        needed_bytes=needed_bytes,
        extra=lambda args: {} if args.mode == "get1" else {"threads": len(os.sched_getaffinity(0))},
    )
