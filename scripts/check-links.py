#!/usr/bin/env python3
"""Checks that relative links in the repository's Markdown files lead to files and headings that exist."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def anchors(text):
    """The anchors that GitHub gives the headings of a page."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in HEADING.findall(text)
    }


def broken(page):
    """The links of a page that lead nowhere."""
    for link in LINK.findall(page.read_text()):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield link
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
            yield link


pages = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
    cwd=ROOT, check=True, capture_output=True, text=True,
).stdout.split()
errors = [f"{page}: {link}" for page in pages if (ROOT / page).exists() for link in broken(ROOT / page)]
print(*errors, sep="\n", end="\n" if errors else "")
sys.exit(bool(errors))
