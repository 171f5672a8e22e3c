"""What other programs find in a file. Forks for each file, because they may crash on it or never end.

Reads lines of JSON, `{"kind", "path"}`, and answers each with one: `{"rows": {name: [...]}}` or `{"refused": why}`.
"""

import hashlib
import json
import os
import pathlib
import resource
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))


def signal_row(samples) -> list:
    samples = samples.astype("<i2")
    return [str(len(samples)), str(int(samples.sum(dtype="i8"))), hashlib.sha256(samples.tobytes()).hexdigest()]


def slow5(path: str) -> dict:
    import pyslow5

    rows = {}
    for read in pyslow5.Open(path, "r").seq_reads():
        assert read["read_id"] not in rows, "a read twice"
        rows[read["read_id"]] = signal_row(read["signal"])
    return rows


def pod5(path: str) -> dict:
    import pod5

    with pod5.Reader(path) as reader:
        return {str(record.read_id): signal_row(record.signal) for record in reader.reads()}


def fast5(path: str) -> dict:
    import h5py
    import vbz_h5py_plugin  # noqa: F401

    rows = {}
    with h5py.File(path) as file:
        for name in file:
            if name.startswith("read_"):
                samples = file[name]["Raw/Signal"]
                assert samples.dtype.kind == "i" and samples.dtype.itemsize == 2 and samples.ndim == 1, "no signal"
                own = file[name]["Raw"].attrs["read_id"]
                own = own.decode() if isinstance(own, bytes) else str(own)
                assert own not in rows, "a read twice"
                rows[own] = signal_row(samples[()])
    return rows


def hdf5(path: str) -> dict:
    import h5py
    import hdf5_rows

    rows = {}
    with h5py.File(path) as file:
        for name, dataset in hdf5_rows.datasets(file):
            try:
                if hdf5_rows.has_arrays(dataset) and dataset.nbytes < 1 << 28:
                    rows[name] = hdf5_rows.row(name, hdf5_rows.read(dataset)).split("\t")[1:]
            except Exception:  # noqa: BLE001  what the peer cannot read is not compared
                continue
    return rows


def sonata(path: str) -> dict:
    import h5py
    import libsonata

    storage = libsonata.EdgeStorage(path)
    rows = {}
    for name in storage.population_names:
        edges = storage.open_population(name)
        # Its size is that of the types; thalweg goes by the ids.
        with h5py.File(path) as file:
            assert {file[f"edges/{name}/{column}"].shape for column in ("source_node_id", "target_node_id")} == {(edges.size,)}, "lengths"
        every = edges.select_all()
        pairs = sorted(zip(edges.source_nodes(every).tolist(), edges.target_nodes(every).tolist(), strict=True))
        rows[name] = [hashlib.sha256(repr(pairs).encode()).hexdigest()]
    return rows


READERS = {"slow5": slow5, "blow5": slow5, "pod5": pod5, "fast5": fast5, "hdf5": hdf5, "nexus": hdf5, "sonata": hdf5, "neuroglial": hdf5, "edges": sonata}


def child(kind: str, path: str, out: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(60)
    with tempfile.TemporaryFile() as errors:
        os.dup2(errors.fileno(), 2)
        os.dup2(errors.fileno(), 1)
        try:
            answer = {"rows": READERS[kind](path)}
        except BaseException as e:  # noqa: BLE001  any end of a peer is an answer
            answer = {"refused": f"{type(e).__name__}: {e}"[:300]}
        errors.seek(0)
        said = errors.read(4000).decode(errors="replace")
        # slow5lib ends an iteration over a damaged file as it ends one over a whole file, and says so on standard error only.
        if kind in ("slow5", "blow5") and "ERROR" in said:
            answer = {"refused": said[:300]}
    os.write(out, json.dumps(answer).encode()[: 1 << 20])


def imports(kind: str) -> None:
    """Before the first fork, so that it is done once."""
    if kind in ("slow5", "blow5"):
        import pyslow5  # noqa: F401
    elif kind == "pod5":
        import pod5  # noqa: F401
    elif kind == "edges":
        import h5py  # noqa: F401
        import libsonata  # noqa: F401
    else:
        import h5py  # noqa: F401
        import hdf5plugin  # noqa: F401
        import hdf5_rows  # noqa: F401
        import vbz_h5py_plugin  # noqa: F401


def serve() -> None:
    for line in sys.stdin:
        question = json.loads(line)
        try:
            imports(question["kind"])
        except ImportError as e:
            print(json.dumps({"refused": f"no such peer: {e}"}), flush=True)
            continue
        here, there = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(here)
            try:
                child(question["kind"], question["path"], there)
            finally:
                os._exit(0)
        os.close(there)
        answer = b""
        while piece := os.read(here, 1 << 20):
            answer += piece
        os.close(here)
        _, status = os.waitpid(pid, 0)
        try:
            json.loads(answer)
        except ValueError:
            answer = json.dumps({"refused": f"ended with status {status}"}).encode()
        print(answer.decode(), flush=True)


if __name__ == "__main__":
    serve()
