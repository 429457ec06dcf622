"""Which files directories and globs select, and what is reported about the others."""

import bz2
import gzip
import io
import json
import lzma
import re
import tarfile
from pathlib import Path

import pytest

from likewise import InvalidInput, LikewiseError, Recipe, dedup_files
from likewise.io.inputs import find_inputs
from likewise.io.source.source import ReadRules
from likewise.job.reading import FileRun
from tests.command import likewise_command
from tests.io.files import ROWS, WRITERS, jsonl, parquet, write_dataset, zstd

SKIPPED = "skipped 2 files of other kinds (or links, text files next to records, or directories matched by a glob)"


def corpus(root):
    """Make a directory with a file, a directory of one file, a dataset, and an empty directory."""
    (root / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "a.jsonl").write_bytes(jsonl(ROWS[:2]))
    (root / "deep" / "b.jsonl").write_bytes(jsonl(ROWS[2:3]))
    write_dataset(root / "set", ROWS[3:])


def test_directories_that_a_glob_finds_are_told(tmp_path):
    corpus(tmp_path / "in")
    ran = likewise_command("dedup", tmp_path / "in" / "*", "-o", tmp_path / "out")
    assert ran.status == 0, ran.err
    assert f"{SKIPPED}: deep/, set/\n" in ran.err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["skipped_files"] == ["deep/", "set/"]
    assert summary["num_documents"] == 2
    with pytest.raises(InvalidInput, match="globs match files, not directories; give the directories themselves"):
        dedup_files(f"{tmp_path / 'in'}/*/", tmp_path / "none")


def test_every_command_tells_what_it_did_not_read(tmp_path):
    corpus(tmp_path / "in")
    assert likewise_command("index", "create", tmp_path / "seen.lw").status == 0
    for command in (
        ("pairs", "-o", "-"),
        ("index", "add", tmp_path / "seen.lw"),
        ("index", "check", tmp_path / "seen.lw"),
    ):
        ran = likewise_command(*command, tmp_path / "in" / "*")
        assert ran.status == 0, ran.err
        assert ran.err.endswith(f"{SKIPPED}: deep/, set/\n")


