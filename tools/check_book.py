"""Check the built documentation against the package: `python tools/check_book.py docs/_build`.

Every public name must have an entry in the reference, which must list every command and option of the command line;
every page must be reachable from the first one, and every link within the book must lead to an existing place.
Sphinx does not warn of an empty generated reference. Uses no network. `make docs` runs it after the build.
"""

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click

import likewise
from likewise.cli import group

_LEFT_OUT = {"genindex.html", "py-modindex.html", "search.html"}


class Page(HTMLParser):
    """The anchors of a page, and its links."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.places: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record a tag's anchors and links."""
        for name, value in attrs:
            if name == "id" and value:
                self.places.add(value)
            if (tag, name) in {("a", "href"), ("img", "src")} and value:
                self.links.append(value)


def read(book: Path) -> dict[Path, Page]:
    """Return every page of a built book."""
    pages = {}
    for path in sorted(book.rglob("*.html")):
        if path.name not in _LEFT_OUT and "_static" not in path.parts:
            page = Page()
            page.feed(path.read_text(encoding="utf-8"))
            pages[path.resolve()] = page
    return pages


def broken_links(pages: dict[Path, Page]) -> Iterator[str]:
    """Yield broken links within the book, and pages without a link to them."""
    reached = set()
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield f"{path.name}: {link} leads to no file"
            elif target != path:
                reached.add(target)
            if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                yield f"{path.name}: {link} names no place there"
    for path in pages:
        if path not in reached and path.name != "index.html":
            yield f"{path.name}: no page leads to it"


def missing_names(pages: dict[Path, Page]) -> Iterator[str]:
    """Yield public names of the package that have no entry in the reference."""
    places = {place for path, page in pages.items() if path.parent.name == "reference" for place in page.places}
    for name in likewise.__all__:
        home = getattr(getattr(likewise, name), "__module__", "")
        if not name.startswith("__") and not {f"likewise.{name}", f"{home}.{name}"} & places:
            yield f"likewise.{name} has no entry in the reference"


def commands(command: click.Command, path: str = "likewise") -> Iterator[tuple[str, click.Command]]:
    """Yield a command and all below it, with their paths."""
    yield path, command
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                if below:
                    yield from commands(below, f"{path} {name}")


def missing_options(text: str) -> Iterator[str]:
    """Yield commands and options missing from the page of commands, looking for options in their command's part."""
    parts = dict(_parts(text))
    for path, command in commands(group):
        if path not in parts:
            yield f"{path} is not on the page of commands"
            continue
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden and f">{option.opts[-1]}<" not in parts[path]:
                yield f"{path} {option.opts[-1]} is not on the page of commands"


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each command on the page, and the text from its heading to the next one."""
    for part in text.split('<section id="')[1:]:
        yield part.split('"', 1)[0].replace("-", " "), part


def main() -> int:
    """Print the faults; return 1 if there are any."""
    book = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_build")
    pages = read(book)
    if not pages:
        print(f"{book} holds no pages: build them first (make docs)", file=sys.stderr)
        return 1
    text = (book / "reference" / "commands.html").read_text(encoding="utf-8")
    found = [*broken_links(pages), *missing_names(pages), *missing_options(text)]
    for line in found:
        print(line, file=sys.stderr)
    print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values()):,} links: {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
