"""Writes the small valid files that mutants are made of, and `map.json`: where their numbers and checksums lie.

Usage: seeds.py THALWEG FOLDER
"""

import hashlib
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import zlib

import h5py
import numpy as np

import sums
import verbs

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

THALWEG, FOLDER = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
# Kinds of which the seeds' own values are kept, to compare what has no peer.
DIGESTED = ("slow5", "blow5", "pod5", "fast5", "hdf5", "nexus", "sonata")
IDS = [f"0000000{i}-1111-4222-8333-44444444444{i}" for i in range(5)]


def thalweg(*words) -> str:
    return subprocess.run([THALWEG, *map(str, words)], check=True, capture_output=True, text=True, cwd=FOLDER).stdout


def signals() -> list[np.ndarray]:
    chance = np.random.default_rng(1)
    return [np.cumsum(chance.integers(-9, 10, n)).astype("<i2") + 500 for n in (40, 1, 200, 64, 33)]


def slow5() -> None:
    """Two read groups, and auxiliary fields of several types."""
    attributes = {"run_id": ("a", "b"), "asic_id": ("1", "2"), "exp_start_time": ("2026-01-01T00:00:00Z",) * 2, "sample_frequency": ("4000", "5000")}
    types = "#char*\tuint32_t\tdouble\tdouble\tdouble\tdouble\tuint64_t\tint16_t*"
    names = "#read_id\tread_group\tdigitisation\toffset\trange\tsampling_rate\tlen_raw_signal\traw_signal"
    types += "\tchar*\tdouble\tint32_t\tuint8_t\tuint64_t\tenum{unknown,mux_change,signal_positive}\tuint16_t*"
    names += "\tchannel_number\tmedian_before\tread_number\tstart_mux\tstart_time\tend_reason\tmore"
    lines = ["#slow5_version\t1.0.0", "#num_read_groups\t2"]
    lines += [f"@{name}\t" + "\t".join(values) for name, values in sorted(attributes.items())]
    lines += [types, names]
    for i, samples in enumerate(signals()):
        row = [IDS[i], i % 2, 8192, 23 + i, 1467.61, 4000, len(samples), ",".join(map(str, samples))]
        row += [str(100 + i), 200.5 + i, i, i % 4 + 1, 1000 * i, i % 3, "1,2,3" if i != 2 else "."]
        lines.append("\t".join(map(str, row)))
    (FOLDER / "reads.slow5").write_text("\n".join(lines) + "\n")


def blow5(record: str, signal: str) -> str:
    name = f"{record}_{signal}.blow5"
    thalweg("convert", "reads.slow5", name, "--record", record, "--signal", signal)
    return name


def map_blow5(name: str) -> dict:
    """The framing's numbers, and the blocks: header, records, end."""
    data = (FOLDER / name).read_bytes()
    header = struct.unpack_from("<I", data, 64)[0] if data[9:10] else 0
    fields = [[6, 1, "version"], [7, 1, "version"], [8, 1, "version"], [9, 1, "record compression"], [10, 4, "read groups"]]
    fields += [[14, 1, "signal compression"], [64, 4, "bytes of the header"]]
    at = 68 + header
    blocks = [[0, at]]
    while len(data) - at > 5:
        size = struct.unpack_from("<Q", data, at)[0]
        fields.append([at, 8, "bytes of a record"])
        blocks.append([at, at + 8 + size])
        at += 8 + size
    blocks.append([at, len(data)])
    if name.startswith("none_"):
        for start, _ in blocks[1:-1]:
            body = start + 8
            id_bytes = struct.unpack_from("<H", data, body)[0]
            group = body + 2 + id_bytes
            fields += [[body, 2, "bytes of the id"], [group, 4, "read group"], [group + 36, 8, "samples"], [group + 44, 4, "signal"], [group + 44, 8, "signal"]]
            fields += [[blocks[-1][0], 4, "end"]] + [[at, w, "record"] for at in range(group + 4, min(group + 36, len(data)), 8) for w in (4, 8)]
    return {"fields": fields, "blocks": blocks, "text": [68, 68 + header]}