def test_a_directory_that_nobody_may_look_into_is_told(tmp_path, monkeypatch):
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "a.jsonl").write_bytes(jsonl([{"id": "a", "text": "one"}]))

    def iterdir(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", iterdir)
    found = find_inputs([str(tmp_path / "*")], ReadRules())
    assert ([file.name for file in found.files], found.skipped) == (["a.jsonl"], ("lost+found/",))


def test_a_glob_of_everything_below_is_the_directory(tmp_path):
    corpus(tmp_path / "in")
    named = dedup_files(tmp_path / "in", tmp_path / "named")
    found = dedup_files(tmp_path / "in" / "**", tmp_path / "found")
    assert found["num_documents"] == len(ROWS)
    assert [file["path"] for file in found["inputs"]] == [file["path"] for file in named["inputs"]]
    # Caches next to the rows of a dataset are not documents, and the kept output of a dataset is a dataset.
    assert (tmp_path / "found" / "kept" / "set" / "state.json").is_file()
    assert not any(name.endswith("/") for name in found["skipped_files"])


def test_the_rows_of_a_dataset_that_are_there_are_read_by_glob(tmp_path):
    write_dataset(tmp_path / "set", ROWS)
    rows = sorted((tmp_path / "set").glob("data-*.arrow"))
    rows[-1].unlink()
    found = dedup_files(tmp_path / "set" / "data-*.arrow", tmp_path / "out")
    assert [file["path"] for file in found["inputs"]] == [path.name for path in rows[:-1]]
    with pytest.raises(InvalidInput, match="which is not a file in the same directory"):
        dedup_files(tmp_path / "set", tmp_path / "none")


def test_caches_of_a_dataset_that_a_shell_names_are_refused(tmp_path):
    write_dataset(tmp_path / "set", ROWS)
    files = sorted((tmp_path / "set").glob("*.arrow"))
    caches = [path for path in files if not path.name.startswith("data-")]
    assert caches
    with pytest.raises(InvalidInput, match=f"{caches[0].name}: this is a cache of the dataset next to it; give the d"):
        find_inputs(files, ReadRules())
    assert len(find_inputs(caches, ReadRules()).files) == len(caches)
    rows = [path for path in files if path not in caches]
    assert len(find_inputs(rows, ReadRules()).files) == len(rows)


def test_links_are_read_by_name_and_by_glob(tmp_path):
    (tmp_path / "blob").write_bytes(jsonl(ROWS))
    (tmp_path / "snapshot").mkdir()
    (tmp_path / "snapshot" / "part.jsonl").symlink_to(tmp_path / "blob")
    with pytest.raises(InvalidInput, match=r"skipped: part.jsonl\); links inside a directory are not followed; give"):
        dedup_files(tmp_path / "snapshot", tmp_path / "none")
    for number, name in enumerate(("part.jsonl", "*.jsonl")):
        summary = dedup_files(tmp_path / "snapshot" / name, tmp_path / str(number))
        assert summary["num_documents"] == len(ROWS)


# Files of each kind of table, one of which its table no longer has.
TABLES = {
    "Delta": ["_delta_log/00000000000000000000.json", "part-0.parquet", "part-1.parquet"],
    "Delta, partitioned": ["_delta_log/00000000000000000000.json", "day=1/part-0.parquet", "day=2/part-1.parquet"],
    "Iceberg": ["metadata/v1.metadata.json", "data/a.parquet", "data/b.parquet"],
    "Iceberg, compressed": ["metadata/00001-a.gz.metadata.json", "data/a.parquet", "data/b.parquet"],
    "Iceberg, renamed": ["metadata/v1.metadata.json.gz", "data/day=1/a.parquet", "data/day=2/b.parquet"],
    "Hudi": [".hoodie/hoodie.properties", "1_a.parquet", "2_a.parquet"],
    "DuckLake": ["ducklake-1.parquet", "ducklake-2-delete.parquet"],
}
# Formats whose folders are read as a whole, by libraries that do not read these.
READ = ("Delta", "Iceberg")


def write_table(root, kind):
    for name in TABLES[kind]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(parquet(ROWS) if name.endswith(".parquet") else b"{}")
    return sorted(root.rglob("*.parquet"))


@pytest.mark.parametrize("kind", TABLES)
def test_folders_of_tables_are_refused(tmp_path, kind):
    files = write_table(tmp_path / "lake" / "rows", kind)
    message = rf"/lake/rows: .* {kind.partition(',')[0]} table, and its files also contain rows that the table no"
    above = files[0].parent
    folder = tmp_path / "lake" / "rows"
    for name in (folder.parent, folder) if kind.startswith(READ) else ():
        with pytest.raises(LikewiseError, match=r"rows: the library of|table (lake/)?rows requires an extra: pip"):
            dedup_files(name, tmp_path / "out")
    for name in (
        *(() if kind.startswith(READ) else (folder.parent, folder)),
        *(() if above == folder and kind.startswith(READ) else (above,)),
        f"{above}/*.parquet",
        f"{tmp_path}/**/*.parquet",
        f"{tmp_path}/lake/*/**/*[a-z0-9].parquet",
    ):
        with pytest.raises(InvalidInput, match=message):
            dedup_files(name, tmp_path / "out")
        with pytest.raises(InvalidInput, match=message):
            dedup_files(jsonl_file(tmp_path), tmp_path / "out", against=[name])
    # A shell that expands a glob names the files one by one.
    for named in (files, files[:1]):
        with pytest.raises(InvalidInput, match=message):
            dedup_files(named, tmp_path / "out")
    if kind != "DuckLake":
        files[0].rename(tmp_path / files[0].name)
        assert dedup_files(tmp_path / files[0].name, tmp_path / "out")["num_documents"] == len(ROWS)


def jsonl_file(folder):
    path = folder / "own.jsonl"
    path.write_bytes(jsonl(ROWS))
    return path


@pytest.mark.parametrize("kind", TABLES)
def test_folders_of_tables_in_stores_are_refused(tmp_path, kind):
    store = pytest.importorskip("fsspec").filesystem("memory")
    files = write_table(tmp_path / "rows", kind)
    store.put(f"{tmp_path}/rows", "/lake/", recursive=True)
    try:
        below = files[0].parent.relative_to(tmp_path).as_posix()
        own = f"lake/{below}/{files[0].name}"
        for name in ("lake", "lake/rows", f"lake/{below}", f"lake/{below}/*.parquet", "lake/**/*.parquet", own):
            with pytest.raises(InvalidInput, match="and its files also contain rows that the table no longer has"):
                dedup_files(f"memory://{name}", tmp_path / "out")
    finally:
        store.store.clear()


def test_folders_next_to_a_table_are_read(tmp_path):
    write_table(tmp_path / "lake", "Delta")
    write_table(tmp_path / "warehouse", "Iceberg")
    jsonl_file(tmp_path)
    (tmp_path / "warehouse" / "exported").mkdir()
    jsonl_file(tmp_path / "warehouse" / "exported")
    for name in (f"{tmp_path}/*.jsonl", f"{tmp_path}/**/own.jsonl", tmp_path / "warehouse" / "exported"):
        assert find_inputs([name], ReadRules()).files


@pytest.mark.parametrize("deep", ["", "data/"])
@pytest.mark.parametrize("name", ["in.jsonl", "in.csv", "in.parquet", "file.arrow"])
def test_text_files_next_to_records_are_skipped(tmp_path, deep, name):
    """They describe the records; they are documents if they are alone, or named."""
    root = tmp_path / "set"
    (root / deep).mkdir(parents=True)
    (root / deep / name).write_bytes(WRITERS[name](ROWS))
    prose = ["LICENSE.txt", "README.md", "card.rst"]
    for other in prose:
        (root / other).write_text("about the records")
    for given in (root, f"{root}/**"):
        found = find_inputs([given], ReadRules())
        assert [Path(file.name).name for file in found.files] == [name]
        assert [one for one in found.skipped if not one.endswith("/")] == prose
    both = [root / "README.md", root / deep / name]
    if deep:
        assert [Path(file.name).name for file in find_inputs(both, ReadRules()).files] == ["README.md", name]
    else:
        # A shell that expands a glob names the files one by one.
        (root / "LICENSE").write_text("the terms")
        for named in (both, [root / "LICENSE", root / name]):
            with pytest.raises(InvalidInput, match=r"(README.md|LICENSE): this text file is next to records"):
                find_inputs(named, ReadRules())
        (root / "LICENSE").unlink()
    for given, forced in ((root, "text"), (f"{root}/*.[mtr]*", None)):
        assert [file.name for file in find_inputs([given], ReadRules(), file_format=forced).files] == prose
    (root / deep / name).unlink()
    assert [file.name for file in find_inputs([root], ReadRules()).files] == prose


def test_text_files_next_to_records_in_stores_are_skipped(tmp_path):
    store = pytest.importorskip("fsspec").filesystem("memory")
    store.pipe({"/set/README.md": b"about the records", "/set/in.jsonl": jsonl(ROWS)})
    try:
        for name in ("memory://set", "memory://set/*"):
            found = find_inputs([name], ReadRules(), spool_directory=tmp_path / name[-1])
            assert [file.name for file in found.files] == ["in.jsonl"]
            assert [Path(one).name for one in found.skipped] == ["README.md"]
    finally:
        store.store.clear()


def tar():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("own.jsonl"), io.BytesIO())
    return file.getvalue()


