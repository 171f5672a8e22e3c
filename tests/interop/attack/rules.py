"""Runs the program on a mutant, and holds what it did against the rules."""

import contextlib
import hashlib
import os
import pathlib
import re
import resource
import signal
import stat
import subprocess
import time

# 130 and 143 are those of signals, which the runner sends only to what hangs.
CODES = {0, 1, 2, 3, 130, 143}
# Seconds of processor time of a run, all its processes together.
MOST_CPU = 20
# Seconds after which a run hangs, whatever it does: far more than any takes on a busy machine.
MOST_WALL = 150
# Above the budget.
MOST_MEMORY = 256 << 20
MOST_OUTPUT = 64 << 20
# Below it allocations fail, so that a run which takes everything harms nobody.
ADDRESSES = 8 << 30
# Control characters, and those that turn the direction of text; line breaks and tabs are the program's own.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# JSON keeps what is not escaped by its own rules; of tables in CSV, quotes protect line breaks and what else there is.
CONTROL_IN_JSON = re.compile("[\x00-\x08\x0b-\x1f]")


def snapshot(root: pathlib.Path) -> dict:
    """Every name below a folder, and what is there."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = pathlib.Path(folder, name)
            info = path.lstat()
            what = [stat.S_IFMT(info.st_mode), info.st_mode & 0o7777]
            if stat.S_ISREG(info.st_mode):
                what += [info.st_size, info.st_mtime_ns]
                if info.st_size < 8 << 20:
                    what.append(hashlib.sha1(path.read_bytes()).hexdigest())
            elif stat.S_ISLNK(info.st_mode):
                what.append(os.readlink(path))
            found[str(path.relative_to(root))] = what
    return found


def _limits() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Whatever else fails: no process goes on for ever.
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


def _cpu_of_session(session: int) -> float:
    ticks = 0
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = path.read_text().rsplit(")", 1)[1].split()
            if int(words[3]) == session:
                ticks += sum(map(int, words[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


class Outcome:
    """How a run ended."""

    def __init__(self, code, out, err, cpu, wall, memory, stopped):
        self.code, self.out, self.err, self.cpu, self.wall, self.memory, self.stopped = code, out, err, cpu, wall, memory, stopped


def call(argv: list[str], cwd: pathlib.Path, environment: dict) -> Outcome:
    started = time.monotonic()
    stopped = None
    with open(cwd / "stdout", "w+b") as out, open(cwd / "stderr", "w+b") as err:
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd, env=environment, start_new_session=True, preexec_fn=_limits
        )
        looked, pause = started, 0.002
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            now = time.monotonic()
            if now - looked > 2:
                looked = now
                cpu, written = _cpu_of_session(child.pid), os.fstat(out.fileno()).st_size
                why = f"{cpu:.0f} s of CPU" if cpu > MOST_CPU else f"{now - started:.0f} s" if now - started > MOST_WALL else f"{written} bytes of output" if written > MOST_OUTPUT else None
                if why:
                    status, usage, heeded = _stop(child.pid)
                    stopped = f"{why}; {heeded}"
                    break
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(1 << 20))
    return Outcome(child.returncode, *texts, usage.ru_utime + usage.ru_stime, time.monotonic() - started, usage.ru_maxrss << 10, stopped)


def _stop(pid: int):
    """Ctrl-C, and then by force."""
    os.kill(pid, signal.SIGINT)
    started = time.monotonic()
    while time.monotonic() - started < 20:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return status, usage, f"heeded Ctrl-C within {time.monotonic() - started:.1f} s"
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    return status, usage, "did not heed Ctrl-C in 20 s"


def broken(outcome: Outcome, argv: list[str], budget: int) -> list[tuple[str, str]]:
    """The rules that a run broke, with what it did."""
    found = []
    err = outcome.err.decode(errors="replace")
    out = outcome.out.decode(errors="replace")
    if outcome.stopped:
        found.append(("hang", outcome.stopped))
    elif outcome.code not in CODES or "panicked" in err:
        found.append(("exit", f"{outcome.code}: {err[-600:]}"))
    elif outcome.code == 1 and not err.strip() and not out.strip():
        found.append(("exit", "1 without a word"))
    if not outcome.stopped and outcome.cpu > MOST_CPU:
        found.append(("hang", f"{outcome.cpu:.1f} s of CPU"))
    if outcome.memory > budget + MOST_MEMORY:
        found.append(("memory", f"{outcome.memory >> 20} MiB with a budget of {budget >> 20} MiB"))
    is_json = any(word in argv for word in ("--json", "--slices"))
    for name, text, rule in (("stdout", out, CONTROL_IN_JSON if is_json else CONTROL), ("stderr", err, CONTROL)):
        if match := rule.search(text):
            found.append(("control", f"{ascii(match.group())} on {name}: {ascii(text[max(0, match.start() - 60) : match.end() + 40])}"))
    return found


def touched(before: dict, after: dict, allowed: list[str]) -> list[tuple[str, str]]:
    """What changed although nobody named it. `allowed` are beginnings of paths."""
    found = []
    for path in sorted(before.keys() | after.keys()):
        name = path.rsplit("/", 1)[-1]
        if path in after and (name.startswith(".thalweg-") or name.endswith(".tmp")) and path not in before:
            found.append(("leftover", path))
        elif before.get(path) != after.get(path) and not any(path.startswith(start) for start in allowed):
            how = "made" if path not in before else "removed" if path not in after else "changed"
            found.append(("outside", f"{how}: {path}"))
    return found