def pod5(name: str, signal: str) -> None:
    thalweg("convert", "reads.slow5", name, "--signal", signal, "--row-samples", "50", "--signal-rows", "3", "--reads-rows", "2", "--lossy")


def map_pod5(name: str) -> dict:
    """Every aligned number of the flatbuffers (Arrow's messages and footers, POD5's footer), and their lengths."""
    data = (FOLDER / name).read_bytes()
    fields, blocks, at = [], [], 0
    while (at := data.find(b"\xff\xff\xff\xff", at)) >= 0:
        size = struct.unpack_from("<i", data, at + 4)[0]
        if at % 8 == 0 and 0 < size < 20000 and at + 8 + size <= len(data):
            fields += [[at + 4, 4, "bytes of a message"]]
            fields += [[p, w, "message"] for p in range(at + 8, at + 8 + size, 4) for w in (4, 8)]
            blocks.append([at, at + 8 + size])
        at += 4
    at = 0
    while (at := data.find(b"ARROW1", at + 1)) >= 0:
        size = struct.unpack_from("<i", data, at - 4)[0]
        if 0 < size < at:
            fields += [[at - 4, 4, "bytes of a footer"]]
            fields += [[p, w, "footer of a table"] for p in range(at - 4 - size, at - 4, 4) for w in (4, 8)] * 2
            blocks.append([at - 4 - size, at + 6])
    start = data.rfind(b"FOOTER\0\0")
    end = len(data) - 32
    fields += [[end, 8, "bytes of POD5's footer"]] * 8 + [[p, w, "POD5's footer"] for p in range(start + 8, end, 4) for w in (4, 8)] * 4
    blocks.append([start, len(data)])
    metadata = {p for a, b in blocks for p in range(a, b)}
    fields += [[p, 8, "buffers"] for p in range(24, len(data) - 8, 8) if p not in metadata]
    return {"fields": fields, "blocks": blocks}


MESSAGES = {1: "dataspace", 3: "datatype", 4: "fill value", 5: "fill value", 6: "link", 8: "layout", 0xA: "group", 0xB: "filters", 0xC: "attribute", 0x10: "continuation", 0x11: "symbol table", 2: "link info", 0x15: "attribute info", 7: "external files"}
SIGNATURES = [b"TREE", b"SNOD", b"HEAP", b"GCOL", b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTIN", b"BTLF", b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EASB", b"EADB", b"OHDR", b"OCHK", b"SMTB", b"SMLI"]


def messages(data: bytes, at: int, end: int, version: int, flags: int) -> list:
    found = []
    head = 8 if version == 1 else 6 if flags & 4 else 4
    while at + head <= end:
        kind, size = struct.unpack_from("<HH", data, at) if version == 1 else struct.unpack_from("<BH", data, at)
        name = MESSAGES.get(kind, f"message {kind}")
        found += [[at, 1, f"{name}: type"], [at + (2 if version == 1 else 1), 2, f"{name}: size"], [at + (4 if version == 1 else 3), 1, f"{name}: flags"]]
        body, stop = at + head, min(at + head + size, end)
        found += [[p, w, name] for p in range(body, stop) for w in (1, 2, 4, 8) if p + w <= stop and (w < 4 or p % 4 == body % 4 or size < 24)]
        at += head + size
    return found


