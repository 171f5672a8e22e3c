"""The HTML report in a browser: no complaint, no request, every plot drawn, on light and dark screens and on paper."""

import contextlib
import gzip
import json
import re
import subprocess
import zlib

import pytest

import browser
import made_up_results
from nanopore import REPOSITORY

RUN = REPOSITORY / "benches/runs/2026-11-21-xeon-2-cores/results.jsonl.gz"
LONG = REPOSITORY / "benches/runs/2026-11-22-xeon-2-cores-nanopore/results.jsonl.gz"
PUBLISHED = sorted((REPOSITORY / "crates/thalweg-cli/suites/published").glob("*.jsonl"))


@pytest.fixture
def page(thalweg, tmp_path):
    """The page of some results, and what compare printed."""

    def call(*arguments):
        file = tmp_path / "page.html"
        thalweg("compare", *arguments, "--html", file)
        return file

    return call


@pytest.fixture
def everything(tmp_path):
    file = tmp_path / "everything.jsonl"
    file.write_text(made_up_results.everything())
    return file


# Unfolds everything, and waits until all figures are drawn.
DRAW_ALL = """(async () => {
  document.querySelectorAll("details").forEach((d) => (d.open = true));
  const boxes = [...document.querySelectorAll("[data-figure]")];
  for (let i = 0; i < 500 && !boxes.every((b) => b.dataset.drawn); i++) await new Promise((next) => setTimeout(next, 20));
  return [boxes.length, boxes.filter((b) => b.querySelector(".main-svg")).length];
})()"""


def check(chromium, file, tmp_path, dark=False, width=1280):
    with browser.Browser(chromium, tmp_path / f"profile-{dark}-{width}", dark=dark, width=width) as b:
        b.open(file)
        figures, drawn = b.evaluate(DRAW_ALL)
        assert figures == drawn > 0
        labels_are_good(b)
        assert b.complaints() == []
        assert b.requests() == [file.resolve().as_uri()], "the page needs nothing but itself"
        assert b.evaluate("document.documentElement.scrollWidth") <= width, "nothing sticks out of the window"
        assert b.evaluate("[...document.querySelectorAll('[data-figure]')].every((f) => f.getAttribute('aria-label'))")
        assert b.evaluate("window.alerted === undefined && document.querySelectorAll('img').length === 0")
        return b.evaluate("document.body.innerText")


@pytest.mark.long
@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 1280), (False, 390)])
def test_a_page_with_everything_opens_from_a_file(chromium, page, everything, tmp_path, dark, width):
    said = check(chromium, page(everything), tmp_path, dark, width)
    for words in ("rejected", "no difference shown", "step by step", "by threads", "STOPPED", made_up_results.HOSTILE):
        assert words in said, words


def test_comparisons_of_several_files_have_names_of_their_own(chromium, page, tmp_path):
    """The folder has the comparison "cold: no compression" twice."""
    with browser.Browser(chromium, tmp_path / "profile") as b:
        b.open(page(REPOSITORY / "benches/runs/2026-11-22-xeon-2-cores"))
        names = b.evaluate("[...document.querySelectorAll('.headlines a')].map((a) => a.textContent)")
        heads = b.evaluate("[...document.querySelectorAll('section[data-find] > h3')].map((h) => h.textContent)")
    assert names == heads and len(set(names)) == len(names) == 9
    assert "cold: no compression (2)" in names


def test_a_real_run_opens(chromium, page, tmp_path):
    file = page(RUN)
    assert file.stat().st_size < 2_000_000
    assert "slow5lib fork-join" in check(chromium, file, tmp_path)


@pytest.mark.long
@pytest.mark.long
@pytest.mark.parametrize("table", PUBLISHED, ids=lambda path: path.stem)
def test_published_tables_open_beside_a_run(chromium, page, table, tmp_path):
    assert "not measured here" in check(chromium, page(RUN, table), tmp_path)


# Of each figure that is drawn: the labels beside its rows, and whether labels of an axis cover each other.
LABELS = """[...document.querySelectorAll("[data-figure]")].filter((b) => b.dataset.drawn).map((box) => {
  const texts = (axis) => [...box.querySelectorAll(axis)];
  const covers = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const collide = (list) => list.some((a, i) => list.some((b, j) => i < j && covers(a, b)));
  const boxes = (axis) => texts(axis).map((t) => t.getBoundingClientRect());
  return {
    name: box.getAttribute("aria-label"),
    rows: texts(".yaxislayer-above .ytick text, .ytick text").map((t) => t.textContent),
    collide: collide(boxes(".xtick text")) || collide(boxes(".ytick text")),
    axis: texts(".xtick text").length && boxes(".xtick text")[0].top < boxes(".ytick text")[0].top,
  };
})"""


