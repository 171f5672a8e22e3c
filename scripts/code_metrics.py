#!/usr/bin/env python3
"""Prints how large and how readable the code is: one line of JSON a measure, over the crates' code without tests.

    scripts/code_metrics.py [CHECKOUT]

Counted: files of crates/*/src, without modules of tests. Functions are those with a body. A type name is defined again if
more than one struct, enum, trait or type alias of the workspace has it. Doc examples are code blocks in doc comments that
are compiled, and programs in examples/. The table in docs/design.md holds these figures.
"""

import json
import re
import statistics
import sys
from collections import Counter
from pathlib import Path

STRINGS_AND_COMMENTS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^']+|[^'\\])'""", re.S
)
FUNCTION = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))? )?(?:const )?(?:unsafe )?(?:extern \"C\" )?fn \w+", re.M)
TYPE = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|type) (\w+)", re.M)
PUBLIC = re.compile(r"^[ \t]*pub (?:const |unsafe |async )*(?:fn|struct|enum|trait|type|const|static|mod|use) ", re.M)
TEST_MODULE = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*mod \w+ \{")
PLAIN_LET = re.compile(r"^\s*let \((?:mut )?\w+, (?:mut )?\w+\) = \(", re.M)


def blank(text):
    """The text with comments and strings replaced by as many blanks, so that offsets and lines stay."""
    return STRINGS_AND_COMMENTS.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def end_of_block(text, start):
    depth = 0
    for at in range(text.index("{", start), len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def without_tests(text):
    plain = blank(text)
    while found := TEST_MODULE.search(plain):
        end = end_of_block(plain, found.start())
        plain = plain[: found.start()] + plain[end:]
        text = text[: found.start()] + text[end:]
    return text, plain


def functions(plain):
    for found in FUNCTION.finditer(plain):
        brace, semicolon = plain.find("{", found.end()), plain.find(";", found.end())
        if brace >= 0 and (semicolon < 0 or brace < semicolon or "[" in plain[found.end() : brace]):
            yield plain.count("\n", found.start(), end_of_block(plain, found.start())) + 1


def doc_examples(text):
    count, block = 0, None
    for line in text.splitlines():
        found = re.match(r"\s*//[/!] ?(.*)", line)
        fence = found and re.match(r"```(.*)", found.group(1))
        if not fence:
            continue
        if block is None:
            block = fence.group(1)
            count += all(word in ("", "no_run", "should_panic") for word in re.split(r"[, ]", block))
        else:
            block = None
    return count


def summary(lengths):
    lengths = sorted(lengths)
    return {
        "count": len(lengths),
        "mean": round(statistics.mean(lengths), 1),
        "p95": lengths[int(len(lengths) * 0.95)],
        "longest": lengths[-1],
    }


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
    files, lengths, types = [], [], Counter()
    public = examples = wide = pairs = same = 0
    for path in sorted(root.glob("crates/*/src/**/*.rs")):
        if path.name in ("tests.rs", "properties.rs"):
            continue
        text, plain = without_tests(path.read_text())
        files.append(text.count("\n"))
        lengths += functions(plain)
        types.update(TYPE.findall(re.sub(r"^\s+type \w+.*", "", plain, flags=re.M)))
        public += len(PUBLIC.findall(plain))
        examples += doc_examples(text)
        pairs += len(PLAIN_LET.findall(plain))
        same += len(re.findall(r"^\s*///? The same", text, re.M))
    for path in root.glob("crates/**/*.rs"):
        wide += sum(len(line) > 100 for line in path.read_text().splitlines())
    examples += len(list(root.glob("crates/*/examples/*.rs")))
    again = sum(count > 1 for count in types.values())
    print(json.dumps({"measure": "file, lines", **summary(files)}))
    print(json.dumps({"measure": "function, lines", **summary(lengths)}))
    print(json.dumps({"measure": "functions over 60 lines", "count": sum(length > 60 for length in lengths)}))
    print(json.dumps({"measure": "public items", "count": public}))
    share = round(100 * again / len(types), 1)
    most = dict(types.most_common(8))
    line = {"measure": "type names", "count": len(types), "defined again": again, "percent": share, "most": most}
    print(json.dumps(line))
    print(json.dumps({"measure": "lines over 100 wide", "count": wide}))
    print(json.dumps({"measure": "lets of unrelated pairs", "count": pairs}))
    print(json.dumps({"measure": 'docs that begin "The same"', "count": same}))
    print(json.dumps({"measure": "doc examples", "count": examples}))


if __name__ == "__main__":
    main()