def map_hdf5(name: str) -> dict:
    """Superblock, messages of object headers, nodes of B-trees, heaps; and what each checksum covers."""
    data = (FOLDER / name).read_bytes()
    fields, blocks, covered = [], [], []
    version = data[8]
    if version < 2:
        fields += [[p, w, "superblock"] for p in range(8, 96) for w in (1, 2, 4, 8) if p % w == 0] * 3
    else:
        fields += [[p, w, "superblock"] for p in range(8, 44) for w in (1, 4, 8) if p % w == 0] * 3
        covered.append(["lookup3", 0, 44])
    for signature in SIGNATURES:
        at = -1
        while (at := data.find(signature, at + 1)) >= 0:
            what = signature.decode()
            if signature == b"FHDB":
                for size in (512, 1024, 2048, 4096, 8192):
                    block = bytearray(data[at : at + size])
                    if len(block) == size:
                        stored = struct.unpack_from("<I", block, 17)[0]
                        block[17:21] = bytes(4)
                        if sums.lookup3(block) == stored:
                            covered.append(["inner", at, at + size])
                            blocks.append([at, at + size])
                fields += [[p, w, what] for p in range(at, min(at + 400, len(data) - 8)) for w in (1, 2, 4, 8)]
                continue
            has_sum = signature not in (b"TREE", b"SNOD", b"HEAP", b"GCOL")
            ends = has_sum and (sums.lookup3_ends(data[at : at + 300]) or sums.lookup3_ends(data[at : at + 2600]))
            if ends:
                end = at + ends[0]
                covered.append(["lookup3", at, end])
                blocks.append([at, end + 4])
            else:
                end = min(at + (560 if signature in (b"TREE", b"GCOL") else 120), len(data) - 8)
                blocks.append([at, end])
            if signature == b"OHDR" and ends:
                flags = data[at + 5]
                start = at + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
                fields += [[at + 5, 1, "OHDR: flags"], [start, 1 << (flags & 3), "OHDR: size"]]
                fields += messages(data, start + (1 << (flags & 3)), end, 2, flags)
            elif signature == b"OCHK" and ends:
                fields += messages(data, at + 4, end, 2, 4) + messages(data, at + 4, end, 2, 0)
            else:
                step = 1 if ends else 4
                fields += [[p, w, what] for p in range(at + 4, end, step) for w in (1, 2, 4, 8)]
    with h5py.File(FOLDER / name) as file:
        addresses = {h5py.h5o.get_info(file.id).addr}
        file.visititems(lambda _, item: addresses.add(h5py.h5o.get_info(item.id).addr))
    for at in sorted(addresses):
        if data[at] == 1 and data[at + 1] == 0:
            count, _, size = struct.unpack_from("<HII", data, at + 2)
            fields += [[at, 1, "object header: version"], [at + 2, 2, "object header: messages"], [at + 8, 4, "object header: size"]]
            fields += messages(data, at + 16, min(at + 16 + size, len(data) - 8), 1, 0)
            blocks.append([at, at + 16 + size])
    fields = [field for field in fields if field[0] + field[1] <= len(data)]
    return {"fields": fields, "sums": covered, "blocks": sorted(blocks)}


