#!/usr/bin/env python3
"""Predicted against measured time: each format, three throttles, an object store. Prints the table of docs/planner.md.

    make build remote
    scripts/predicted.py target/release/thalweg [FOLDER]

Makes small synthetic files in FOLDER (a temporary one unless given) and reads each under stores that
are held to limits, so that the store takes most of the time, and from a server with the delays of an object store, which `thalweg
probe` has measured. Predicted: `thalweg read --explain` for
reads, `thalweg doctor` for arrays; a network reports what its query planned. Measured: the seconds
from opening the file to the last value, which the read itself reports: the median of three runs; for
objects, of five runs with different seeds of the delays.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

THROTTLES = [
    ("a slow disc", "bandwidth=20MB/s,latency=2ms,requests=1000/s,parallel=16"),
    ("few requests", "bandwidth=100MB/s,latency=5ms,requests=50/s,parallel=16"),
    ("far away", "bandwidth=40MB/s,latency=30ms,requests=500/s,parallel=32"),
]
RUNS = 3
RUNS_OF_OBJECTS = 5
IDS = 100
SAMPLES = "40M"
NEURONS = 200_000
NETWORK = ["--astrocytes", "2000", "--neurons", NEURONS]
ON_SERVER = Path(__file__).parent.parent / "peers/remote/run.py"
SLOW5_SAMPLES = "8M"  # text, so that the processor takes longest


def run(*args):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, args))}\n{done.stderr}")
    return done.stdout


def last_json(text):
    """The last line, or all of the text, as JSON."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(text.strip().splitlines()[-1])


class Table:
    def __init__(self, thalweg):
        self.thalweg = thalweg

    def on_server(self, path, *args):
        """A verb on the object URL, a copy of the file at a path on a server."""
        return last_json(run(sys.executable, ON_SERVER, "near", path, *args))

    def objects(self, name, path, *choose):
        verb = ["indexed", self.thalweg, "read", "URL", *choose, "--json"]
        plan = self.on_server(path, *verb, "--explain")
        self.row(
            name,
            "an object store",
            plan["predicted_s"],
            plan["all_requests"],
            plan["all_bytes"],
            lambda: self.on_server(path, *verb),
            RUNS_OF_OBJECTS,
        )

    def verb(self, *args, json=True):
        return last_json(run(self.thalweg, *args, *(["--json"] if json else [])))

    def row(self, name, throttle, predicted_s, requests, fetched, read, runs=RUNS):
        def seeded(seed):
            os.environ["SEED"] = str(seed)
            return read()

        done = sorted(map(seeded, range(runs)), key=lambda done: done["open_to_last_s"])
        middle = done[runs // 2]
        measured_s = middle["open_to_last_s"]
        processor_s = middle["cpu_s"] / middle.get("threads", 1)
        ratio = predicted_s / measured_s
        print(
            f"| {name} | {throttle} | {requests:,} | {fetched / 1e6:.1f} "
            f"| {predicted_s:.2f} | {measured_s:.2f} | {ratio:.2f} | {processor_s:.2f} |",
            flush=True,
        )

    def reads(self, name, path, ids=None):
        choose = ["--ids", ids] if ids else []
        for throttle, limits in THROTTLES:
            common = [path, *choose, "--throttle", limits]
            plan = self.verb("read", *common, "--explain")
            self.row(
                name,
                throttle,
                plan["predicted_s"],
                plan["all_requests"],
                plan["all_bytes"],
                lambda: self.verb("read", *common),
            )

    def arrays(self, name, path, selection):
        for throttle, limits in THROTTLES:
            common = [path, selection, "--throttle", limits]
            time = self.verb("doctor", *common)["thalweg"]
            self.row(
                name,
                throttle,
                time["total_s"],
                time["requests"],
                time["bytes"],
                lambda: self.verb("read", *common),
            )


    def network(self, name, path, start, end):
        for throttle, limits in THROTTLES:
            ends = ["--from", start, "--to", end]
            read = lambda: self.verb(
                "graph", "neighbors", path, *ends, "--measured", "--throttle", limits, json=False
            )
            planned = read()["planned"]
            self.row(
                name,
                throttle,
                planned["predicted_s"],
                planned["requests"],
                planned["fetched_bytes"],
                read,
            )


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    thalweg = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(sys.argv[2] if len(sys.argv) == 3 else scratch)
        folder.mkdir(parents=True, exist_ok=True)
        blow5, pod5 = folder / "reads.blow5", folder / "reads.pod5"
        slow5, fast5, nexus = folder / "reads.slow5", folder / "reads.fast5", folder / "run.nxs"
        ids = folder / "ids.txt"
        network = folder / "network"
        if not blow5.exists():
            run(thalweg, "synth", blow5, "--kind", "blow5", "--samples", SAMPLES)
        if not pod5.exists():
            run(thalweg, "synth", pod5, "--kind", "pod5", "--samples", SAMPLES)
        if not fast5.exists():
            run(thalweg, "convert", blow5, fast5)
        if not slow5.exists():
            few = folder / "few.blow5"
            run(thalweg, "synth", few, "--kind", "blow5", "--samples", SLOW5_SAMPLES)
            run(thalweg, "convert", few, slow5)
        run(thalweg, "index", blow5, pod5)
        if not nexus.exists():
            run(thalweg, "synth", nexus, "--kind", "nexus-live", "--size", "64MB")
        if not ids.exists():
            known = [line.split("\t")[0] for line in run(thalweg, "read", blow5, "--digest").splitlines()]
            ids.write_text("\n".join(random.Random(1).sample(known, min(IDS, len(known)))) + "\n")
        if not network.exists():
            edges = folder / "network.h5"
            run(thalweg, "synth", edges, "--kind", "neuroglial", *NETWORK)
            run(thalweg, "graph", "import", edges, network)
        numbers = ",".join(map(str, sorted(random.Random(1).sample(range(NEURONS), 100))))
        print("| what | store | requests | MB | predicted, s | measured, s | ratio | processor, s |")
        print("|---|---|---|---|---|---|---|---|")
        table = Table(thalweg)
        table.reads("BLOW5, all", blow5)
        table.reads(f"BLOW5, {IDS} ids", blow5, ids)
        table.reads("SLOW5, all", slow5)
        table.reads("POD5, all", pod5)
        table.reads(f"POD5, {IDS} ids", pod5, ids)
        table.reads("FAST5, all", fast5)
        table.reads(f"FAST5, {IDS} ids", fast5, ids)
        table.arrays("NeXus, all events", nexus, "/entry/bank*_events/event_id")
        table.network("network, all neurons of astrocytes", network, "Astrocyte", "Neuron")
        table.network("network, astrocytes of 100 neurons", network, f"Neuron:{numbers}", "Astrocyte")
        # Of its own, for the measured model of the server, and indexes.
        os.environ["XDG_CACHE_HOME"] = scratch
        table.on_server(blow5, thalweg, "probe", "URL", "--json")
        table.objects("BLOW5, all", blow5)
        table.objects(f"BLOW5, {IDS} ids", blow5, "--ids", ids)
        table.objects("POD5, all", pod5)
        table.objects(f"POD5, {IDS} ids", pod5, "--ids", ids)
        table.objects("NeXus, all events", nexus, "/entry/bank*_events/event_id")


if __name__ == "__main__":
    main()
