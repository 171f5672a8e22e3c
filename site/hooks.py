"""What MkDocs does not do by itself: links to the rest of the repository, and pages of notebooks."""

import base64
import json
import os
import re
from pathlib import Path

from mkdocs.structure.files import File

SITE = Path(__file__).parent
ROOT = SITE.parent
PAGES = SITE / "docs"
# Where `run_notebooks.py` leaves them.
EXECUTED = ROOT / "target/site/notebooks"
LINK = re.compile(r"\]\(([^):\s#]+)(#[^)\s]*)?\)")
PICTURES = {path.name: path for path in (ROOT / "docs/images").glob("*.png")}


def on_files(files, config):
    """Adds pictures of the repository, and a page for each executed notebook."""
    for name, path in PICTURES.items():
        files.append(File.generated(config, f"images/{name}", abs_src_path=str(path)))
    for path in sorted(EXECUTED.glob("*.ipynb")):
        page, pictures = shown(json.loads(path.read_text()), path.stem)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=page))
        for name, picture in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=picture))
    return files


def on_page_markdown(markdown, page, config, files):
    """Leads links that leave the pages to the repository, to the page of a notebook, or to a copy of a picture."""
    here = PAGES / os.path.dirname(page.file.src_uri)

    def led(match):
        link, anchor = match[1], match[2] or ""
        target = Path(os.path.normpath(here / link))
        if target.is_relative_to(PAGES) or not target.exists():
            return match[0]
        if target.suffix == ".ipynb":
            target = PAGES / f"notebooks/{target.stem}.md"
        elif target in PICTURES.values():
            target = PAGES / f"images/{target.name}"
        else:
            return f"]({config.extra['repository']}/{target.relative_to(ROOT)}{anchor})"
        return f"]({os.path.relpath(target, here)}{anchor})"

    return LINK.sub(led, markdown)


def shown(notebook, stem):
    """A notebook as Markdown, and its pictures by name."""
    parts, pictures = [], {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            parts.append(source)
            continue
        language = "bash" if source.startswith("%%bash") else "python"
        parts.append(f"```{language}\n{source.removeprefix('%%bash').strip()}\n```")
        for output in cell["outputs"]:
            data = {kind: "".join(value) for kind, value in output.get("data", {}).items()}
            if "image/png" in data:
                name = f"{stem}-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![output]({name})")
            elif "text/html" in data:
                # Without empty lines, which would end the HTML.
                lines = [line for line in data["text/html"].splitlines() if line.strip()]
                parts.append("<div>\n" + "\n".join(lines) + "\n</div>")
            else:
                text = "".join(output["text"]) if "text" in output else data.get("text/plain", "")
                parts.append(f"```text\n{text.rstrip()}\n```")
    note = f"*Made by running [{stem}.ipynb](../../notebooks/{stem}.ipynb).*"
    title, _, rest = "\n\n".join(parts).partition("\n\n")
    return f"{title}\n\n{note}\n\n{rest}\n", pictures
