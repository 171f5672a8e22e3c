"""Mutants that know the structure of what they damage. All chance comes from the generator that is handed in."""

import json
import os
import pathlib
import random
import re
import shutil
import struct
import zlib

import sums

# Numbers of options. The small ones say how much is written.
NUMBERS = ["0", "1", "-1", "7", "1000", "65537", "2147483648", "4294967295", "9223372036854775807", "18446744073709551615", "18446744073709551616", "1e999", "nan", "-inf", "0.001", "", "é", "1Ei", "0x10", "9" * 400]
SMALL = ["0", "1", "2", "3", "37", "1000", "20000", "-1", "nan", ""]
# Each rank is a process: a thousand take most of the processor time that a run may.
RANKS = ["0", "1", "2", "3", "37", "20000", "-1", "nan", ""]
TOML_VALUES = ["0", "1", "-1", "9223372036854775807", "1.5", "true", "[]", '""', '"x"', '"0 s"', '"auto"', '"cold"', '"data"', '"plain"', '"{word}"', '"{file}"', '"{out}"', '"{folder}"', '"../x"', '"exit 3"', '"\\u001b[31m"', '"echo \\u202e"', '"cat"', '"kill -9 $$"', '"sleep 0.1"', '"yes | head -c 3000000"']
# Of ten mutants of formats with checksums, nine have right ones.
RIGHT_SUMS = 0.9
WORDS = ["", ".", "-1", "0", "1e999", "nan", "-inf", "18446744073709551615", "18446744073709551616", "9" * 400, "0x10", "é", "\udcff", "\0", "\x1b[31m", "a,b", "\t", '"', "../../x", "A" * 70000, "\u202e", "\r", "1.5", "true", "null", "char*", "uint8_t", "enum{}", "int16_t*"]


class Mutant:
    """What was made: the files' places are up to `write`; `what` says what was changed."""

    def __init__(self):
        self.what: list[str] = []
        self.sums_right = True


