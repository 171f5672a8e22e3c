"""The command, its results as data frames, and progress."""

import io
import threading

import pytest
import thalweg

pandas = pytest.importorskip("pandas")

SUITE = """
name = "own"
about = "reads of two formats"

[file.reads]
synth = { kind = "blow5", samples = "200k", record = "zstd", signal = "svb-zd" }

[workload.one]
thalweg = ["read", "{file}", "--json", "--threads", "1"]
sample_bytes = 2

[workload.two]
thalweg = ["read", "{file}", "--json", "--threads", "2"]
sample_bytes = 2

[[comparison]]
name = "threads"
set = { level = "hot", file = "reads" }
arms = ["one", "two"]
"""


@pytest.fixture(autouse=True)
def built_command(monkeypatch, command_path):
    monkeypatch.setenv("THALWEG", str(command_path))


def test_results_are_data_frames(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "own.toml").write_text(SUITE)
    results = tmp_path / "results.jsonl"
    trials = thalweg.bench(tmp_path / "own.toml", pairs=6, json=results)
    # On a busy machine some are rejected.
    kept = trials[trials["rejected"].isna() & trials["failed"].isna()]
    assert set(trials["comparison"]) == {"threads"} and set(trials["arm"]) >= {"one", "two"}
    assert not trials["failed"].notna().any() and (len(kept) or trials["rejected"].str.len().min() > 0)
    assert (kept["time_s"] > 0).all()
    compared = thalweg.compare(results)
    assert set(compared["arm"]) >= {"one", "two"}
    two = compared[compared["arm"] == "two"].iloc[0]
    # With fewer pairs there is no interval.
    if isinstance(two["ratio_interval"], list):
        assert two["ratio_interval"][0] <= two["ratio_median"] <= two["ratio_interval"][1]
    else:
        assert len(kept) < len(trials) and not two["paired"]
    assert compared.equals(thalweg.compare(tmp_path))


def test_a_command_that_fails_is_an_error(tmp_path):
    message = r"`thalweg compare .*` failed with exit code \d+:\n.*none.jsonl: opening: No such file"
    with pytest.raises(thalweg.Error, match=message):
        thalweg.compare(tmp_path / "none.jsonl")
    with pytest.raises(thalweg.Error, match="unexpected argument '--nothing'"):
        thalweg.bench("tour", nothing=1)
    with pytest.raises(thalweg.UsageError, match="json="):
        thalweg.bench("tour", out="folder")


def test_progress_shows_bytes_of_the_files(files):
    class Bar:
        shown = []

        def __init__(self, total, **options):
            self.total, self.n, self.options = total, 0, options

        def __enter__(self):
            return self

        def __exit__(self, *_):
            Bar.shown.append((self.n, self.total))

        def update(self, n):
            self.n += n

    reads = thalweg.open(files / "reads.blow5")
    bar = thalweg.progress(reads)
    bar._tqdm = Bar
    with bar:
        for _ in reads:
            pass
        # Shorter work shows no bar.
        threading.Event().wait(1.2)
    ((fetched, total),) = Bar.shown
    assert total == (files / "reads.blow5").stat().st_size and fetched >= total * 0.9
    for wrong in [3, thalweg.open(files / "network")]:
        with pytest.raises(thalweg.UsageError, match=f"found {type(wrong).__name__}, expected the Reads or Arrays"):
            thalweg.progress(wrong)
    out = io.StringIO()
    with thalweg.progress(reads, file=out):
        threading.Event().wait(1.0)
    assert "B/s" in out.getvalue()
