#!/usr/bin/env python3
"""What the harness adds to an empty command: its wall time beside the kernel's own (taskstats, as root).

    cargo build --release --package thalweg-gauge --example empty
    scripts/overhead.py target/release/examples/empty [RUNS]

The kernel accounts each process that ends: `ac_etime`, microseconds from its creation to its exit (linux/taskstats.h).
No tracer is in the way. The two are paired by the order in which the processes ended.
"""

import os
import select
import socket
import statistics
import struct
import subprocess
import sys

NETLINK_GENERIC = 16
TASKSTATS_CMD_GET, ATTR_REGISTER_CPUMASK = 1, 3
TYPE_AGGR_PID, TYPE_STATS = 4, 3
COMM, ETIME = 80, 144  # offsets in struct taskstats, the same since version 3


def attribute(kind: int, data: bytes) -> bytes:
    length = 4 + len(data)
    return struct.pack("HH", length, kind) + data + b"\0" * (-length % 4)


def attributes(data: bytes):
    while len(data) >= 4:
        length, kind = struct.unpack_from("HH", data)
        yield kind & 0x3FFF, data[4:length]
        data = data[(length + 3) & ~3 :]


def request(family: int, command: int, body: bytes, version: int = 1) -> bytes:
    payload = struct.pack("BBH", command, version, 0) + body
    return struct.pack("IHHII", 16 + len(payload), family, 1, 0, 0) + payload


def listen() -> socket.socket:
    link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    link.bind((0, 0))
    link.send(request(16, 3, attribute(2, b"TASKSTATS\0")))  # the controller's GETFAMILY by name
    found = dict(attributes(link.recv(65536)[20:]))
    if 1 not in found:
        sys.exit("overhead: this kernel has no taskstats")
    family = struct.unpack("H", found[1][:2])[0]
    cpus = f"0-{os.cpu_count() - 1}\0".encode()
    link.send(request(family, TASKSTATS_CMD_GET, attribute(ATTR_REGISTER_CPUMASK, cpus)))
    return link


def ended(message: bytes) -> float | None:
    """Microseconds that a process called `true` lived."""
    for kind, data in attributes(message[20:]):
        if kind != TYPE_AGGR_PID:
            continue
        for inner, stats in attributes(data):
            if inner == TYPE_STATS and stats[COMM : COMM + 32].split(b"\0")[0] == b"true":
                return struct.unpack_from("Q", stats, ETIME)[0]
    return None


def main() -> None:
    program = sys.argv[1]
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    link = listen()
    child = subprocess.Popen([program, str(runs)], stdout=subprocess.PIPE, text=True)
    kernel = []
    while len(kernel) < runs and select.select([link], [], [], 5)[0]:
        data = link.recv(65536)
        while len(data) >= 16:
            length = struct.unpack_from("I", data)[0]
            lived = ended(data[:length])
            kernel += [] if lived is None else [lived]
            data = data[(length + 3) & ~3 :]
    ours = [float(line) for line in child.communicate()[0].split()]
    if len(kernel) != len(ours):
        sys.exit(f"overhead: the kernel accounted {len(kernel)} processes, the harness {len(ours)}")
    added = sorted(a - b for a, b in zip(ours, kernel))
    show = lambda name, values: print(
        f"{name:22} median {statistics.median(values):7.0f} µs   min {min(values):6.0f}   p95 "
        f"{sorted(values)[int(len(values) * 0.95)]:6.0f}   max {max(values):6.0f}"
    )
    print(f"{runs} runs of `true`")
    show("the kernel's account", kernel)
    show("the harness's wall", ours)
    show("difference", added)
    print(f"within 1 ms: {sum(abs(d) < 1000 for d in added)} of {runs}")


if __name__ == "__main__":
    main()