def number(chance: random.Random, old: int, width: int, size: int, others) -> int:
    top = 1 << (8 * width)
    choice = chance.randrange(12)
    value = [0, 1, top - 1, top // 2, top // 2 - 1, old + 1, old - 1, old * 2, old ^ (1 << chance.randrange(8 * width)), size, chance.randrange(256), others()][choice]
    return value % top


def field(data: bytearray, info: dict, chance: random.Random, what: list) -> int:
    fields = info["fields"]
    at, width, name = chance.choice(fields)
    if at + width > len(data):
        return at
    old = int.from_bytes(data[at : at + width], "little")

    def others():
        a, w, _ = chance.choice(fields)
        return int.from_bytes(data[a : a + w], "little")

    new = number(chance, old, width, chance.choice([len(data), len(data) - 1, len(data) - at]), others)
    data[at : at + width] = new.to_bytes(width, "little")
    what.append(f"{name} at {at}: {old} -> {new} ({width} bytes)")
    return at


def generic(data: bytearray, info: dict, chance: random.Random, what: list) -> None:
    """Cuts, swapped and repeated blocks, bits."""
    blocks = info.get("blocks") or [[0, len(data)]]
    a, b = chance.choice(blocks), chance.choice(blocks)
    kind = chance.choice(["cut", "cut", "swap", "repeat", "remove", "bits", "bits", "zero", "append", "copy"])
    if kind == "cut":
        at = chance.choice([a[0], a[1], (a[0] + a[1]) // 2, chance.randrange(len(data) + 1)])
        del data[at:]
    elif kind == "swap":
        (s, e), (t, f) = sorted([a, b])
        if e <= t:
            data[s:f] = data[t:f] + data[e:t] + data[s:e]
    elif kind == "repeat":
        data[a[1] : a[1]] = data[a[0] : a[1]]
    elif kind == "remove":
        del data[a[0] : a[1]]
    elif kind == "bits":
        for _ in range(chance.choice([1, 1, 4])):
            at = chance.randrange(a[0], max(a[1], a[0] + 1))
            if at < len(data):
                data[at] ^= 1 << chance.randrange(8)
    elif kind == "zero":
        data[a[0] : a[1]] = bytes(min(a[1], len(data)) - min(a[0], len(data)))
    elif kind == "append":
        data += chance.choice([b"\0", data[a[0] : a[1]], bytes(4096)])
    else:
        piece = data[a[0] : a[1]]
        data[b[0] : b[0] + len(piece)] = piece
    what.append(f"{kind} {a} {b}")


def right_sums(data: bytearray, info: dict) -> None:
    for how, start, end in info.get("sums", []):
        if how == "inner" and end <= len(data):
            data[start + 17 : start + 21] = bytes(4)
            struct.pack_into("<I", data, start + 17, sums.lookup3(bytes(data[start:end])))
        elif how == "lookup3" and end + 4 <= len(data):
            struct.pack_into("<I", data, end, sums.lookup3(bytes(data[start:end])))
        elif how == "splitmix" and end + 8 <= len(data):
            struct.pack_into("<Q", data, end, sums.splitmix(bytes(data[start:end])))


def binary(data: bytes, info: dict, chance: random.Random, made: Mutant) -> bytes:
    out = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        if info.get("fields") and chance.random() < 0.8:
            field(out, info, chance, made.what)
        else:
            generic(out, info, chance, made.what)
    if chance.random() < RIGHT_SUMS:
        right_sums(out, info)
    else:
        made.sums_right = False
    return bytes(out)


def tokens(text: str, chance: random.Random, made: Mutant) -> str:
    """Of text in lines and columns: another token, another order, lines and columns that are missing or twice."""
    for _ in range(chance.choice([1, 1, 2])):
        lines = text.split("\n")
        at = chance.randrange(len(lines))
        kind = chance.choice(["token"] * 5 + ["drop", "twice", "swap", "cut", "column", "ending"])
        if kind == "token":
            parts = re.split(r"([\t,\s=:\"]+)", lines[at])
            place = chance.randrange(len(parts))
            word = chance.choice(WORDS)
            made.what.append(f"line {at}: {parts[place][:40]!r} -> {word[:40]!r}")
            parts[place] = word
            lines[at] = "".join(parts)
        elif kind == "column":
            parts = lines[at].split("\t")
            del parts[chance.randrange(len(parts))]
            lines[at] = "\t".join(parts)
        elif kind == "drop":
            del lines[at]
        elif kind == "twice":
            lines.insert(at, lines[at])
        elif kind == "swap":
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == "ending":
            lines[at] += "\r"
        text = "\n".join(lines)
        if kind == "cut":
            text = text[: chance.randrange(len(text) + 1)]
        if kind != "token":
            made.what.append(f"{kind} line {at}")
    return text


def toml_value(text: str, chance: random.Random, made: Mutant) -> str:
    """A suite in which one value is another: most of them are still TOML, so that commands run."""
    place = chance.choice(list(re.finditer(r'"[^"\n]*"|\b[0-9]+\b', text)))
    made.what.append(f"{place.group()} -> {(value := chance.choice(TOML_VALUES))}")
    return text[: place.start()] + value + text[place.end() :]


def raw_zstd(body: bytes) -> bytes:
    """A frame of zstd whose blocks are stored as they are."""
    frame = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", len(body))
    pieces = [body[i : i + 100000] for i in range(0, len(body), 100000)] or [b""]
    for i, piece in enumerate(pieces):
        frame += ((len(piece) << 3) | (i == len(pieces) - 1)).to_bytes(3, "little") + piece
    return frame


def inside_records(folder: pathlib.Path, name: str, info: dict, maps: dict, chance: random.Random, made: Mutant) -> bytes:
    """A BLOW5 file whose compressed records hold a mutant of the plain file's records."""
    plain_info = maps[info["plain"]]
    header = (folder / name).read_bytes()[: info["blocks"][0][1]]
    start = plain_info["blocks"][0][1]
    plain = (folder / info["plain"]).read_bytes()
    inner = bytearray(plain)
    inner_fields = {"fields": [f for f in plain_info["fields"] if f[0] >= start and f[2] != "bytes of a record"], "blocks": plain_info["blocks"][1:-1]}
    for _ in range(chance.choice([1, 1, 2])):
        field(inner, inner_fields, chance, made.what)
    records = [bytes(inner[a + 8 : b]) for a, b in inner_fields["blocks"]]
    if chance.random() < 0.2:
        place = chance.randrange(len(records))
        records[place] = chance.choice([b"", records[place] + b"\0", records[place][:-1], bytes(1 << 24), records[place] * 2])
        made.what.append(f"record {place} of {len(records[place])} bytes")
    pack = {"zlib": zlib.compress, "zstd": raw_zstd}.get(info["record"], bytes)
    packed = [pack(body) for body in records]
    return header + b"".join(struct.pack("<Q", len(body)) + body for body in packed) + b"5WOLB"


def json_node(value, chance: random.Random, what: list):
    """A tree of JSON in which one thing is another."""
    places = []

    def walk(node):
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            places.append((node, key))
            if isinstance(child, (dict, list)):
                walk(child)

    walk(value)
    node, key = chance.choice(places)
    old = node[key]
    if isinstance(old, bool) or old is None:
        new = chance.choice([True, False, None, 0, "x"])
    elif isinstance(old, (int, float)):
        new = chance.choice([0, 1, -1, 2**64 - 1, 2**63, 2**64, 2**32, 2**53, 1e308, old + 1, old - 1, old * 2, 0.5, None, 10**15, 4096])
    elif isinstance(old, str):
        new = chance.choice(["", "../x", "/etc/hostname", "A" * 5000, "\x1b[31m\n", "\u202e", "manifest", "00000001.seg", old + "x", None, 3])
    else:
        new = chance.choice([[], {}, None, old, [old], [old, old] if isinstance(old, list) else 0])
        if isinstance(old, list) and old and chance.random() < 0.5:
            new = chance.choice([old[:-1], old + old, old[::-1], old * 50])
    what.append(f"{key!r}: {json.dumps(old)[:80]} -> {json.dumps(new)[:80]}")
    if chance.random() < 0.1 and isinstance(node, dict):
        del node[key]
    else:
        node[key] = new
    return value


def segment(data: bytes, info: dict, chance: random.Random, made: Mutant) -> bytes:
    """Pages or the footer of a network's segment; the sums follow."""
    pages, length = struct.unpack_from("<QQ", data, len(data) - 40)
    body, footer = bytearray(data[: pages * 4096]), data[len(data) - 40 - length : len(data) - 40]
    if chance.random() < 0.5:
        footer = json.dumps(json_node(json.loads(footer), chance, made.what), separators=(",", ":")).encode()
    else:
        inside = {"fields": [f for f in info["fields"] if f[0] < len(body)], "blocks": info["blocks"]}
        for _ in range(chance.choice([1, 1, 3])):
            field(body, inside, chance, made.what)
        if chance.random() < 0.2:
            generic(body, inside, chance, made.what)
            body += bytes(-len(body) % 4096)
    return sealed(bytes(body), footer)


def sealed(body: bytes, footer: bytes) -> bytes:
    low = lambda piece: struct.pack("<I", sums.xxh3(piece) & sums.M32)  # noqa: E731
    parts = b"".join(low(body[i : i + 4096]) for i in range(0, len(body), 4096))
    hashes = b"".join(low(parts[i : i + 4096]) for i in range(0, len(parts), 4096))
    tail = struct.pack("<QQQQ", len(body) // 4096, len(footer), sums.xxh3(hashes), sums.xxh3(footer))
    return body + parts + hashes + footer + tail + b"THALWSG2"


def log(data: bytes, info: dict, chance: random.Random, made: Mutant) -> bytes:
    out = bytearray(data)
    for _ in range(chance.choice([1, 1, 2])):
        field(out, info, chance, made.what)
    for start, end in info["blocks"]:
        size = struct.unpack_from("<I", out, start)[0]
        change = bytes(out[start + 24 : start + 24 + size if start + 24 + size <= len(out) else end])
        struct.pack_into("<Q", out, start + 16, sums.xxh3(change, sums.xxh3(bytes(out[start : start + 16]))))
    return bytes(out)


def manifest(data: bytes, _info: dict, chance: random.Random, made: Mutant) -> bytes:
    line = json.dumps(json_node(json.loads(data.rsplit(b"\n", 2)[0]), chance, made.what), separators=(",", ":")).encode()
    return line + b"\n%016x\n" % sums.xxh3(line)


def store(folder: pathlib.Path, name: str, info: dict, chance: random.Random, made: Mutant, place: pathlib.Path) -> None:
    shutil.copytree(folder / name, place)
    for _ in range(chance.choice([1, 1, 2])):
        file = chance.choice(sorted(info["files"]) + ["manifest"])
        data = (place / file).read_bytes()
        made.what.append(file)
        inner = manifest if file.startswith("manifest") else log if file.endswith(".log") else segment
        try:
            if chance.random() > RIGHT_SUMS:
                raise ValueError("its sums are left as they are")
            data = inner(data, info["files"][file], chance, made)
        except (ValueError, struct.error, IndexError):
            # So it is with what the first change left without a structure, and with segments without pages.
            data = binary(data, info["files"][file], chance, made)
            made.sums_right = False
        (place / file).write_bytes(data)


def bgzf(body: bytes) -> bytes:
    out = b""
    for piece in (body[:100], body[100:], b""):
        deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
        packed = deflate.compress(piece) + deflate.flush()
        out += b"\x1f\x8b\x08\x04" + bytes(4) + b"\0\xff\x06\0BC\x02\0" + struct.pack("<H", len(packed) + 25)
        out += packed + struct.pack("<II", zlib.crc32(piece), len(piece))
    return out


def odd(folder: pathlib.Path, name: str, info: dict, made: Mutant, place: pathlib.Path) -> None:
    """What is no mutant: the kinds of file that nobody expects, and whole files with names that nobody expects."""
    made.what.append(name)
    match info["odd"]:
        case "fifo":
            os.mkfifo(place)
        case "zero":
            place.symlink_to("/dev/zero")
        case "hole":
            with open(place, "wb") as file:
                file.truncate(3 << 30)
        case "empty":
            place.touch()
        case "folder":
            place.mkdir()
        case _:
            source = folder / info["like"]
            if info["like"].endswith(".body"):
                place.write_bytes(bgzf(source.read_bytes()))
            else:
                shutil.copytree(source, place) if source.is_dir() else shutil.copy(source, place)


def make(folder: pathlib.Path, name: str, maps: dict, chance: random.Random, place: pathlib.Path) -> Mutant:
    """Writes a mutant of the seed `name` to `place`."""
    made, info = Mutant(), maps[name]
    kind = info["kind"]
    if kind == "odd":
        odd(folder, name, info, made, place)
        return made
    if kind == "alone":
        return made
    if kind in ("store", "glia"):
        store(folder, name, info, chance, made, place)
        return made
    data = (folder / name).read_bytes()
    if kind == "tiny" and chance.random() < 0.7:
        out = toml_value(data.decode(), chance, made).encode()
    elif kind in ("slow5", "csv", "ids", "suite", "tiny"):
        out = tokens(data.decode(), chance, made).encode("utf-8", "surrogateescape")
        if chance.random() < 0.1:
            out = binary(out, {}, chance, made) if out else out
    elif kind in ("results", "stopped"):
        lines = data.decode().splitlines()
        at = chance.randrange(len(lines))
        if chance.random() < 0.7:
            lines[at] = json.dumps(json_node(json.loads(lines[at]), chance, made.what))
            out = ("\n".join(lines) + "\n").encode()
        else:
            out = tokens(data.decode(), chance, made).encode("utf-8", "surrogateescape")
    elif kind == "bam":
        out = bgzf(binary(data, info, chance, made)) if chance.random() < 0.7 else binary(bgzf(data), {}, chance, made)
    elif kind == "blow5" and chance.random() < 0.6:
        out = inside_records(folder, name, info, maps, chance, made)
    elif kind == "blow5" and chance.random() < 0.3:
        start, end = info["text"]
        text = tokens(data[start:end].decode(), chance, made).encode("utf-8", "surrogateescape")
        out = data[:64] + struct.pack("<I", len(text)) + text + data[end:]
    else:
        out = binary(data, info, chance, made)
    place.write_bytes(out)
    return made
