"""Real English prose found on a Debian machine, as distinct paragraphs.

Sources: documentation packages (downloaded on request, unpacked under bench/data, never installed), /usr/share/doc,
manual pages, the interpreter's own library, and the HTML of a Rust toolchain.
"""

import gzip
import html
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

PACKAGES = (
    "python3.11-doc", "linux-doc-6.1", "debian-policy", "postgresql-doc-15", "perl-doc", "git-doc", "sqlite3-doc",
    "vim-doc", "manpages-dev", "manpages", "openjdk-17-doc", "python-django-doc", "libboost1.74-doc",
)  # fmt: skip
LARGEST_FILE = 8 << 20
TEXT_SUFFIXES = {".txt", ".rst", ".md", ".pod", ".html", ".htm", ".py", ".h", ".hpp", ".rs", ".adoc", ""}
DROPPED_HTML = re.compile(r"<(script|style|head|nav|header|footer|select)\b.*?</\1>", re.S | re.I)
BLOCK_TAG = re.compile(r"</?(p|div|li|ul|ol|dl|dt|dd|tr|table|td|th|h\d|pre|section|blockquote|br)\b[^>]*>", re.I)
TAG = re.compile(r"<[^>]*>")
ROFF_LINE = re.compile(r"^[.'].*$", re.M)
ROFF_ESCAPE = re.compile(r"\\(f[BIRP]|f\(..|\(..|s[-+]?\d|[&%/,|^])")
DOCSTRING = re.compile(r'"""(.*?)"""', re.S)
COMMENT = re.compile(r"/\*(.*?)\*/|((?:^[ \t]*//[/!]?.*\n)+)", re.S | re.M)
BLANK = re.compile(r"\n[ \t]*\n+")
SPACE = re.compile(r"\s+")
WORD = re.compile(r"[A-Za-z]{2,}")


def fetch(data: Path) -> None:
    """Download the documentation packages and unpack them under data/carrier."""
    packages, target = data / "packages", data / "carrier"
    packages.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "-q", "download", *PACKAGES], cwd=packages, check=True)
    for package in sorted(packages.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, target], check=True)


def folders(data: Path) -> list[Path]:
    """Return the folders to search that exist."""
    standard = Path(sysconfig.get_paths()["stdlib"])
    rust = sorted(Path.home().glob(".rustup/toolchains/*/share/doc/rust/html"))[:1]
    wanted = [data / "carrier", Path("/usr/share/doc"), Path("/usr/share/man"), standard, Path("/usr/include"), *rust]
    return [folder for folder in wanted if folder.is_dir()]


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if "man" in path.parts and any(
            len(part) in (2, 5) and part[:2].islower() and part != "man" for part in path.parts[4:-2]
        ):
            continue  # translated manual pages
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_FILE:
            continue
        yield path


def _read(path: Path) -> tuple[str, str]:
    """Return (kind, text) of a file; kind "" if it is not a known kind of text."""
    name = path.name
    data = b""
    if name.endswith(".gz"):
        try:
            data = gzip.decompress(path.read_bytes())
        except OSError:
            return "", ""
        name = name[:-3]
    suffix = Path(name).suffix.lower()
    manual = re.search(r"/man\d\w*/", str(path)) is not None
    if not manual and suffix not in TEXT_SUFFIXES and "/doc/" not in str(path):
        return "", ""
    if suffix in (".png", ".gif", ".jpg", ".svg", ".css", ".js", ".svgz", ".pdf", ".so", ".pyc", ".json"):
        return "", ""
    data = data or path.read_bytes()
    if b"\0" in data[:4096]:
        return "", ""
    kind = "roff" if manual else {".html": "html", ".htm": "html", ".py": "python"}.get(suffix, "text")
    if suffix in (".h", ".hpp", ".rs", ".c", ".cpp"):
        kind = "comments"
    return kind, data.decode("utf-8", "replace")


def _plain(kind: str, text: str) -> str:
    if kind == "html":
        text = DROPPED_HTML.sub("\n\n", text)
        return html.unescape(TAG.sub("", BLOCK_TAG.sub("\n\n", text)))
    if kind == "roff":
        return ROFF_LINE.sub("", ROFF_ESCAPE.sub("", text)).replace("\\-", "-").replace("\\", "")
    if kind == "python":
        return "\n\n".join(DOCSTRING.findall(text))
    if kind == "comments":
        found = ("".join(pair) for pair in COMMENT.findall(text))
        return "\n\n".join(re.sub(r"^[ \t]*(\*|//[/!]?)", "", comment, flags=re.M) for comment in found)
    return text


def paragraphs(data: Path, wanted_bytes: int) -> tuple[list[str], dict[str, int]]:
    """Return distinct paragraphs of prose, at least `wanted_bytes` if available, and the bytes from each folder."""
    seen: set[int] = set()
    found: list[str] = []
    sizes: dict[str, int] = {}
    total = 0
    for folder in folders(data):
        start = total
        for path in _files(folder):
            kind, text = _read(path)
            if not kind:
                continue
            for raw in BLANK.split(_plain(kind, text)):
                paragraph = SPACE.sub(" ", raw).strip()
                if not 60 <= len(paragraph) <= 4000:
                    continue
                words = WORD.findall(paragraph.lower())
                # Prose: mostly letters. Paragraphs that differ only in numbers or one-letter names count as one.
                if len(words) < 9 or sum(map(len, words)) < 0.6 * len(paragraph):
                    continue
                key = hash(" ".join(words))
                if key in seen:
                    continue
                seen.add(key)
                found.append(paragraph)
                total += len(paragraph.encode()) + 1
            if total >= wanted_bytes:
                break
        sizes[folder.name] = total - start
        print(f"{folder.name}: {sizes[folder.name] / 1e6:.0f} MB of distinct paragraphs", file=sys.stderr)
        if total >= wanted_bytes:
            break
    return found, sizes
