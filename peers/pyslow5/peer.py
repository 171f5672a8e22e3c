"""pyslow5 as a benchmark peer: what a Python user of slow5lib gets, by seq_reads_multi, get_read_list_multi and
get_read. Arguments and output: ../common/python_peer.py."""

import os
import sys
import time

begin_import = time.perf_counter()
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import pyslow5  # noqa: E402
from python_peer import consume, consume_pa, main  # noqa: E402


def delivered(reads, args):
    for read in reads:
        yield consume(read["read_id"], read["signal"], args)


def seq(args):
    file = pyslow5.Open(args.file, "r")
    if args.metadata:
        return with_metadata(file, args)
    return delivered(file.seq_reads_multi(threads=args.threads, batchsize=args.batch), args)


def with_metadata(file, args):
    names = ["channel_number", "read_number", "start_mux", "start_time"]
    of_run = ["run_id", "experiment_name", "flow_cell_id", "sequencer_position"]
    headers = {}
    for read in file.seq_reads_multi(threads=args.threads, batchsize=args.batch, aux=names):
        channel, *numbers = (read[name] for name in names)
        group = read["read_group"]
        if group not in headers:
            known = file.get_all_headers(group)
            headers[group] = [known.get(name) for name in of_run]
        yield consume(read["read_id"], read["signal"], args, int(channel), *numbers, *headers[group])


def get(args):
    file = pyslow5.Open(args.file, "r")
    return delivered(file.get_read_list_multi(args.ids, threads=args.threads, batchsize=args.batch), args)


def pa(args):
    file = pyslow5.Open(args.file, "r")
    how = {"threads": args.threads, "batchsize": args.batch, "pA": True}
    for read in file.seq_reads_multi(**how) if args.ids is None else file.get_read_list_multi(args.ids, **how):
        yield consume_pa(read["read_id"], read["signal"], args)


def get1(args):
    file = pyslow5.Open(args.file, "r")

    def one(read_id):
        return consume(read_id, file.get_read(read_id)["signal"], args)

    return one


def index_was_there(args):
    return {} if args.ids is None else {"index_was_there": os.path.exists(args.file + ".idx")}


if __name__ == "__main__":
    main(
        "pyslow5",
        begin_import,
        {"seq": seq, "get": get, "get1": get1, "pa": pa},
        flags="-O2, as its package builds it",
        extra=index_was_there,
    )
