"""Make labeled collections from public packages: manuals, package descriptions, API pages, guides, licenses.

Each collection is two releases of the same packages, in pinned versions. Labels follow from a written procedure
(`docs/benchmarks/collections.md`) that uses names, releases and aligned tokens; nobody read the pairs. The split
into `development` and `opened last` was fixed before anything was measured.

    python bench/public_sets.py --out DIR [--only NAME ...]

needs apt-get, dpkg-deb and npm with their usual configuration, and writes DIR/NAME/docs.jsonl.gz and pairs.tsv, in the
format of the labeled sets next to the project. Downloads are kept in DIR/downloads and not repeated.
"""

import argparse
import gzip
import hashlib
import json
import re
import subprocess
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import likewise
from likewise import measures

# Labels as in the sets next to the project.
SAME, DIFFERENT, IGNORED = 1, 0, -1

# A page with the same name in two releases: the same document at or above the first value, different below the second.
SAME_NAME = (0.75, 0.50)
# Names that differ only in digits and ship side by side (gcc-11, gcc-12): the same at or above this value.
VERSIONS_SIDE_BY_SIDE = 0.90
# Other names that never ship side by side: one may have been renamed.
MAYBE_RENAMED = 0.60

# Shorter pages are not informative.
FEWEST_WORDS = 3

MARKERS = frozenset({"alpha", "beta", "ga", "rc", "dev", "snapshot", "lts", "transitional", "dummy"})


@dataclass(frozen=True)
class Page:
    """A document of a release.

    Attributes
    ----------
    name : str
        Unique in its release.
    key : str
        The name without versions.
    words : tuple of str
        Its tokens.
    """

    release: str
    name: str
    key: str
    text: str
    words: tuple[str, ...]

    @property
    def doc_id(self) -> str:
        """The id of the document."""
        return f"{self.release}/{self.name}"


@dataclass(frozen=True)
class Collection:
    """Two releases of some packages, and how their pages are read.

    Attributes
    ----------
    packages : tuple of (release, package, version)
        From Debian, or ``npm`` as the release. Releases of package descriptions have no package.
    read : callable
        Reads a downloaded package (or a release by name) into pages of (name, text).
    share : int
        One page name (one source package) in `share` is used, chosen by a hash.
    names_have_versions : bool
        Whether digits in a name are a version, as in package names.
    """

    name: str
    language: str
    kind: str
    split: str
    packages: tuple[tuple[str, str, str], ...]
    read: Callable[["Shelf", str, str, str], Iterator[tuple[str, str]]]
    share: int = 1
    names_have_versions: bool = False


class Shelf:
    """Downloads, cached in a directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def apt(self, release: str, *command: str, program: str = "apt-get") -> str:
        """Run apt for another release, with the mirrors that this machine is configured for."""
        root = (self.folder / release).resolve()
        if not (root / "updated").exists():
            (root / "lists" / "partial").mkdir(parents=True, exist_ok=True)
            (root / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
            (root / "status").touch()
            (root / "sources.list").write_text(
                f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {_mirror()} {release} main\n"
            )
        options = {
            "Dir::State::Lists": root / "lists",
            "Dir::State::status": root / "status",
            "Dir::Cache": root / "cache",
            "Dir::Etc::SourceList": root / "sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Acquire::Languages": "en,de,ru,ja,fr",
            "APT::Sandbox::User": "root",
        }
        named = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
        if not (root / "updated").exists():
            subprocess.run(["apt-get", "-q", *named, "update"], check=True, stdout=subprocess.DEVNULL)
            (root / "updated").touch()
        done = subprocess.run(
            [program, *named, *command], check=True, stdout=subprocess.PIPE, text=True, cwd=self.folder
        )
        return done.stdout

    def debian(self, release: str, package: str, version: str) -> Path:
        """Return the unpacked files of a Debian package."""
        unpacked = self.folder / f"{package}_{version.replace(':', '_')}"
        if not unpacked.exists():
            escaped = f"{package}_{version.replace(':', '%3a')}_"
            if not list(self.folder.glob(f"{escaped}*.deb")):
                self.apt(release, "-q", "download", f"{package}={version}")
            (file,) = self.folder.glob(f"{escaped}*.deb")
            subprocess.run(["dpkg-deb", "-x", file, unpacked], check=True)
        return unpacked

    def npm(self, package: str, version: str) -> tarfile.TarFile:
        """Return the archive of an npm package."""
        file = self.folder / f"{package}-{version}.tgz"
        if not file.exists():
            subprocess.run(["npm", "pack", "--silent", f"{package}@{version}"], check=True, cwd=self.folder)
        return tarfile.open(file)


def _mirror() -> str:
    """Return the first Debian mirror configured for this machine's apt."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE) $(ORIGIN)"], check=True, stdout=subprocess.PIPE, text=True
    )
    sites = [line.split()[0] for line in listed.stdout.splitlines() if line.endswith(" Debian")]
    return next(site for site in sites if not site.endswith("-security"))