def labels_are_good(b):
    for figure in b.evaluate(LABELS):
        assert len(set(figure["rows"])) == len(figure["rows"]), f"two labels are alike: {figure}"
        assert not figure["collide"], f"labels cover each other: {figure}"


def colour(b, name):
    return b.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")


def test_a_long_suite_opens_with_its_headlines_and_is_not_too_long(chromium, page, tmp_path):
    with browser.Browser(chromium, tmp_path / "profile") as b:
        b.open(page(LONG))
        assert b.evaluate("document.querySelectorAll('.headlines li').length") == 42
        first = b.evaluate("document.querySelector('.headlines li').getBoundingClientRect().bottom")
        assert first < 400, "the first headline is on the first screen"
        assert b.evaluate("document.documentElement.scrollHeight") < 20_000
        folded = "[...document.querySelectorAll('[data-figure]')].filter((b) => b.closest('details:not([open])'))"
        drawn = "document.querySelectorAll('[data-figure][data-drawn]').length"
        unfolded = b.evaluate(f"document.querySelectorAll('[data-figure]').length - {folded}.length")
        assert b.evaluate(drawn) == unfolded > 40, "all is drawn without scrolling, but what is folded away"
        labels_are_good(b)
        tops = [figure for figure in b.evaluate(LABELS) if figure["name"].startswith("Ratios")]
        assert tops and all(figure["axis"] for figure in tops), "the axis is above the rows"
        assert b.complaints() == []


# Of each comparison: its headline and badges, the texts of its chart, its noise band, and the note that says it.
CHARTS = """[...document.querySelectorAll("section[data-find]")].map((section) => {
  const box = section.querySelector("[data-figure]");
  const band = box.layout.shapes.find((shape) => shape.type === "rect");
  return {
    headline: section.querySelector(".headline").firstChild.textContent,
    badges: [...section.querySelectorAll(".badge")].map((badge) => [badge.textContent, badge.title]),
    texts: [...box.querySelectorAll(".textpoint text")].map((text) => text.textContent.trim()),
    band: [band.x0, band.x1],
    note: section.querySelector("figure .note").textContent,
  };
})"""


def test_a_chart_shows_what_its_headline_says(chromium, page, tmp_path):
    with browser.Browser(chromium, tmp_path / "profile") as b:
        b.open(page(RUN))
        charts = b.evaluate(CHARTS)
    assert len(charts) == 8
    for chart in charts:
        ratio, low, high = re.search(r"([\d.]+)x faster than .* \[([\d.]+), ([\d.]+)\], \d+ pairs", chart["headline"]).groups()
        assert {low, high, f"{ratio}x"} <= set(chart["texts"]), chart
        assert any(text.startswith("baseline, ") for text in chart["texts"]), "the baseline is a row"
        ends = re.search(r"itself, [\d.]+x \[([\d.]+)\.\.([\d.]+)\]", chart["note"]).groups()
        assert [float(end) for end in ends] == pytest.approx(chart["band"], rel=0.01), "the band is the control's interval"
    doubted = [why for chart in charts for words, why in chart["badges"] if words == "machine was not quiet"]
    assert len(doubted) == 7 and all(re.search(r"hypervisor|not quiet|pressure", why) for why in doubted)


def test_a_colour_has_one_meaning(page, everything):
    kinds = {"faster": "Ratios", "slower": "Ratios", "stage": "Stacked", "untold": "Stacked", "device": "Bandwidth"}
    seen = set()
    for results in (RUN, everything):
        text = page(results).read_text()
        figures = json.loads(re.search(r'id="figures">(.*?)</script>', text, re.DOTALL)[1])
        names = dict(re.findall(r'data-figure="(\d+)" role="img" aria-label="(\w+)', text))
        assert len(figures) == len(names) > 20
        for number, name in names.items():
            for colour in set(re.findall(r"var\(--([a-z]+)\d*\)", json.dumps(figures[int(number)]["data"]))):
                assert name == kinds.get(colour, name), f"{colour} in a figure that begins {name}"
                seen.add(colour)
    assert set(kinds) | {"c", "dot", "bar", "limit"} <= seen