def arrays(name: str, libver: str) -> None:
    """Every layout, filter and kind of type that is small."""
    numbers = np.arange(60, dtype="<i4").reshape(12, 5)
    with h5py.File(FOLDER / name, "w", libver=libver) as file:
        file["contiguous"] = numbers
        create = file.create_dataset
        create("gzip", data=numbers, chunks=(5, 2), compression="gzip")
        create("sum", data=numbers.astype("<f8"), chunks=(4, 5), fletcher32=True, shuffle=True)
        create("grown", data=numbers[:, 0], chunks=(3,), maxshape=(None,))
        create("both", data=numbers, chunks=(5, 2), maxshape=(None, None))
        create("one", data=numbers, chunks=numbers.shape, compression="gzip")
        create("scale", data=numbers, chunks=(6, 5), scaleoffset=0)
        create("big", data=numbers.astype(">i8"))
        create("empty", (7, 3), "<i2", chunks=(2, 2), fillvalue=9)
        space = h5py.h5s.create_simple((8,))
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I32LE, space, compact).write(space, space, np.arange(8, dtype="<i4"))
        create("record", data=np.array([(1, 2.5, b"ab"), (3, 4.5, b"c")], [("a", "<i2"), ("b", "<f8"), ("c", "S3")]))
        create("text", data=["one", "two", "three"], dtype=h5py.string_dtype())
        create("lists", (3,), h5py.vlen_dtype(np.int32))[0] = [1, 2, 3]
        create("enum", data=[0, 1, 0], dtype=h5py.enum_dtype({"no": 0, "yes": 1}, "i1"))
        create("half", data=numbers.astype("<f2"))
        group = file.create_group("group/inner")
        for i in range(12 if libver == "latest" else 5):
            group[f"d{i}"] = np.arange(i + 1)
            group.attrs[f"attribute {i}"] = i if i % 2 else "text"
        file.attrs["title"] = "small"
        file.attrs["numbers"] = np.arange(4.0)
        file["group/soft"] = h5py.SoftLink("/gzip")
        layout = h5py.VirtualLayout((12, 5), "<i4")
        layout[:] = h5py.VirtualSource(file["contiguous"])
        file.create_virtual_dataset("virtual", layout)


def nexus() -> None:
    import nexus_files

    banks = {f"bank{i}_events": nexus_files.Bank(300, 20, i) for i in (1, 2)}
    nexus_files.sns(FOLDER / "sns.nxs", banks, chunks=(64,), compression="gzip")
    nexus_files.ess(FOLDER / "ess.nxs", banks, chunks=(128,))
    for name in ("sns.nxs", "ess.nxs"):
        with h5py.File(FOLDER / name, "r+") as file:
            log = file["entry"].create_group("temperature")
            log.attrs["NX_class"] = np.bytes_("NXlog")
            log["time"], log["value"] = np.arange(5.0), np.arange(5.0) * 2
            log["time"].attrs["units"], log["value"].attrs["units"] = "s", "K"


def fast5() -> None:
    for signal in ("zlib", "vbz", "none"):
        thalweg("convert", "reads.slow5", f"multi_{signal}.fast5", "--signal", signal, "--lossy")
    with h5py.File(FOLDER / "single.fast5", "w") as file:
        file.attrs["file_version"] = np.float64(2.0)
        read = file.create_group("Raw/Reads/Read_7")
        read.create_dataset("Signal", data=signals()[2], chunks=(64,), compression="gzip", maxshape=(None,))
        for key, value in {"duration": np.uint32(200), "median_before": 200.5, "read_id": np.bytes_(IDS[2]), "read_number": np.int32(7), "start_mux": np.uint8(1), "start_time": np.uint64(5)}.items():
            read.attrs[key] = value
        channel = file.create_group("UniqueGlobalKey/channel_id")
        for key, value in {"channel_number": np.bytes_("5"), "digitisation": 8192.0, "offset": 6.0, "range": 1400.0, "sampling_rate": 4000.0}.items():
            channel.attrs[key] = value
        file.create_group("UniqueGlobalKey/tracking_id").attrs["run_id"] = np.bytes_("r")
        file.create_group("UniqueGlobalKey/context_tags").attrs["kit"] = np.bytes_("k")


def sonata(name: str, libver: str) -> None:
    chance = np.random.default_rng(2)
    with h5py.File(FOLDER / name, "w", libver=libver) as file:
        edges = file.create_group("edges/a_b")
        for end, what in (("source", "a"), ("target", "b")):
            ids = edges.create_dataset(f"{end}_node_id", data=np.sort(chance.integers(0, 9, 40)).astype("<u8"))
            ids.attrs["node_population"] = what
        edges["edge_type_id"] = np.full(40, -1, "<i8")
        edges["0/weight"] = chance.random(40)
        edges["0/kind"] = chance.integers(0, 2, 40).astype("<u4")
        edges.create_dataset("0/@library/kind", data=["x", "y"], dtype=h5py.string_dtype())
        edges.create_dataset("0/label", data=[f"n{i}" for i in range(40)], dtype=h5py.string_dtype())
        edges["edge_group_id"], edges["edge_group_index"] = np.zeros(40, "<u8"), np.arange(40, dtype="<u8")
        nodes = file.create_group("nodes/a")
        nodes["node_type_id"] = np.full(9, -1, "<i8")
        nodes["0/layer"] = np.arange(9, dtype="<i4")
        nodes["node_group_id"], nodes["node_group_index"] = np.zeros(9, "<u8"), np.arange(9, dtype="<u8")


