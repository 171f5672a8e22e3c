"""Some hundred runs of `make attack`: mutants that know the structure of what they damage, and every verb on them. The rules are in
attack/rules.py and attack/__main__.py: exit codes, time, memory, what is printed, what is touched, values equal to the peers'."""

import os
import subprocess
import sys

from nanopore import HERE

RUNS = int(os.environ.get("ATTACK_RUNS", "300" if os.environ.get("THOROUGH") else "100"))


def test_mutants(thalweg_binary, tmp_path):
    words = [sys.executable, HERE / "attack", "--runs", RUNS, "--jobs", 2, "--out", tmp_path, "--binary", thalweg_binary]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]


def test_the_rules_find_what_they_forbid(tmp_path):
    """A program that does all that is forbidden."""
    sys.path.insert(0, str(HERE / "attack"))
    try:
        import rules
    finally:
        sys.path.remove(str(HERE / "attack"))
    (tmp_path / "somebody's").write_text("1")
    before = rules.snapshot(tmp_path)
    program = "import os, sys\nopen(\"somebody's\", 'w').write('2')\nopen('.thalweg-1-0.tmp', 'w')\nx = b'1' * (400 << 20)\nprint('\\x1b[31m', flush=True)\nos._exit(101)"
    outcome = rules.call([sys.executable, "-c", program], tmp_path, dict(os.environ))
    assert {rule for rule, _ in rules.broken(outcome, [], 1 << 20)} == {"exit", "memory", "control"}
    changes = rules.touched(before, rules.snapshot(tmp_path), ["std"])
    assert changes == [("leftover", ".thalweg-1-0.tmp"), ("outside", "changed: somebody's")]
    loop = rules.call([sys.executable, "-c", "while True: pass"], tmp_path, dict(os.environ)) if os.environ.get("ATTACK_SLOW") else None
    assert loop is None or loop.stopped


def test_checksums():
    """Those of the mutants are those of the formats."""
    sys.path.insert(0, str(HERE / "attack"))
    try:
        import sums
    finally:
        sys.path.remove(str(HERE / "attack"))
    assert sums.splitmix(bytes(range(21))) == 0x6C88A28D81E742FF
    # From the sources of lookup3 and XXH3.
    assert sums.lookup3(b"Four score and seven years ago") == 0x17770551
    assert sums.xxh3(b"") == 0x2D06800538D394C2
