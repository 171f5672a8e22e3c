"""The Python package of thalweg as a benchmark arm: the loops that its README shows. Arguments and output:
../common/python_peer.py."""

import os
import sys
import time

begin_import = time.perf_counter()
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../common"), os.path.join(here, "../../target/peers/thalweg_python")]
import thalweg  # noqa: E402
from python_peer import consume, consume_pa, main  # noqa: E402


def opened(args):
    return thalweg.open(args.file, threads=args.threads)


def seq(args):
    if args.metadata:
        yield from with_metadata(args)
        return
    for read in opened(args):
        yield consume(read.id, read.signal, args)


def with_metadata(args):
    numbers = ["read_number", "start_mux", "start_time"]
    of_run = ["run_id", "experiment_name", "flow_cell_id", "sequencer_position"]
    reads = opened(args)
    runs = [[group.get(name) for name in of_run] for group in reads.read_groups()]
    for read in reads:
        own = read.attributes
        of_read = (int(own["channel_number"]), *(own[name] for name in numbers))
        yield consume(read.id, read.signal, args, *of_read, *runs[read.read_group])


def get(args):
    for read in opened(args).get(args.ids):
        yield consume(read.id, read.signal, args)


def get1(args):
    reads = opened(args)

    def one(read_id):
        return consume(read_id, reads[read_id].signal, args)

    return one


def pa(args):
    for batch in opened(args).batches(args.ids, columns=["read_id", "signal_pa"]):
        for read in batch:
            yield consume_pa(read.id, read.signal_pa, args)


if __name__ == "__main__":
    main("thalweg", begin_import, {"seq": seq, "get": get, "get1": get1, "pa": pa}, flags="the wheel of `make wheel`")