def network() -> None:
    """Segments with attributes, and a log with added and removed edges and vertices."""
    rows = "".join(f"{i % 7},{i * 5 % 11},{i * 0.5},t{i % 3}\n" for i in range(60))
    (FOLDER / "edges.csv").write_text("source,target,weight,label\n" + rows)
    thalweg("graph", "import", "edges.csv", "store", "--from-type", "A", "--to-type", "B", "--several", "--population", "p")
    (FOLDER / "pairs.csv").write_text("source,target\n" + "".join(f"{i % 7},{i * 5 % 11}\n" for i in range(60)))
    thalweg("graph", "import", "pairs.csv", "store", "--from-type", "A", "--to-type", "A", "--undirected", "--population", "q")
    thalweg("graph", "add", "store", "--vertices", "C:0-9,17", "--edges", "q:1-6,2-9,40-41")
    thalweg("graph", "remove", "store", "--vertices", "C:3", "--edges", "q:1-6")
    thalweg("graph", "export", "store", "edges.parquet", "--edges", "p")


def glia() -> None:
    """A small store with the population of `graph insert`, and with something in the log."""
    (FOLDER / "glia.csv").write_text("source,target\n" + "".join(f"{i % 5},{i * 7}\n" for i in range(40)))
    thalweg("graph", "import", "glia.csv", "glia", "--from-type", "Astrocyte", "--to-type", "Synapse", "--population", "Astrocyte-Synapse")
    thalweg("graph", "insert", "glia", "--edges", "6", "--batch", "3")


def map_store(name: str) -> dict:
    files = {}
    for path in sorted((FOLDER / name).iterdir()):
        data = path.read_bytes()
        if path.suffix == ".seg":
            pages, footer = struct.unpack_from("<QQ", data, len(data) - 40)
            fields = [[p, w, "page"] for p in range(0, pages * 4096, 8) for w in (1, 2, 4, 8) if any(data[p : p + 8])]
            fields += [[len(data) - 40 + 8 * i, 8, "trailer"] for i in range(5)] * 20
            files[path.name] = {"fields": fields, "blocks": [[4096 * i, 4096 * (i + 1)] for i in range(pages)], "footer": footer}
        elif path.suffix == ".log":
            fields, blocks, at = [[8, 8, "number of the log"]], [], 16
            while at + 24 <= len(data):
                size = struct.unpack_from("<I", data, at)[0]
                fields += [[at, 4, "bytes of a change"]] * 4 + [[at + 8, 8, "durable"]] * 4 + [[at + 24, 4, "records"]] * 4
                fields += [[p, w, "record"] for p in range(at + 28, at + 24 + size) for w in (1, 4, 8) if p + w <= at + 24 + size]
                blocks.append([at, at + 24 + size])
                at += 24 + size
            files[path.name] = {"fields": fields, "blocks": blocks}
        elif path.name in ("manifest", "manifest.copy"):
            files[path.name] = {}
    return files


def map_words(name: str, covered: list | None = None) -> dict:
    """Every number at a multiple of its width."""
    size = (FOLDER / name).stat().st_size
    return {"fields": [[p, w, "word"] for w in (1, 2, 4, 8) for p in range(0, size - w + 1, w)], "blocks": [[p, min(p + 64, size)] for p in range(0, size, 64)], "sums": covered or []}


