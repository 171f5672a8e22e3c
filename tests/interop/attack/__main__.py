"""Mutants of every format, and every verb on them: `python tests/interop/attack --runs 6000`.

A run is a number: with the seed it says the file, the mutant and the verb, so that `--only NUMBER` repeats it. Results are
kept below --out, and runs that are there are not done again.
"""

import argparse
import collections
import contextlib
import csv
import hashlib
import json
import os
import pathlib
import re
import random
import shutil
import subprocess
import sys
import time

import mutants
import rules
import verbs

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
# Findings that are known, and not mended yet: the rule, and a part of "KIND VERB DETAIL". They are counted, and no failure.
KNOWN: list[tuple[str, str]] = []


def unescaped(name: str) -> str:
    """A name in a table. Control characters are escaped as in JSON."""
    return re.sub(r"\\u([0-9a-f]{4})", lambda code: chr(int(code[1], 16)), name)


class Attacker:
    """Does runs, in a folder of its own."""

    def __init__(self, binary: pathlib.Path, seeds: pathlib.Path, work: pathlib.Path, findings: pathlib.Path, seed: int):
        self.binary, self.seeds, self.work, self.findings, self.seed = binary, seeds, work, findings, seed
        self.maps = json.loads((seeds / "map.json").read_text())
        self.truth = json.loads((seeds / "truth.json").read_text())
        self.of_kind = collections.defaultdict(list)
        for name, info in self.maps.items():
            self.of_kind[info["kind"]].append(name)
        self.wheel = [kind for kind, share in verbs.SHARES.items() if self.of_kind[kind] for _ in range(share)]
        random.Random(0).shuffle(self.wheel)
        self.server = None

    def peer(self, kind: str, path: pathlib.Path) -> dict:
        if self.server is None or self.server.poll() is not None:
            self.server = subprocess.Popen([sys.executable, HERE / "peers.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.server.stdin.write(json.dumps({"kind": kind, "path": str(path)}) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline() or '{"refused": "the peers ended"}')

    def run(self, number: int) -> dict:
        chance = random.Random(f"{self.seed}:{number}")
        kind = self.wheel[number % len(self.wheel)]
        turn = number // len(self.wheel) * verbs.SHARES[kind] + self.wheel[: number % len(self.wheel)].count(kind)
        pairs = [(name, verb) for name in self.of_kind[kind] for verb in self.verbs_of(name) for _ in range(verbs.OFTEN.get(verb, 1))]
        random.Random(kind).shuffle(pairs)
        name, verb = pairs[turn % len(pairs)]
        known = self.verbs_of(name)
        # What stands for a format is used as that format.
        drawn, kind = kind, self.maps[name].get("as", kind)
        case = self.work / str(number)
        shutil.rmtree(case, ignore_errors=True)
        places = self.lay_out(case, name, kind, known[verb], chance)
        made = mutants.make(self.seeds, name, self.maps, chance, places["file"])
        if kind == "index":
            os.utime(places["file"], ns=(time.time_ns(), time.time_ns()), follow_symlinks=False)
        if "resumed" in places and places["file"].is_file() and drawn != "odd":
            # An earlier run left something by the name of the output.
            shutil.copy(places["file"], places["resumed"] / "mutant.blow5")
        argv = [str(self.binary), *(word.format(**places) for word in known[verb])]
        environment = {"PATH": os.environ["PATH"], "HOME": str(case / "home"), "XDG_CACHE_HOME": str(case / "cache"), "TMPDIR": str(case / "tmp"), "TERM": "dumb"}
        before = rules.snapshot(case)
        outcome = rules.call(argv, case / "cwd", environment)
        budget = verbs.BUDGET_BYTES if "--memory" in argv else verbs.DEFAULT_BYTES
        found = rules.broken(outcome, argv, budget)
        touched = rules.touched(before, rules.snapshot(case), self.allowed(name, kind, verb, places, case))
        # What a process leaves that was killed, the next one removes.
        found += [(rule, detail) for rule, detail in touched if rule != "leftover" or outcome.code >= 0]
        compared = "no"
        if outcome.code == 0 and not outcome.stopped:
            compared, wrong = self.values(kind, name, verb, places, outcome.out.decode(errors="replace"), made, environment)
            found += wrong
        row = {"run": number, "kind": drawn, "file": name, "verb": verb, "code": outcome.code, "cpu": round(outcome.cpu, 2), "memory": outcome.memory, "compared": compared}
        if found:
            row |= {"found": found, "what": made.what, "sums_right": made.sums_right, "argv": argv[1:], "stderr": outcome.err.decode(errors="replace")[-1500:]}
            kept = self.findings / str(number)
            shutil.rmtree(kept, ignore_errors=True)
            # What is odd is made again by the number of the run.
            shutil.copytree(case / "in", kept, symlinks=True) if drawn != "odd" else kept.mkdir(parents=True)
            (kept / "finding.json").write_text(json.dumps(row, indent=1))
        shutil.rmtree(case)
        return row

    def verbs_of(self, name: str) -> dict:
        info = self.maps[name]
        return verbs.VERBS[info.get("as", info["kind"])]

    def lay_out(self, case: pathlib.Path, name: str, kind: str, words: list[str], chance: random.Random) -> dict:
        """The folder of a run: the mutant is among other files, and there are others around."""
        for folder in ("in", "out", "home", "cache", "tmp", "cwd", "beside"):
            (case / folder).mkdir(parents=True)
        for place in ("in/bystander.blow5", "in/bystander.idx", "out/bystander", "beside/neighbour.h5", "bystander", "cwd/bystander"):
            (case / place).write_bytes(b"somebody's")
        places = {"out": case / "out/new", "ids": case / "in/list.txt", "ending": verbs.ENDINGS.get(kind, ""), "beside": case / "beside"}
        places |= {"number": chance.choice(mutants.NUMBERS), "small": chance.choice(mutants.SMALL), "ranks": chance.choice(mutants.RANKS)} if kind == "alone" else {}
        shutil.copy(self.seeds / "ids.txt", places["ids"])
        text = " ".join(words)
        for word, source in (("store", "store"), ("reads", "zstd_svb-zd.blow5"), ("edges", "edges.csv"), ("arrays", "latest.h5")):
            if f"{{{word}}}" in text or f":{{{word}}}" in text:
                places[word] = case / "in" / source
                shutil.copytree(self.seeds / source, places[word]) if source == "store" else shutil.copy2(self.seeds / source, places[word])
        if kind == "index":
            places["of"] = case / "in" / self.maps[name]["of"]
            shutil.copy2(self.seeds / places["of"].name, places["of"])
            places["file"] = places["of"].with_name(f"{places['of'].name}.idx")
        else:
            # 252 bytes: with the ending of an index, a name is longer than file systems allow.
            stem = {"bytes": "m\udcff\udc9b\udc80", "long": "m" * (252 - len(verbs.ENDINGS[kind]))}.get(self.maps[name].get("odd"), "mutant")
            places["file"] = case / "in" / f"{stem}{verbs.ENDINGS[kind]}"
        if "{resumed}" in text:
            places["resumed"] = case / "out/new"
            places["resumed"].mkdir()
        return places

    @staticmethod
    def allowed(name: str, kind: str, verb: str, places: dict, case: pathlib.Path) -> list[str]:
        relative = lambda path: str(path.relative_to(case))  # noqa: E731
        paths = [relative(places["out"]), "cache", "cwd/std"]
        if verb in verbs.CHANGE_STORE:
            paths += [relative(places["file" if kind in ("store", "glia") else "store"]) + "/"] if kind in ("store", "glia") or "store" in places else []
        if verb == "bench --resume":
            paths.append(relative(places["file"]))
        # An index that does not fit is built anew by verbs that look for reads by their ids.
        for one in ("file", "of", "reads", "arrays"):
            if one in places:
                paths.append(relative(places[one]) + ".idx")
        return paths

    def values(self, kind: str, name: str, verb: str, places: dict, out: str, made, environment: dict) -> tuple[str, list]:
        """Compares what both accept."""
        rows = {unescaped(line.split("\t")[0]): line.split("\t")[1:] for line in out.splitlines()}
        like = self.maps[name].get("like")
        if self.maps[name]["kind"] in ("odd", "alone") and kind != "index":
            # A name that is odd changes no value.
            if not verb.startswith("digest") or self.maps[name].get("odd") not in ("bytes", "long"):
                return "no", []
            true = {line.split("\t")[0]: line.split("\t")[1:] for line in self.truth[like].splitlines()}
            return "yes", [("value", "other values by this name")] if rows != true else []
        if kind in ("index", "ids"):
            of = self.maps[name].get("of", "zstd_svb-zd.blow5")
            if verb not in ("digest", "digest --no-index", "read --ids") or (of.endswith(".h5") and made.sums_right):
                return "no", []
            true = {line.split("\t")[0]: line.split("\t")[1:] for line in self.truth[of].splitlines()}
            wrong = [key for key in rows if rows[key] != true.get(key)] + ([key for key in true if key not in rows] if verb.startswith("digest") else [])
            return "yes", [("value", f"{wrong[:3]} with this index")] if wrong else []
        if verb == "import" and kind == "sonata":
            return self.edges(places, environment)
        if not verb.startswith("digest"):
            return "no", []
        answer = self.peer(kind, places["file"])
        if "refused" in answer:
            return "the peer refuses", []
        peer = answer["rows"]
        if kind in ("hdf5", "nexus", "sonata") and name in self.truth and any(what.startswith("TREE") for what in made.what):
            # Where a key is damaged, libhdf5 does not find the chunk and gives fill values; it is right to find it.
            for line in self.truth[name].splitlines():
                key, *row = line.split("\t")
                if rows.get(key) == row:
                    peer.pop(key, None)
        if any(what.startswith(("BTLF", "BTIN")) for what in made.what):
            # libhdf5 searches a tree that is not in order, and thalweg reads all of it: each finds other chunks.
            peer = {key: row for key, row in peer.items() if kind != "hdf5" and kind != "nexus"}
        wrong = [f"{key}: {rows[key]}, the peer {peer[key]}" for key in rows if key in peer and rows[key] != peer[key]]
        if kind in ("slow5", "blow5", "pod5") or (kind == "fast5" and name.startswith("multi")):
            wrong += [f"only one has {key}" for key in rows.keys() ^ peer.keys()]
        return "yes", [("value", "; ".join(wrong[:4]))] if wrong else []

    def edges(self, places: dict, environment: dict) -> tuple[str, list]:
        answer = self.peer("edges", places["file"])
        if "refused" in answer:
            return "the peer refuses", []
        wrong = []
        for population, row in answer["rows"].items():
            table = places["out"].with_name("edges.csv")
            argv = [str(self.binary), "graph", "export", str(places["out"]), str(table), "--edges", population, "--force"]
            outcome = rules.call(argv, places["out"].parent.parent / "cwd", environment)
            if outcome.code != 0:
                wrong.append(f"{population} was imported, and is not exported: {outcome.err[-200:]!r}")
                continue
            with open(table, newline="") as lines:
                pairs = sorted((int(row[0]), int(row[1])) for row in list(csv.reader(lines))[1:])
            if hashlib.sha256(repr(pairs).encode()).hexdigest() != row[0]:
                wrong.append(f"{population}: other edges ({len(pairs)})")
        return "yes", [("value", "; ".join(wrong))] if wrong else []


def is_known(row: dict, rule: str, detail: str) -> bool:
    return any(rule == known and part in f"{row['kind']} {row['verb']} {detail}" for known, part in KNOWN)


def rows_of(folder: pathlib.Path) -> dict[int, dict]:
    rows = {}
    for path in folder.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            # The last line of a worker that was stopped, or is writing, may be a part of one.
            with contextlib.suppress(ValueError):
                row = json.loads(line)
                rows[row["run"]] = row
    return rows


def worker(options, place: int, jobs: int) -> None:
    out = options.out
    done = rows_of(out).keys()
    attacker = Attacker(options.binary, out / "seeds", out / f"work{place}", out / "findings", options.seed)
    with open(out / f"{place}-of-{jobs}.jsonl", "a") as results:
        print(file=results, flush=True)
        for number in range(options.first + place, options.first + options.runs, jobs):
            if number not in done:
                print(json.dumps(attacker.run(number)), file=results, flush=True)


def summary(rows: dict[int, dict]) -> int:
    """Prints a table; returns how many findings nobody knew."""
    kinds = collections.defaultdict(collections.Counter)
    findings = []
    for row in rows.values():
        tally = kinds[row["kind"]]
        tally["runs"] += 1
        tally["read" if row["code"] == 0 else "refused"] += 1
        tally["compared"] += row["compared"] == "yes"
        for rule, detail in row.get("found", []):
            known = is_known(row, rule, detail)
            tally["known" if known else "findings"] += 1
            findings += [] if known else [f"run {row['run']}: {rule}: {row['file']}, {row['verb']}: {detail[:200]} ({'; '.join(row['what'])[:200]})"]
    columns = ("runs", "read", "refused", "compared", "known", "findings")
    for line in sorted(findings):
        print(line)
    print("\t".join(("kind", "verbs", *columns)))
    for kind, tally in sorted(kinds.items()):
        print("\t".join([kind, str(len(verbs.VERBS.get(kind, ()))), *(str(tally[column]) for column in columns)]))
    total = sum(kinds.values(), collections.Counter())
    print("\t".join(["all", str(len({verb for known in verbs.VERBS.values() for verb in known})), *(str(total[column]) for column in columns)]))
    return total["findings"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=6000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--only", type=int, help="do this run again, and say what happened")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=pathlib.Path, default=REPOSITORY / "target/attack")
    parser.add_argument("--binary", type=pathlib.Path, default=pathlib.Path(os.environ.get("THALWEG_BIN", REPOSITORY / "target/debug/thalweg")))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.binary = options.binary.resolve()
    if options.worker:
        worker(options, *map(int, options.worker.split("/")))
        return 0
    options.out = options.out.resolve() / f"seed-{options.seed}"
    options.out.mkdir(parents=True, exist_ok=True)
    if not (options.out / "seeds/map.json").exists():
        subprocess.run([sys.executable, HERE / "seeds.py", options.binary, options.out / "seeds"], check=True)
    if options.only is not None:
        attacker = Attacker(options.binary, options.out / "seeds", options.out / "work", options.out / "findings", options.seed)
        row = attacker.run(options.only)
        print(json.dumps(row, indent=1))
        return int("found" in row)
    words = [sys.executable, HERE, "--runs", options.runs, "--first", options.first, "--seed", options.seed, "--out", options.out, "--binary", options.binary]
    workers = [subprocess.Popen([*map(str, words), "--worker", f"{i}/{options.jobs}"]) for i in range(options.jobs)]
    told = time.monotonic()
    try:
        while any(one.poll() is None for one in workers):
            time.sleep(0.2)
            if time.monotonic() - told > 15:
                told = time.monotonic()
                rows = rows_of(options.out)
                print(f"{len(rows)} of {options.runs} runs, {sum('found' in row for row in rows.values())} with findings", flush=True)
    finally:
        for one in workers:
            one.terminate() if one.poll() is None else None
    if any(one.returncode for one in workers):
        return 1
    return int(summary(rows_of(options.out)) > 0)


if __name__ == "__main__":
    sys.exit(main())
