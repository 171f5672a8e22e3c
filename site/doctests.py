"""Shows the examples of docstrings, which begin with `>>>`, as blocks of code."""

import griffe


class Doctests(griffe.Extension):
    """Puts fences around examples: in Markdown, `>>>` would be a quotation in a quotation in a quotation."""

    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text with a fence before each line that begins an example, and one behind its last line."""
    made, inside = [], False
    for line in text.splitlines():
        if line.startswith(">>>") and not inside:
            made.append("```pycon")
            inside = True
        elif not line and inside:
            made.append("```")
            inside = False
        made.append(line)
    return "\n".join(made + ["```"] * inside)