def gz(data):
    """Return the same bytes in every process, so that the ids of tests are equal."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("dump.xml", b'<mediawiki xmlns="x">\n<page>', "a MediaWiki dump; convert its pages to JSON Lines"),
        ("dump.xml", b'\n<?xml version="1.0"?>\n<mediawiki>', "a MediaWiki dump; convert its pages to JSON Lines"),
        ("dump", b'\xef\xbb\xbf<?xml version="1.0"?><rss>', "XML; convert its records .* --format text"),
        ("feed.xml", b"<feed><entry>", "XML; convert its records to JSON Lines"),
        ("a.json-seq", b'\x1e{"text": "a"}\n\x1e{"text": "b"}\n', r"a JSON text sequence; .*tr -d '\\036' | jq -c \."),
        ("a.json", b'[{"text": "a"}]', r"a JSON array; convert it to JSON Lines with jq -c '\.\[\]'"),
        ("a", b'[ "one", "two" ]', "a JSON array"),
        ("mail", b"From ann@example.org Thu Jan  1 10:00:00 2026\nTo: x\n", "a mailbox; convert its messages"),
        ("a.pdf", b"%PDF-1.7\n", "a PDF; convert it to text first, for example with pdftotext"),
        ("rows", bz2.compress(jsonl(ROWS)), "compressed with bzip2; specify its format with --format"),
        ("a.parquet.xz", lzma.compress(jsonl(ROWS)), "compressed with xz; specify its format with --format"),
        ("a.zip", b"PK\x03\x04\x14\0", "a zip archive; extract it first, for example with unzip"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c\0", "a 7z or RAR archive; extract it first"),
        ("a.sqlite", b"SQLite format 3\0", "an SQLite database; export its rows"),
        ("a.avro", b"Obj\x01\x04", "Avro; export its rows"),
        ("a.orc", b"ORC\x0a\x0b", "ORC; export its rows"),
        ("a.log", "wide".encode("utf-16"), "UTF-16; convert it to UTF-8"),
        ("a.duckdb", bytes(8) + b"DUCK\x40\0", "a DuckDB database; export its rows"),
        ("a.jsonl.lz4", b"\x04\x22\x4d\x18\x64\x40\xa7", "lz4; decompress it first, for example with unlz4"),
        ("a.lzma", lzma.compress(jsonl(ROWS), lzma.FORMAT_ALONE), "lzma; decompress it first, for example with unlzma"),
        ("a.docx", b"PK\x03\x04".ljust(30, b"\0") + b"[Content_Types].xml", "an office .* pandoc, and compare"),
        ("a.rtf", rb"{\rtf1\ansi one}", "an office document or e-book; convert it to text first, for example with"),
        (
            "a.tar.gz",
            gz(tar()),
            "a tar archive, compressed with gzip; extract it with tar -xf, or, if its members are samples",
        ),
        (
            "a.tgz",
            gz(tar()),
            "a tar archive, compressed with gzip; extract it with tar -xf, or, if its members are samples",
        ),
        (
            "a.tar.zst",
            zstd(tar()),
            "a tar archive, compressed with zstd; extract it with tar -xf, or, if its members are samples",
        ),
        ("dump.xml.gz", gz(b"<mediawiki>"), "a MediaWiki dump, compressed with gzip; convert its pages to"),
        ("a.json.gz", gz(b'[{"text": "a"}]'), r"a JSON array, .* gzip; convert it to .* jq -c '\.\[\]'$"),
        ("a.gz", gz(b"lines"), "compressed with gzip; specify its format with --format"),
    ],
)
def test_files_of_known_other_kinds_are_refused_with_the_way(tmp_path, name, data, message):
    """The words are the same for a file that is named, one that is alone in a directory, and one that a run skips."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / name).write_bytes(data)
    with pytest.raises(InvalidInput, match=f"{name}:.* the file is {message}"):
        find_inputs([folder / name], ReadRules())
    for given in (folder, f"{folder}/*"):
        with pytest.raises(InvalidInput, match=f"skipped: {name}.*; {name} was skipped: the file is {message}"):
            find_inputs([given], ReadRules())
    jsonl_file(folder)
    told = []
    for given in (folder, f"{folder}/*"):
        assert find_inputs([given], ReadRules(), progress=told.append).skipped == (name,)
    assert len(told) == 2
    assert all(re.search(f"{name} was skipped: the file is {message}", event.message) for event in told)


