"""Text as HTML: nothing in a document can become markup, and hidden characters are shown.

Used by reports, pages and the notebook representations of results.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

# Characters of control and of direction, and invisible ones except joiners, which have legitimate uses.
_HIDDEN = (
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ue000-\uf8ff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\U000f0000-\U0010ffff]"
)
# Notebooks align tables to the right.
_LEFT = "text-align: left"


class Html(str):
    """Text that is already markup; templates insert it unescaped."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return itself; template engines call this."""
        return self


@cache
def _hidden() -> re.Pattern[str]:
    return re.compile(_HIDDEN)


def visible(text: str) -> str:
    """Return text with control characters, and those that hide or redirect text, spelled out."""
    return _hidden().sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text.replace("\r\n", "\n").replace("\r", "\n"))


def escaped(text: object) -> Html:
    """Return anything as HTML: markup unchanged, text escaped, hidden characters spelled out."""
    if isinstance(text, Html):
        return text
    # The import and the pattern are loaded on first use, so that programs without HTML output do not pay for them.
    import html

    return Html(html.escape(visible(str(text)), quote=True))


def element(name: str, content: object = "", **attributes: object) -> Html:
    """Return an element."""
    return Html(f"<{name}{_attributes(attributes)}>{joined(content)}</{name}>")


def joined(content: object) -> Html:
    """Return markup, text, or a list of both as markup."""
    if isinstance(content, str) or not isinstance(content, Iterable):
        return escaped(content)
    return Html("".join(joined(part) for part in content))


def _attributes(attributes: dict[str, object]) -> str:
    parts = []
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        spelled = name.rstrip("_").replace("_", "-")
        parts.append(f" {spelled}" if value is True else f' {spelled}="{escaped(value)}"')
    return "".join(parts)


def facts(title: str, values: Mapping[str, object]) -> Html:
    """Return a title and a table of names and values, the notebook representation of an object."""
    rows = [
        element("tr", [element("th", name, style=_LEFT), element("td", value, style=_LEFT)])
        for name, value in values.items()
    ]
    return Html(f"{element('p', element('strong', title))}{element('table', element('tbody', rows))}")


def listing(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Html:
    """Return a table with a header."""
    head = [element("th", name, scope="col", style=_LEFT) for name in columns]
    return table(head, [element("tr", [element("td", value, style=_LEFT) for value in row]) for row in rows])


def table(head: Sequence[Html], rows: Sequence[Html], **attributes: object) -> Html:
    """Return a table from the cells of its header and its rows."""
    parts = [element("thead", element("tr", head)), element("tbody", rows)]
    return element("table", parts, **attributes)
