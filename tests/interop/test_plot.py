"""Pictures and pages that `thalweg plot` draws are what they say: they parse, they decode, they load nothing."""

import html.parser
import re
import struct
import xml.etree.ElementTree
import zlib

import pytest

import browser

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(params=["a read", "a read in pA", "a run", "no reads"])
def plot(request, thalweg, tmp_path):
    """Draws one thing as a file of any kind; its path."""
    source = tmp_path / "reads.blow5"
    thalweg("synth", source, "--samples", "600k")
    read_id = thalweg("read", "--digest", source).stdout.split("\t")[0]
    options = {"a read": ["--read", read_id], "a read in pA": ["--read", read_id, "--pa"]}.get(request.param, [])
    if request.param == "no reads":
        none = tmp_path / "none.blow5"
        thalweg("filter", source, "--out", none, "--force", "--where", "samples < 0")
        source = none

    def call(kind):
        out = tmp_path / f"plot.{kind}"
        thalweg("plot", source, *options, "--out", out, "--force")
        return out

    return call


def test_svg_is_xml_without_references(plot):
    root = xml.etree.ElementTree.parse(plot("svg")).getroot()
    assert root.tag == f"{SVG}svg" and float(root.get("width")) > 0 and float(root.get("height")) > 0
    allowed = {"svg", "g", "rect", "line", "polyline", "polygon", "path", "circle", "text", "tspan", "title", "desc"}
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in allowed, element.tag
        for name, value in element.attrib.items():
            assert not name.endswith(("href", "src")) and "url(" not in value and not name.startswith("on")
    assert any(element.text for element in root.iter(f"{SVG}text"))


def test_png_decodes(plot):
    """PNG, third edition: chunks with their sums, and as many bytes as rows of pixels take."""
    stored = plot("png").read_bytes()
    assert stored.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, []
    while at < len(stored):
        (length,) = struct.unpack_from(">I", stored, at)
        kind, data = stored[at + 4 : at + 8], stored[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + data) == struct.unpack_from(">I", stored, at + 8 + length)[0]
        chunks.append((kind, data))
        at += 12 + length
    kinds = [kind for kind, _ in chunks]
    assert kinds[0] == b"IHDR" and kinds[-1] == b"IEND" and kinds.count(b"IEND") == 1
    width, height, depth, colour, compression, filtering, interlace = struct.unpack(">IIBBBBB", chunks[0][1])
    assert (width, depth, colour, compression, filtering, interlace) == (1400, 8, 2, 0, 0, 0)
    pixels = zlib.decompress(b"".join(data for kind, data in chunks if kind == b"IDAT"))
    assert len(pixels) == height * (1 + 3 * width)
    assert all(pixels[row * (1 + 3 * width)] <= 4 for row in range(height))


class Page(html.parser.HTMLParser):
    """Which tags there are, what they refer to, and what styles hold."""

    VOID = {"meta", "link", "br", "hr", "img", "input", "base", "source", "col"}

    def __init__(self):
        super().__init__()
        self.open, self.refers, self.styles, self.policy = [], [], [], None

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        attributes = dict(attributes)
        if attributes.get("http-equiv", "").lower() == "content-security-policy":
            self.policy = attributes["content"]
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            if name in attributes:
                self.refers.append(attributes[name])
        self.styles.append(attributes.get("style", ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.styles.append(data)


def test_page_loads_nothing(plot):
    text = plot("html").read_text(encoding="utf-8")
    assert text.lower().startswith("<!doctype html>")
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert all(reference.startswith(("#", "data:")) for reference in page.refers), page.refers
    for style in page.styles:
        assert "@import" not in style and not re.search(r"url\(\s*['\"]?(?!data:|#)", style)
    # Whatever the scripts would like to load, the browser must not.
    assert page.policy and "default-src 'none'" in page.policy
    assert not re.search(r"https?:", page.policy)


# The labels of every axis of a page, and whether two of an axis cover each other.
TICKS = """[...document.querySelectorAll("[data-figure]")].map((box) => {
  const covers = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const axes = [".xtick text", ".ytick text", ".cbaxis text"].map((axis) => [...box.querySelectorAll(axis)]);
  const collide = axes.some((list) => {
    const boxes = list.map((text) => text.getBoundingClientRect());
    return boxes.some((a, i) => boxes.some((b, j) => i < j && covers(a, b)));
  });
  return { texts: axes.flat().map((text) => text.textContent), collide };
})"""

NUMBER = re.compile(r"^[-−]?(\d{1,3}(\.\d+)?)([kMGT]?)$")


@pytest.fixture
def pages(thalweg, tmp_path):
    """Pages and pictures of a run and of events."""
    reads, events = tmp_path / "reads.blow5", tmp_path / "events.nxs"
    thalweg("synth", reads, "--samples", "6M")
    thalweg("synth", events, "--kind", "nexus-live", "--size", "8MB")
    made = []
    for source in (reads, events):
        for kind in ("html", "svg"):
            thalweg("plot", source, "--out", source.with_suffix(f".{kind}"))
        made.append(source.with_suffix(".html"))
    return made


@pytest.mark.parametrize("width", [1280, 390])
def test_ticks_are_apart_and_have_the_units_of_pictures(chromium, pages, tmp_path, width):
    for file in pages:
        with browser.Browser(chromium, tmp_path / f"profile-{file.stem}", width=width) as b:
            b.open(file)
            figures = b.evaluate(TICKS)
            assert b.complaints() == []
        assert figures and not [f for f in figures if f["collide"]]
        on_page = [text for f in figures for text in f["texts"]]
        root = xml.etree.ElementTree.parse(file.with_suffix(".svg")).getroot()
        in_picture = [(e.text or "").strip() for e in root.iter(f"{SVG}text")]
        numbers = [text for text in on_page + in_picture if text[:1].isdigit() and " " not in text]
        assert len(numbers) > 40
        assert all(NUMBER.match(text) for text in numbers), numbers
        said = "".join(in_picture)
        assert "in us" not in said and ("N50" in said or "µs" in said)


@pytest.mark.parametrize("dark", [False, True])
def test_more_samples_stand_out_more(chromium, pages, tmp_path, dark):
    """The channels with the most samples are farther from the background than those with few, in either theme."""
    with browser.Browser(chromium, tmp_path / "profile", dark=dark) as b:
        b.open(pages[0])
        light = """(() => {
          const luminance = (c) => { const [r, g, b] = c.match(/\\d+/g).map(Number); return 0.2 * r + 0.7 * g + 0.1 * b; };
          const box = [...document.querySelectorAll("[data-figure]")].at(-1);
          const drawn = [...box.querySelectorAll(".points path")].map((p) => luminance(getComputedStyle(p).fill));
          const values = box.data[0].marker.color;
          const order = values.map((v, i) => [v, drawn[i]]).sort((a, b) => a[0] - b[0]);
          return [luminance(getComputedStyle(document.body).backgroundColor), order[0][1], order.at(-1)[1]];
        })()"""
        background, few, many = b.evaluate(light)
    assert abs(many - background) > abs(few - background) + 50, (background, few, many)
