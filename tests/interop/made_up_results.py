"""A results file with all that a report can show, hostile names among it. The figures are made up; no report is published
from them."""

import json

HOST = {
    "cpu_model": "Made-up CPU", "architecture": "x86_64", "cpus_online": 8, "cpus_usable": 8, "cpu_caches": [],
    "governor": "performance", "kernel": "6.12.0", "distribution": "None", "memory_bytes": 64 << 30,
    "cgroup_memory_bytes": None, "cgroup_cpus": None, "container": None, "virtual_machine": False,
}  # fmt: skip
FILE = "reads & <more>.blow5"
BYTES = 1_000_000_000
HOSTILE = "</script><img src=x onerror=alert(1)> %{x} var(--bad)"


def arm(name: str, **more) -> dict:
    command = {"argv": ["program", "{file}"]}
    return {"name": name, "workload": command, "files": [FILE], "level": "cold", "needs": "whole_files", "decoder": True, **more}


def trial(session: str, name: str, number: int | None, position: int, seconds: float, **more) -> dict:
    stages = {"fetch": {"busy_s": 0.4 * seconds, "exposed_s": 0.1 * seconds}, "decode": {"busy_s": 3 * seconds, "exposed_s": 0.6 * seconds}}
    report = {"workload": "x", "version": "x 1.0", "open_to_last_s": seconds, "samples": BYTES, "bytes_decoded": 2 * BYTES, "digest": "d", "stages": stages}
    usage = {
        "wall_s": seconds + 0.01, "user_s": 3 * seconds, "system_s": 0.2, "max_rss_bytes": 1 << 27, "peak_anon_bytes": 1 << 26,
        "peak_file_bytes": 1 << 22, "device_read_bytes": BYTES, "memory_samples": 9,
    }  # fmt: skip
    load = {"load_average_before": 0.5, "cpu_pressure": 0.01, "io_pressure": 0.2, "other_cpu_s": 0.01, "stolen_cpu_s": 0.3 if number == 3 else 0.0}
    return {
        "schema": "thalweg.trial/1", "comparison": session, "arm": name, "round": number, "position": position, "attempt": 0,
        "started_unix_s": 1.8e9, "command": f"program {FILE}", "level_asked": "cold", "level": "cold", "rejected": None,
        "failed": None, "time_s": seconds, "needed_bytes": BYTES, "prepared": None,
        "outcome": {"usage": usage, "load": load, "report": report}, **more,
    }  # fmt: skip


def probe(session: str) -> dict:
    points = [
        {
            "block_bytes": block, "depth": depth, "scattered": False, "bytes_per_s": rate,
            "windows": [{"offset_bytes": 0, "bytes": 1000, "seconds": 1000 / (rate * f)} for f in (0.9, 1, 1.1)],
        }
        for block in (1 << 18, 1 << 20)
        for depth in (1, 2, 4, 8, 16)
        for rate in [min(2.4e9, 5e8 * depth * (1.2 if block == 1 << 20 else 1))]
    ]  # fmt: skip
    found = {
        "file": FILE, "file_bytes": BYTES, "direct": True, "points": points, "single_stream_bytes_per_s": 7e8,
        "memory": [{"threads": 1, "bytes_per_s": 9e9}], "notes": ["the probe was made up"],
    }  # fmt: skip
    return {"schema": "thalweg.limit/1", "comparison": session, "probe": found}


def comparison(name: str, arms: list[tuple[dict, float]], rounds: int = 9, suite: dict | None = None, odd: bool = False) -> list[dict]:
    session = {
        "schema": "thalweg.session/1", "id": name, "name": name, "gauge_version": "0.1.0", "started_unix_s": 1.8e9, "host": HOST,
        "places": [{"file": FILE, "bytes": BYTES, "place": None}], "arms": [a for a, _ in arms], "control": len(arms) - 1,
        "rounds": rounds, "clock": "time_to_samples", "from_a_later_version": {"yes": True}, **({"suite": suite} if suite else {}),
    }  # fmt: skip
    lines = [session, probe(name)]
    for number in range(rounds):
        for position, (a, seconds) in enumerate(arms):
            scatter = 1 + 0.03 * ((7 * number + 3 * position) % 5 - 2)
            more = {"rejected": "2.0 % of its pages were resident before it started, at most 1 % may be", "level": None} if odd and number == 4 and position == 1 else {}
            far = 1.8 if odd and number == 6 and position == 2 else 1
            lines.append(trial(name, a["name"], number, position, seconds * scatter * far, **more))
    lines.append({"schema": "thalweg.comparison/1", "id": name, "summaries": []})
    return lines


def everything() -> str:
    """The lines of the file."""
    again = arm("baseline (again)")
    lines = comparison("cold: all sorts", [(arm("baseline"), 1.0), (arm("twice as slow"), 2.0), (arm(HOSTILE, label="hostile"), 1.02), (again, 1.01)], odd=True)
    threads = [(arm(f"reader, threads={n}", settings={"threads": n}), 4.0 / n + 0.2) for n in (1, 2, 4, 8)]
    lines += comparison("threads", [*threads, (arm("reader, threads=1 (again)"), 4.2)], suite={"name": "scaling"})
    for step, a, b in (("read", 1.0, 1.3), ("gunzip", 5.0, 4.0), ("count", 0.5, 0.5)):
        lines += comparison(step, [(arm("local"), a), (arm("mounted"), b), (arm("local (again)"), a)], suite={"name": "pipeline", "step": step})
    stopped = comparison("stopped early", [(arm("baseline"), 1.0), (arm("other"), 1.2), (again, 1.0)], rounds=9)
    lines += [line for line in stopped[:-1] if line.get("round", 0) in (0, 1)]
    return "".join(json.dumps(line) + "\n" for line in lines)