@pytest.mark.parametrize("kind", ["JSON text sequence", "MediaWiki dump"])
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_records_under_the_name_of_a_text_are_refused(tmp_path, name, kind):
    """They would be one document, or as many bad rows as lines."""
    (tmp_path / name).write_bytes(b'\x1e{"text": "a"}\n' if kind.startswith("JSON") else b"<mediawiki>")
    for given in (tmp_path / name, tmp_path, f"{tmp_path}/*"):
        with pytest.raises(InvalidInput, match=f"{name}:1: the file is a {kind}, despite its name; convert"):
            find_inputs([given], ReadRules())
    assert len(find_inputs([tmp_path / name], ReadRules(), file_format="text").files) == 1


def test_a_text_file_that_is_none_is_a_bad_row(tmp_path):
    for name, data in {
        "a": b"%PDF-1.7\n\xff",
        "b": "wide".encode("utf-16"),
        "c": gz(b"packed"),
        "d": b"a text",
    }.items():
        (tmp_path / f"{name}.txt").write_bytes(data)
    run = FileRun(on_error="skip", max_bad_rows="100%")
    summary = dedup_files(tmp_path, tmp_path / "out", Recipe.exact(), run=run)
    assert (summary["num_documents"], summary["num_bad_rows"]) == (1, 3)


def test_an_archive_under_the_name_of_a_format_is_refused(tmp_path):
    """Its first lines would be read as a document."""
    for name, forced in (("a.jsonl.gz", None), ("a.csv.zst", None), ("a.tar.gz", "jsonl"), ("a.tgz", "csv")):
        (tmp_path / name).write_bytes((zstd if name.endswith("zst") else gz)(tar()))
        with pytest.raises(InvalidInput, match="the file is a tar archive, despite its name; extract it with tar -xf"):
            find_inputs([tmp_path / name], ReadRules(), file_format=forced)


def test_a_tar_archive_of_other_files_is_refused_with_the_way(tmp_path):
    with tarfile.open(tmp_path / "a", "w") as archive:
        archive.add(jsonl_file(tmp_path), "own.jsonl")
    with pytest.raises(
        InvalidInput, match=r"a tar archive; extract it with .* if its members are samples, give it unc"
    ):
        find_inputs([tmp_path / "a"], ReadRules())
    (tmp_path / "a").rename(tmp_path / "a.tar")
    with pytest.raises(InvalidInput, match=r'a.tar:1: no field "text" \(found: jsonl, id\)'):
        dedup_files(tmp_path / "a.tar", tmp_path / "out")


@pytest.mark.parametrize(
    "text",
    ["ORCHIDS are plants", "From Rome to Paris", "[[a link]] in a wiki", "[1] a footnote", "<!DOCTYPE html><html>", ""],
)
def test_texts_under_unknown_names_are_documents(tmp_path, text):
    for start in ("", '<?xml version="1.0"?>\n<!DOCTYPE html>' if text.startswith("<") else "\n"):
        (tmp_path / "a.log").write_text(start + text)
        assert len(find_inputs([tmp_path / "a.log"], ReadRules()).files) == 1