def test_the_filter_hides_what_has_not_its_words(chromium, page, tmp_path):
    with browser.Browser(chromium, tmp_path / "profile") as b:
        b.open(page(LONG))
        shown = "[...document.querySelectorAll('section[data-find]')].filter((s) => s.offsetHeight > 0).length"
        lines = "[...document.querySelectorAll('.headlines li')].filter((s) => s.offsetHeight > 0).length"
        write = "(words) => {{ const i = document.querySelector('.filter input'); i.value = words; i.dispatchEvent(new Event('input')); }}"
        for words, most in (("", 42), ("no difference", 12), ("FAST5 cold", 8), ("nobody has this", 0)):
            b.evaluate(f"({write})({json.dumps(words)})".replace("{{", "{").replace("}}", "}"))
            assert b.evaluate(lines) == b.evaluate(shown)
            assert (0 < b.evaluate(shown) <= most) if most else b.evaluate(shown) == 0, words
        assert b.evaluate("document.querySelector('.filter output').textContent") == "0 of 42"


@pytest.mark.parametrize("dark", [False, True])
def test_a_picture_that_nobody_scrolled_has_its_charts(chromium, page, tmp_path, dark):
    """As `chromium --screenshot` takes it: once, when the page is loaded."""
    file, picture = page(RUN), tmp_path / "page.png"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={tmp_path}/one"]
    options += ["--blink-settings=preferredColorScheme=" + ("0" if dark else "1"), "--window-size=1280,2400"]
    subprocess.run([chromium, *options, f"--screenshot={picture}", file.as_uri()], check=True, capture_output=True, timeout=300)
    with browser.Browser(chromium, tmp_path / "two", dark=dark) as b:
        b.open(file)
        names = ["bg", "slower", "noise", "dot"]
        background, slower, noise, dot = b.pixels(picture, [colour(b, name) for name in names])
    assert background > 1_000_000, "the theme is the one that was asked for"
    # 14 intervals of two pixels and more, 8 bands, more than a hundred dots
    assert slower > 2_000 and noise > 50_000 and dot > 300, (slower, noise, dot)


def test_what_an_arm_does_not_tell_is_hatched(chromium, page, tmp_path):
    with browser.Browser(chromium, tmp_path / "profile") as b:
        b.open(page(RUN))
        b.evaluate(DRAW_ALL)
        figures = "[...document.querySelectorAll('figure')].filter((f) => f.innerText.startsWith('CPU time'))"
        assert b.evaluate(f"{figures}.length") == 8, "one for each comparison"
        told = b.evaluate(f"{figures}[0].querySelector('[role=img]').getAttribute('aria-label')")
        assert re.search(r"slow5lib slow5_mt: [^;]*not told by the arm [\d.]+ s", told), told
        assert b.evaluate(f"{figures}[0].querySelectorAll('.main-svg pattern').length") > 0
        labels_are_good(b)


def inked(pdf: bytes, rgb: str) -> int:
    """How often a colour is set in the pages of a PDF."""
    streams = re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL)
    text = b""
    for stream in streams:
        with contextlib.suppress(zlib.error):
            text += zlib.decompressobj().decompress(stream)
    red, green, blue = (int(rgb[at : at + 2], 16) / 255 for at in (1, 3, 5))
    found = re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) (?:rg|RG)", text)
    return sum(abs(float(r) - red) + abs(float(g) - green) + abs(float(b) - blue) < 0.01 for r, g, b in found)


def test_paper_has_every_chart(chromium, page, tmp_path):
    """As `chromium --print-to-pdf` prints it, even on a dark desktop."""
    file, paper = page(RUN), tmp_path / "page.pdf"
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/one"]
    options += ["--blink-settings=preferredColorScheme=0"]
    subprocess.run([chromium, *options, f"--print-to-pdf={paper}", file.as_uri()], check=True, capture_output=True, timeout=300)
    with browser.Browser(chromium, tmp_path / "two") as b:
        b.open(file)
        names = ("slower", "bar", "stage1", "limit")
        ink = {name: inked(paper.read_bytes(), colour(b, name)) for name in names}
    # Ratios, trials, stages and limits, those of folded parts among them.
    assert all(count >= 8 for count in ink.values()), ink