def map_blow5_index(name: str) -> dict:
    data = (FOLDER / name).read_bytes()
    fields, blocks, at = [[p, 1, "head"] for p in range(0, 64)], [], 64
    while len(data) - at > 8:
        size = struct.unpack_from("<H", data, at)[0]
        fields += [[at, 2, "bytes of the id"], [at + 2 + size, 8, "offset"], [at + 10 + size, 8, "bytes"]] * 8
        blocks.append([at, at + 18 + size])
        at += 18 + size
    return {"fields": fields, "blocks": blocks}


def bam() -> None:
    """Reads without alignments, in BGZF."""
    body = b"BAM\1" + struct.pack("<I", 4) + b"@HD\n" + struct.pack("<I", 0)
    for name in IDS[:3]:
        record = struct.pack("<iiBBHHHiiii", -1, -1, len(name) + 1, 255, 4680, 0, 4, 0, -1, -1, 0) + name.encode() + b"\0"
        body += struct.pack("<I", len(record)) + record
    (FOLDER / "reads.bam.body").write_bytes(body)


def results() -> None:
    import made_up_results

    arms = [(made_up_results.arm("a"), 1.0), (made_up_results.arm("b"), 2.0), (made_up_results.arm("a (again)"), 1.01)]
    lines = made_up_results.comparison("cold", arms, rounds=6)
    (FOLDER / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


TINY = """name = "tiny"
pairs = 2
[set]
file = "data"
level = "lukewarm"
timeout = "5 s"
word = "x"
[file.data]
path = "list.txt"
[workload.plain]
command = "cat {file} > /dev/null"
[workload.told]
command = ["sh", "-c", "echo {word}"]
[[comparison]]
name = "plain, {word}"
control = false
sweep = { word = ["y", "z"] }
arms = ["plain", "told"]
"""


def benches() -> None:
    """A suite whose commands take no time, and a run of it that was stopped."""
    (FOLDER / "tiny.toml").write_text(TINY)
    shutil.copy(FOLDER / "ids.txt", FOLDER / "list.txt")
    thalweg("bench", "tiny.toml", "--json", "whole.jsonl")
    lines = (FOLDER / "whole.jsonl").read_text().splitlines()
    ends = [at for at, line in enumerate(lines) if "thalweg.comparison/" in line]
    (FOLDER / "stopped.jsonl").write_text("\n".join(lines[: ends[-1] - 2]) + "\n")


def odd(found: dict) -> None:
    """Names for what is no regular file with a plain name: it is made for each run."""
    first = {}
    for name, info in found.items():
        first.setdefault(info["kind"], name)
    for what, kinds in verbs.ODD.items():
        for kind in sorted(kinds):
            like = first[kind]
            found[f"{what} as {kind}"] = {"kind": "odd", "odd": what, "as": kind, "like": like} | ({"of": found[like]["of"]} if kind == "index" else {})


def make() -> None:
    if FOLDER.exists():
        shutil.rmtree(FOLDER)
    FOLDER.mkdir(parents=True)
    slow5()
    found = {"reads.slow5": {"kind": "slow5"}}
    for record, signal in (("none", "none"), ("none", "svb-zd"), ("none", "ex-zd"), ("zlib", "none"), ("zlib", "svb-zd"), ("zstd", "svb-zd"), ("zstd", "ex-zd")):
        name = blow5(record, signal)
        found[name] = {"kind": "blow5", "record": record, "plain": f"none_{signal}.blow5", **map_blow5(name)}
    for signal in ("vbz", "none"):
        pod5(f"{signal}.pod5", signal)
        found[f"{signal}.pod5"] = {"kind": "pod5", **map_pod5(f"{signal}.pod5")}
    fast5()
    for name in ("multi_zlib.fast5", "multi_vbz.fast5", "multi_none.fast5", "single.fast5"):
        found[name] = {"kind": "fast5", **map_hdf5(name)}
    arrays("earliest.h5", "earliest")
    arrays("latest.h5", "latest")
    for name in ("earliest.h5", "latest.h5"):
        found[name] = {"kind": "hdf5", **map_hdf5(name)}
    nexus()
    for name in ("sns.nxs", "ess.nxs"):
        found[name] = {"kind": "nexus", **map_hdf5(name)}
    sonata("sonata.h5", "earliest")
    sonata("sonata_latest.h5", "latest")
    for name in ("sonata.h5", "sonata_latest.h5"):
        found[name] = {"kind": "sonata", **map_hdf5(name)}
    thalweg("synth", "neuroglial.h5", "--kind", "neuroglial", "--neurons", "150", "--astrocytes", "2")
    if (FOLDER / "neuroglial.h5").stat().st_size < 4 << 20:
        found["neuroglial.h5"] = {"kind": "neuroglial", **map_hdf5("neuroglial.h5")}
    network()
    found["store"] = {"kind": "store", "files": map_store("store")}
    glia()
    found["glia"] = {"kind": "glia", "files": map_store("glia")}
    found["edges.csv"], found["edges.parquet"] = {"kind": "csv"}, {"kind": "parquet", **map_words("edges.parquet")}
    bam()
    found["reads.bam.body"] = {"kind": "bam", **map_words("reads.bam.body")}
    (FOLDER / "ids.txt").write_text("\n".join(IDS) + "\n")
    found["ids.txt"] = {"kind": "ids"}
    results()
    found["results.jsonl"] = {"kind": "results"}
    shutil.copy(HERE.parents[2] / "crates/thalweg-cli/suites/slow5.toml", FOLDER / "suite.toml")
    found["suite.toml"] = {"kind": "suite"}
    benches()
    found["tiny.toml"], found["stopped.jsonl"] = {"kind": "tiny"}, {"kind": "stopped"}
    found["alone"] = {"kind": "alone"}
    for name in ("zstd_svb-zd.blow5", "vbz.pod5", "latest.h5"):
        thalweg("index", name)
        size = (FOLDER / f"{name}.idx").stat().st_size
        if name.endswith("blow5"):
            found[f"{name}.idx"] = {"kind": "index", "of": name, **map_blow5_index(f"{name}.idx")}
            continue
        if name.endswith("pod5"):
            (batches,) = struct.unpack_from("<Q", (FOLDER / f"{name}.idx").read_bytes(), 40)
            starts = 64 + 8 * batches
            blocks = range(starts + 8, size, 4096)
            covered = [["splitmix", 0, 56], ["splitmix", 64, starts], *(["splitmix", at, at + 4088] for at in blocks)]
        else:
            covered = [["splitmix", 0, 56], ["splitmix", 64, size - 8]]
        found[f"{name}.idx"] = {"kind": "index", "of": name, **map_words(f"{name}.idx", covered)}
    odd(found)
    truth = {name: thalweg("read", "--digest", name) for name in {info.get("of", info.get("like", name)) for name, info in found.items() if "of" in info or info.get("as", info["kind"]) in DIGESTED}}
    (FOLDER / "truth.json").write_text(json.dumps(truth))
    for name, info in found.items():
        check_sums(name, info)
    (FOLDER / "map.json").write_text(json.dumps(found))


def check_sums(name: str, info: dict) -> None:
    """The map must be right about checksums, or mutants would not get past them."""
    if info["kind"] in ("odd", "alone") or (FOLDER / name).is_dir():
        return
    data = (FOLDER / name).read_bytes()
    for how, start, end in info.get("sums", []):
        if how == "splitmix":
            assert sums.splitmix(data[start:end]) == struct.unpack_from("<Q", data, end)[0], (name, start, end)
        elif how == "lookup3":
            assert sums.lookup3(data[start:end]) == struct.unpack_from("<I", data, end)[0], (name, start, end)


if __name__ == "__main__":
    make()