# --- Readers of pages ------------------------------------------------------------------------------------------------


def manual_pages(shelf: Shelf, release: str, package: str, version: str) -> Iterator[tuple[str, str]]:
    """Read manual pages, except those that only refer to another."""
    for file in sorted((shelf.debian(release, package, version) / "usr/share/man").rglob("*.gz")):
        if file.is_symlink():
            continue
        text = gzip.decompress(file.read_bytes()).decode("utf-8", "replace")
        if not text.lstrip().startswith(".so "):
            yield f"{file.parent.name}/{file.name.removesuffix('.gz')}", _without_roff(text)


def _without_roff(text: str) -> str:
    """Return the words of a manual page, without comments, requests or font changes."""
    text = re.sub(r'(?m)^[.\']\s*\\".*$|\\".*$', "", text)
    text = re.sub(r"(?m)^[.']\s*[A-Za-z]{1,3}\b ?", "", text)
    text = re.sub(r"\\f(\[[^]]*\]|\(..|.)|\\s[+-]?\d|\\[&|^/,%:]|\\\(..|\\\*\(..|\\\[[^]]*\]", "", text)
    return re.sub(r"\n{2,}", "\n", text.replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\"))


class _Visible(HTMLParser):
    """The visible text of a page, without navigation bars."""

    _HIDDEN = ("script", "style", "head", "nav", "noscript")
    _BREAKS = ("p", "div", "li", "tr", "h1", "h2", "h3", "h4", "pre", "dt", "dd", "br", "table", "ul")

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in self._HIDDEN
        if tag in self._BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in self._HIDDEN and self._hidden > 0

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


def html_pages(part: str, pattern: str = "*.html") -> Callable[[Shelf, str, str, str], Iterator[tuple[str, str]]]:
    """Return a reader of the HTML pages in the first folder that ends in `part`."""

    def read(shelf: Shelf, release: str, package: str, version: str) -> Iterator[tuple[str, str]]:
        root = shelf.debian(release, package, version) / "usr/share"
        folder = min((path for path in root.glob(part) if path.is_dir()), key=lambda path: len(str(path)))
        for file in sorted(folder.rglob(pattern)):
            compressed = file.name.endswith(".gz")
            if file.is_symlink() or "index-" in file.name or "search" in file.name:
                continue
            data = gzip.decompress(file.read_bytes()) if compressed else file.read_bytes()
            page = _Visible()
            page.feed(data.decode("utf-8", "replace"))
            text = re.sub(r"[ \t]*\n\s*", "\n", "".join(page.parts)).strip()
            yield str(file.relative_to(folder)).removesuffix(".gz"), text

    return read


def descriptions(language: str) -> Callable[[Shelf, str, str, str], Iterator[tuple[str, str]]]:
    """Return a reader of the package descriptions of a release in a language."""

    def read(shelf: Shelf, release: str, _package: str, _version: str) -> Iterator[tuple[str, str]]:
        shelf.apt(release, "indextargets")
        (file,) = (shelf.folder / release / "lists").glob(f"*_Translation-{language}.lz4")
        listed = subprocess.run(
            ["/usr/lib/apt/apt-helper", "cat-file", file], check=True, stdout=subprocess.PIPE, text=True
        )
        for entry in listed.stdout.split("\n\n"):
            fields = re.split(r"(?m)^([\w-]+): ", entry)
            known = dict(zip(fields[1::2], fields[2::2], strict=False))
            text = known.get(f"Description-{language}")
            if text and known["Package"].strip():
                yield known["Package"].strip(), re.sub(r"(?m)^ \.?", "", text).strip()

    return read


def licenses(shelf: Shelf, _release: str, package: str, version: str) -> Iterator[tuple[str, str]]:
    """Read the texts of a list of licenses."""
    with shelf.npm(package, version) as archive:
        file = archive.extractfile("package/spdx-full.json")
        assert file is not None
        for name, entry in sorted(json.load(file).items()):
            yield name, entry.get("licenseText") or entry["license"]


def _descriptions_of(language: str, name: str, split: str, share: int, releases: tuple[str, str]) -> Collection:
    packages = tuple((release, "", "") for release in releases)
    return Collection(
        f"descriptions-{language}", name, "package descriptions", split, packages, descriptions(language), share, True
    )


def _manuals_of(
    language: str, name: str, split: str, packages: tuple[tuple[str, str, str], ...], share: int
) -> Collection:
    return Collection(f"manuals-{language}", name, "manuals", split, packages, manual_pages, share)


# The split was fixed before anything was measured.
DEVELOPMENT, LAST = "development", "opened last"
COLLECTIONS = (
    _manuals_of(
        "de",
        "German",
        DEVELOPMENT,
        (("bullseye", "manpages-de", "4.10.0-1"), ("trixie", "manpages-de", "4.27.0-1")),
        2,
    ),
    _manuals_of(
        "es",
        "Spanish",
        DEVELOPMENT,
        (
            ("bullseye", "manpages-es", "4.10.0-1"),
            ("bullseye", "manpages-es-dev", "4.10.0-1"),
            ("trixie", "manpages-es", "4.27.0-1"),
            ("trixie", "manpages-es-dev", "4.27.0-1"),
        ),
        1,
    ),
    _manuals_of(
        "ja",
        "Japanese",
        DEVELOPMENT,
        (
            ("bullseye", "manpages-ja", "0.5.0.0.20210215+dfsg-1"),
            ("bookworm", "manpages-ja", "0.5.0.0.20221215+dfsg-1"),
        ),
        2,
    ),
    _descriptions_of("en", "English", DEVELOPMENT, 40, ("bookworm", "trixie")),
    _descriptions_of("ru", "Russian", DEVELOPMENT, 3, ("bullseye", "trixie")),
    Collection(
        "api-java",
        "English",
        "API pages",
        DEVELOPMENT,
        (
            ("bullseye", "libcommons-lang3-java-doc", "3.11-1"),
            ("bookworm", "libcommons-lang3-java-doc", "3.12.0-2+deb12u1"),
        ),
        html_pages("doc/libcommons-lang3-java/api*"),
    ),
    Collection(
        "licenses",
        "English",
        "licenses",
        DEVELOPMENT,
        (("npm", "spdx-license-list", "6.0.0"), ("npm", "spdx-license-list", "6.9.0")),
        licenses,
    ),
    Collection(
        "guide-it",
        "Italian",
        "installation guide",
        DEVELOPMENT,
        (
            ("bullseye", "installation-guide-amd64", "20220129~deb11u1"),
            ("trixie", "installation-guide-amd64", "20250803+deb13u1"),
        ),
        html_pages("doc/installation-guide-amd64/it"),
    ),
    _manuals_of(
        "fr", "French", LAST, (("bookworm", "manpages-fr", "4.18.1-1"), ("trixie", "manpages-fr", "4.27.0-1")), 1
    ),
    _manuals_of(
        "pl", "Polish", LAST, (("bullseye", "manpages-pl", "1:4.10.0-1"), ("trixie", "manpages-pl", "1:4.27.0-1")), 1
    ),
    _manuals_of(
        "zh", "Chinese", LAST, (("bullseye", "manpages-zh", "1.6.3.4-1"), ("trixie", "manpages-zh", "1.6.4.3-1")), 2
    ),
    _descriptions_of("de", "German", LAST, 8, ("bullseye", "trixie")),
    _descriptions_of("ja", "Japanese", LAST, 4, ("bullseye", "trixie")),
    Collection(
        "reference-sql",
        "English",
        "database manual",
        LAST,
        (
            ("bullseye", "postgresql-doc-13", "13.16-0+deb11u1"),
            ("trixie", "postgresql-doc-17", "17.11-0+deb13u1"),
        ),
        html_pages("doc/postgresql-doc-1?/html"),
    ),
    Collection(
        "docs-django",
        "English",
        "documentation and release notes",
        LAST,
        (
            ("bullseye", "python-django-doc", "2:2.2.28-1~deb11u2"),
            ("trixie", "python-django-doc", "3:4.2.28-0+deb13u2"),
        ),
        html_pages("doc/python-django-doc/html"),
    ),
    Collection(
        "guide-pt",
        "Portuguese",
        "installation guide",
        LAST,
        (
            ("bullseye", "installation-guide-amd64", "20220129~deb11u1"),
            ("trixie", "installation-guide-amd64", "20250803+deb13u1"),
        ),
        html_pages("doc/installation-guide-amd64/pt"),
    ),
)


# --- Labels ----------------------------------------------------------------------------------------------------------


def tokens_of(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case; ideographs and kana one by one."""
    return tuple(re.findall(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+", text.lower()))


def alignment(a: tuple[str, ...], b: tuple[str, ...], least: float) -> float:
    """Return twice the longest common subsequence over all tokens; 0 if sizes alone keep it below `least`."""
    if 2 * min(len(a), len(b)) < least * (len(a) + len(b)):
        return 0.0
    return float(measures.similarity(list(a), list(b), "lcs"))


def label_of(a: Page, b: Page, *, side_by_side: bool) -> int:
    """Return the label of a pair; `side_by_side`: some release has pages with both names."""
    if a.words == b.words:
        return SAME
    if a.key == b.key:
        least = VERSIONS_SIDE_BY_SIDE if side_by_side and a.name != b.name else SAME_NAME[0]
        found = alignment(a.words, b.words, SAME_NAME[1])
        return SAME if found >= least else DIFFERENT if found < SAME_NAME[1] else IGNORED
    if _without_markers(a.words) == _without_markers(b.words):
        return IGNORED
    if side_by_side:
        return DIFFERENT
    return IGNORED if alignment(a.words, b.words, MAYBE_RENAMED) >= MAYBE_RENAMED else DIFFERENT


def _without_markers(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in words if word not in MARKERS and not any(map(str.isdigit, word)))


def pages_of(collection: Collection, shelf: Shelf) -> list[Page]:
    """Return the pages of a collection, in an order unrelated to their content."""
    found: dict[str, Page] = {}
    for release, package, version in collection.packages:
        for name, text in collection.read(shelf, release, package, version):
            key, words = _key(name, collection), tokens_of(text)
            # Names with the same beginning are one family, used as a whole or not at all.
            family = re.split(r"[-.]", key)[0] if collection.names_have_versions else key
            if _hash(family) % collection.share == 0 and len(words) >= FEWEST_WORDS:
                page = Page(version if release == "npm" else release, name, key, text, words)
                found.setdefault(page.doc_id, page)
    return sorted(found.values(), key=lambda page: _hash(page.doc_id))


def make(collection: Collection, shelf: Shelf, out: Path) -> dict[str, int]:
    """Write the documents and labels of a collection."""
    pages = pages_of(collection, shelf)
    releases_of: dict[str, set[str]] = defaultdict(set)
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row, page in enumerate(pages):
        releases_of[page.name].add(page.release)
        rows_of[page.key].append(row)
    pairs = _near([page.text for page in pages])
    for rows in rows_of.values():
        pairs.update((a, b) for i, a in enumerate(rows) for b in rows[i + 1 :])
    folder = out / collection.name
    folder.mkdir(parents=True, exist_ok=True)
    counts: dict[str, int] = {"documents": len(pages), "1": 0, "0": 0, "-1": 0}
    with gzip.open(folder / "docs.jsonl.gz", "wt", encoding="utf-8") as file:
        for page in pages:
            file.write(json.dumps({"id": page.doc_id, "text": page.text}, ensure_ascii=False) + "\n")
    with (folder / "pairs.tsv").open("w", encoding="utf-8") as file:
        file.write("id1\tid2\tlabel\n")
        for a, b in ((pages[a], pages[b]) for a, b in sorted(pairs)):
            label = label_of(a, b, side_by_side=bool(releases_of[a.name] & releases_of[b.name]))
            counts[str(label)] += 1
            file.write(f"{a.doc_id}\t{b.doc_id}\t{label}\n")
    facts = {"language": collection.language, "kind": collection.kind, "split": collection.split, **counts}
    (folder / "facts.json").write_text(json.dumps(facts) + "\n")
    return counts


def _hash(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def _key(name: str, collection: Collection) -> str:
    """Return a name without versions."""
    return re.sub(r"[\d.]+", "#", name) if collection.names_have_versions else name


def _near(texts: list[str]) -> set[tuple[int, int]]:
    """Return pairs similar enough for a label to matter: all others are clearly different."""
    found: set[tuple[int, int]] = set()
    for recipe in (likewise.Recipe.shingles(0.2, shingle=2), likewise.Recipe.shingles(0.2, shingle=2, weights="idf")):
        table = likewise.pairs(texts, recipe)
        rows = zip(table["row_a"].to_pylist(), table["row_b"].to_pylist(), strict=True)
        found.update((min(pair), max(pair)) for pair in rows)
    return found


def main() -> None:
    """Make the collections."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[one.name for one in COLLECTIONS])
    given = parser.parse_args()
    shelf = Shelf(given.out / "downloads")
    for collection in COLLECTIONS:
        if collection.name in given.only:
            print(collection.name, make(collection, shelf, given.out), flush=True)


if __name__ == "__main__":
    main()