def test_print_style_is_white_and_opens_closed_parts(chromium, page, everything, tmp_path):
    with browser.Browser(chromium, tmp_path / "profile", dark=True) as b:
        b.open(page(everything))
        dark = b.evaluate("getComputedStyle(document.body).backgroundColor")
        b.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert b.evaluate("document.querySelectorAll('details:not([open])').length") == 0
        assert b.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)" != dark
        widths = b.evaluate("[...document.querySelectorAll('.main-svg')].map((s) => s.width.baseVal.value)")
        assert widths and max(widths) <= 690
        b.evaluate("dispatchEvent(new Event('afterprint'))")
        assert b.evaluate("document.querySelectorAll('details[open]').length") == 0
        b.pdf(tmp_path / "page.pdf")
        assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
        assert b.complaints() == []


def test_without_scripts_the_tables_stay(chromium, page, everything, tmp_path):
    with browser.Browser(chromium, tmp_path / "profile") as b:
        b.call("Emulation.setScriptExecutionDisabled", value=True)
        b.open(page(everything))
        b.call("Emulation.setScriptExecutionDisabled", value=False)
        assert b.evaluate("document.querySelectorAll('table').length") > 5
        assert b.evaluate("getComputedStyle(document.querySelector('noscript')).display") != "none"
        assert b.evaluate("document.querySelectorAll('.main-svg').length") == 0


def test_a_file_that_was_cut_short_is_still_a_report(thalweg, everything):
    text = everything.read_text()
    everything.write_text(text[: -len(text) // 10])
    assert "was left out" in thalweg("compare", everything).stdout
    packed = gzip.compress(text.encode())
    everything.write_bytes(packed[: -len(packed) // 10])
    assert "twice as slow" in thalweg("compare", everything).stdout


def test_damage_in_the_middle_is_named(thalweg, everything):
    lines = everything.read_text().splitlines()
    lines[5] = lines[5][:-20]
    everything.write_text("\n".join(lines) + "\n")
    done = thalweg("compare", everything, check=False)
    assert done.returncode == 1
    assert f"{everything}: line 6: " in done.stderr


def rows(done) -> dict:
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {(row["experiment"], row["arm"]): row for row in found}


def test_runs_are_compared_unpaired_and_arms_of_one_run_in_pairs(thalweg, everything, tmp_path):
    other = tmp_path / "other.jsonl"
    slower = [json.loads(line) for line in everything.read_text().splitlines()]
    for line in slower:
        if line["schema"] == "thalweg.trial/1":
            line["time_s"] *= 1.5
    other.write_text("".join(json.dumps(line) + "\n" for line in slower))
    key = ("cold: all sorts", "twice as slow")
    alone = rows(thalweg("compare", everything, "--json"))[key]["against"][0]
    assert (alone["paired"], alone["finding"], alone["baseline"]) == (True, "slower", "baseline")
    both = rows(thalweg("compare", everything, other, "--json"))[key]
    between = both["against"][0]
    assert (between["paired"], between["basis"], between["finding"]) == (False, "time", "slower")
    assert between["ratio"]["median"] == pytest.approx(1.5)
    assert between["normalised"] == pytest.approx(1.5), "the same limit: as far from it as it is slower"
    assert [run["run"] for run in both["runs"]] == ["everything", "other"]


def test_a_missed_criterion_has_its_own_exit_code(thalweg, everything):
    def code(condition, *more):
        return thalweg("compare", everything, "--fail-if", condition, *more, check=False).returncode

    assert code("ratio > 1.05") == 3
    assert code("ratio > 1.05", "--only", "scaling nothing") == 2
    assert code("ratio > 99") == 0
    assert code("low > 1.9", "--only", "twice") == 3
    assert code("ratio >> 1") == 2


def test_an_undecided_criterion_is_not_passed(thalweg):
    done = thalweg("compare", PUBLISHED[0], "--fail-if", "low > 1", check=False)
    assert done.returncode == 3
    assert "no row by which to tell" in done.stderr


def test_names_that_differ_can_be_matched(thalweg):
    table = next(path for path in PUBLISHED if path.stem == "slow5-pod5")
    arguments = ["compare", RUN, table, "--json"]
    names = ["--match", "cold: zstd + svb-zd", "sequential, 20X: gtgpu-ssd", "--match", "slow5lib fork-join", "BLOW5 C"]
    key = ("cold: zstd + svb-zd", "slow5lib fork-join")
    assert rows(thalweg(*arguments))[key]["against"] == []
    against = rows(thalweg(*arguments, *names))[key]["against"][0]
    assert (against["basis"], against["finding"]) == ("time_per_stored_byte", "too_few_pairs")
    # 740 GB in 985 s beside 1.02 GB in 3.35 s
    assert against["ratio"]["median"] == pytest.approx((985.309312 / 740e9) / (3.3505 / 1.0233e9), rel=0.01)
