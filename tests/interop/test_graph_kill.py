"""`kill -9` of the program while it changes a store, at moments chosen by chance: what it acknowledged is there afterwards, nothing is
there by half, and the store is whole. 40 runs here, of which some end before they can be killed; `make kills` does 2,000 and prints what happened."""

import collections
import contextlib
import csv
import itertools
import json
import os
import random
import subprocess
import time

RUNS = int(os.environ.get("KILLS", "40"))
# Each store lives through so many.
LIVES = 50
# As `graph insert` makes them.
NEW, SCATTER = 1 << 40, 2_654_435_761


class Store:
    """A store, and what should be in it: edges of each population, and vertices of each type."""

    def __init__(self, binary, folder, chance):
        self.binary, self.folder, self.chance = binary, folder, chance
        self.path = folder / "s"
        self.seconds = collections.defaultdict(lambda: 0.03)
        self.tally = collections.Counter()
        self.files = itertools.count()
        self.ask("add", self.path, "--edges", "gap:1-2", "--between", "Neuron,Neuron")
        self.ask("add", self.path, "--edges", "Astrocyte-Synapse:" + ",".join(f"{i}-{i}" for i in range(7)), "--between", "Astrocyte,Synapse")
        self.state = self.read()

    def ask(self, *arguments):
        done = subprocess.run([self.binary, "graph", *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    def read(self):
        info = json.loads(self.ask("info", self.path, "--json"))
        state = {}
        for kind, names in (("edges", [p["name"] for p in info["populations"]]), ("vertices", [t["name"] for t in info["types"]])):
            for name in names:
                out = self.folder / "out.csv"
                self.ask("export", self.path, out, f"--{kind}", name, "--force")
                with open(out) as lines:
                    rows = [tuple(map(int, row)) for row in itertools.islice(csv.reader(lines), 1, None)]
                assert len(set(rows)) == len(rows)
                state[kind, name] = frozenset(rows)
                out.unlink()
        return state

    def listed(self, pairs):
        path = self.folder / f"{next(self.files)}.txt"
        path.write_text("".join(f"{a} {b}\n" for a, b in pairs))
        return path

    def pairs(self, most):
        count = self.chance.choice([1, 3, most])
        return [(self.chance.randrange(60), self.chance.randrange(3000)) for _ in range(self.chance.randint(1, count))]

    def change(self):
        """What to do, and the states that it may lead to: one for each part that is acknowledged, after the one that is there."""
        verb = self.chance.choice(["add", "add", "remove", "vertices", "clear", "compact", "import", "import", "insert", "insert"])
        after = dict(self.state)
        if verb == "add":
            pairs = self.pairs(3000)
            arguments = ["add", self.path, "--edges", f"gap:{self.listed(pairs)}"]
            # An undirected edge is kept from its lesser end.
            self.joined(after, "gap", [(min(pair), max(pair)) for pair in pairs])
        elif verb == "remove":
            gone = self.chance.sample(sorted(self.state["edges", "gap"]), min(len(self.state["edges", "gap"]), self.chance.choice([1, 40])))
            arguments = ["remove", self.path, "--edges", f"gap:{self.listed(gone or [(1, 2)])}"]
            after["edges", "gap"] -= set(gone)
        elif verb == "vertices":
            gone = {self.chance.randrange(60) for _ in range(9)}
            arguments = ["remove", self.path, "--vertices", "Neuron:" + ",".join(map(str, sorted(gone)))]
            after["vertices", "Neuron"] = frozenset(row for row in after["vertices", "Neuron"] if row[0] not in gone)
            for key in list(after):
                if key[0] == "edges" and key[1] != "Astrocyte-Synapse":
                    after[key] = frozenset(edge for edge in after[key] if gone.isdisjoint(edge))
        elif verb == "clear":
            arguments = ["remove", self.path, "--edges", "Astrocyte-Synapse"]
            after["edges", "Astrocyte-Synapse"] = frozenset()
        elif verb == "compact":
            arguments = ["compact", self.path]
        elif verb == "import":
            name = f"p{self.chance.randrange(4)}"
            pairs = self.pairs(20_000)
            path = self.folder / f"{name}.csv"
            path.write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in pairs))
            arguments = ["import", path, self.path, "--from-type", "Neuron", "--to-type", "Neuron"]
            self.joined(after, name, pairs)
        else:
            count, batch = self.chance.choice([(40, 1), (300, 10), (3000, 1000)])
            vertices = len(self.state["vertices", "Astrocyte"])
            edges = [(i * SCATTER % vertices, NEW + i) for i in range(count)]
            arguments = ["insert", self.path, "--edges", count, "--batch", batch, "--tell"]
            states = [self.state]
            for first in range(0, count, batch):
                after = dict(states[-1])
                after["edges", "Astrocyte-Synapse"] |= set(edges[first : first + batch])
                after["vertices", "Astrocyte"] |= {(edge[0],) for edge in edges[first : first + batch]}
                after["vertices", "Synapse"] |= {(edge[1],) for edge in edges[first : first + batch]}
                states.append(after)
            return verb, arguments, states
        return verb, arguments, [self.state, after]

    def joined(self, state, name, pairs):
        state["edges", name] = state.get(("edges", name), frozenset()) | set(pairs)
        state["vertices", "Neuron"] |= {(end,) for pair in pairs for end in pair}

    def live(self):
        """One life of a writer."""
        verb, arguments, states = self.change()
        kind = (verb, len(states))
        began = time.monotonic()
        child = subprocess.Popen([self.binary, "graph", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        before = self.sizes()
        if self.chance.random() < 0.7:
            # When it has begun to write.
            while child.poll() is None and self.sizes() == before:
                pass
            time.sleep(self.chance.choice([0, 0.001, 0.01, 0.5 * self.seconds[kind]]) * self.chance.random())
        else:
            time.sleep(self.chance.uniform(0, 1.15 * self.seconds[kind]))
        child.kill()
        out, err = child.communicate()
        seconds = time.monotonic() - began
        # What is to be removed may not be there.
        assert child.returncode in (0, -9) or "there" in err and verb in ("remove", "vertices"), (arguments, child.returncode, err)
        told = [line for line in out.splitlines() if line.startswith("durable\t")]
        if child.returncode != -9:
            self.seconds[kind] = 0.7 * self.seconds[kind] + 0.3 * seconds
            acknowledged = len(states) - 1
        else:
            # Nothing is known of how long it takes, but that it takes longer.
            self.seconds[kind] = max(self.seconds[kind], 1.1 * seconds)
            acknowledged = len(told)
        assert "whole" in self.ask("check", self.path)
        found = self.read()
        possible = states[acknowledged : acknowledged + 2]
        assert found in possible, (arguments, acknowledged, len(states))
        done = acknowledged + possible.index(found) if verb != "compact" else 0
        self.tally["killed" if child.returncode == -9 else "finished"] += 1
        if child.returncode == -9:
            self.tally[f"killed {verb}"] += 1
            self.tally["killed, had written"] += self.sizes() != before
            self.tally["killed, something done"] += done > 0
            self.tally["killed, something acknowledged"] += acknowledged > 0
            self.tally["killed, done and not acknowledged"] += done > acknowledged
            self.tally["killed, left a file behind"] += self.has_strays()
        self.state = found

    def sizes(self):
        found = set()
        for entry in os.scandir(self.path):
            with contextlib.suppress(FileNotFoundError):
                found.add((entry.name, entry.stat().st_size, entry.stat().st_ino))
        return found

    def has_strays(self):
        names = [path.name for path in self.path.iterdir()]
        segments = json.loads(self.ask("info", self.path, "--json"))["segments"]
        return len(names) - names.count("manifest.copy") > 3 + segments

    def end(self):
        """Of all that was killed, nothing is left."""
        self.ask("compact", self.path)
        names = sorted(path.suffix or path.name for path in self.path.iterdir())
        assert names == [".copy", ".log", ".seg", "lock", "manifest"], names


def test_acknowledged_changes_survive_a_kill(thalweg_binary, tmp_path):
    tally = collections.Counter()
    for number, first in enumerate(range(0, RUNS, LIVES)):
        folder = tmp_path / str(number)
        folder.mkdir()
        store = Store(thalweg_binary, folder, random.Random(number))
        for _ in range(min(LIVES, RUNS - first)):
            store.live()
        store.end()
        tally += store.tally
        # With -s.
        print(json.dumps(dict(sorted(tally.items()))), flush=True)
    assert tally["killed"] > RUNS // 4, tally
