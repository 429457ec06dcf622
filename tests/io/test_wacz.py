"""WACZ: the web archives inside are read as one, and their kept records are written to a new collection."""

import zipfile

import pytest

import likewise
from likewise.batch.files import dedup_files
from likewise.errors import InvalidInput
from likewise.job.reading import FileRun
from likewise.runs.audit import audit
from likewise.runs.report import report
from tests.golden.texts import made_up
from tests.io.archives import by_member, page

pytest.importorskip("fastwarc", reason="the extra web is not installed")

RECIPE = likewise.Recipe.minhash(0.8)
FIRST = [page(number, made_up(60, number)) for number in range(3)]
SECOND = [page(9, f"{made_up(60, 1)} appended"), page(10, made_up(60, 20))]
OTHERS = {
    "indexes/index.cdx": b"x",
    "pages/pages.jsonl": b"{}",
    "pages/archive/c.warc": b"".join(FIRST),
    "archive/": b"",
}


def write_wacz(path, files, packing=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", packing) as collection:
        for name, content in files.items():
            collection.writestr(name, content)
    return path


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("ending", [".warc", ".warc.gz"])
def test_the_archives_in_a_collection_are_read(tmp_path, packing, ending):
    pack = b"".join if ending == ".warc" else by_member
    folder = tmp_path / "in"
    folder.mkdir()
    files = {f"archive/b{ending}": pack(SECOND), f"archive/a{ending}": pack(FIRST), **OTHERS}
    path = write_wacz(folder / "crawl.wacz", files, packing)
    (folder / "README.md").write_text("about")
    outs = [tmp_path / "1", tmp_path / "2", tmp_path / "3"]
    for given, out in zip((path, folder, f"{folder}/*"), outs, strict=True):
        summary = dedup_files(given, out, RECIPE)
        assert [file["path"] for file in summary["inputs"]] == ["crawl.wacz"]
        assert (summary["num_documents"], summary["num_kept"]) == (5, 4)
    kept = outs[0] / "kept" / "crawl.wacz"
    with zipfile.ZipFile(kept) as collection:
        assert collection.namelist() == [f"archive/data{ending}"]
        assert collection.read(f"archive/data{ending}") == pack([*FIRST, SECOND[1]])
    assert kept.read_bytes() == (outs[1] / "kept" / "crawl.wacz").read_bytes()
    assert audit(outs[0]).passed
    assert "appended" in report(outs[0])
    again = dedup_files(outs[0] / "kept", tmp_path / "again", RECIPE)
    assert (again["num_documents"], again["num_kept"]) == (4, 4)


def test_other_files_of_this_name_are_refused(tmp_path):
    path, packed = tmp_path / "in.wacz", by_member(FIRST)
    for files, message in (
        (
            {"deep/archive/a.warc.gz": packed, "archive/b/a.warc.gz": packed, "archive/a.jsonl": b"{}"},
            "no web archive in",
        ),
        (
            {"archive/a.warc.gz": packed, "archive/b.warc": b"".join(SECOND)},
            "both compressed and plain web archives in",
        ),
    ):
        with pytest.raises(InvalidInput, match=rf"in.wacz: the file has {message} its folder archive"):
            dedup_files(write_wacz(path, files), tmp_path / "out", RECIPE)
    whole = write_wacz(path, {"archive/a.warc.gz": packed}, zipfile.ZIP_STORED).read_bytes()
    for damaged in (b"", b"no zip", whole[: len(whole) // 2], whole.replace(packed[:50], packed[:49] + b"?")):
        path.write_bytes(damaged)
        with pytest.raises(InvalidInput, match=r"in.wacz: not a WACZ file, or a damaged one: "):
            dedup_files(path, tmp_path / "out", RECIPE)


def test_limits_of_unpacking_hold_for_both_layers(tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.io.archives.warc_records._UNSUSPECTED_BYTES", 1000)
    pages = [page(0, "the same words " * 2000)] * 40
    plain = write_wacz(tmp_path / "plain.wacz", {"archive/a.warc": b"".join(pages)})
    twice = write_wacz(tmp_path / "twice.wacz", {"archive/a.warc.gz": by_member(pages)})
    for path in (plain, twice):
        for limits in ({"max_unpack_ratio": 20}, {"max_unpacked_bytes": 2000}):
            with pytest.raises(
                InvalidInput, match=rf"{path.name}: \d+ bytes decompress to over \d+, perhaps a decompression"
            ):
                dedup_files(path, tmp_path / "out", RECIPE, run=FileRun(duplicate_ids="allow", **limits))
        run = FileRun(duplicate_ids="allow", max_unpack_ratio=2000)
        assert dedup_files(path, tmp_path / path.stem, RECIPE, run=run)["num_kept"] == 1
    # The ratio of each layer is allowed, but not that of both.
    with zipfile.ZipFile(twice) as collection:
        size = collection.getinfo("archive/a.warc.gz").file_size
    outer, inner = size / twice.stat().st_size, sum(map(len, pages)) / size
    assert min(outer, inner) > 2
    run = FileRun(duplicate_ids="allow", max_unpack_ratio=int(1.2 * max(outer, inner)) + 1)
    with pytest.raises(InvalidInput, match="perhaps a decompression bomb"):
        dedup_files(twice, tmp_path / "out", RECIPE, run=run)
