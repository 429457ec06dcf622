"""WACZ: the web archives inside are inputs, and are kept as web archives."""

import zipfile

import pytest

import likewise
from likewise.batch.files import dedup_files
from likewise.errors import InvalidInput
from likewise.job.options import FileRun
from tests.golden.texts import made_up
from tests.io.archives import by_member, members, page

pytest.importorskip("fastwarc", reason="the extra web is not installed")

RECIPE = likewise.Recipe.minhash(0.8)
FIRST = by_member([page(number, made_up(60, number)) for number in range(3)])
SECOND = by_member([page(9, made_up(60, 1)), page(10, made_up(60, 20))])


def write_wacz(path, files, packing=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", packing) as collection:
        for name, content in files.items():
            collection.writestr(name, content)
    return path


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_archives_in_a_collection_are_inputs(tmp_path, packing):
    files = {
        "archive/b.warc.gz": SECOND,
        "archive/a.warc.gz": FIRST,
        "indexes/index.cdx": b"x",
        "pages/pages.jsonl": b"{}",
    }
    write_wacz(tmp_path / "crawl.wacz", files, packing)
    summary = dedup_files(tmp_path / "crawl.wacz", tmp_path / "out", RECIPE)
    names = ["crawl.wacz/archive/a.warc.gz", "crawl.wacz/archive/b.warc.gz"]
    assert [file["path"] for file in summary["inputs"]] == names
    assert (summary["num_documents"], summary["num_kept"]) == (5, 4)
    assert (tmp_path / "out" / "kept" / names[0]).read_bytes() == FIRST
    assert members((tmp_path / "out" / "kept" / names[1]).read_bytes()) == members(SECOND)[1:]
    both, run = [tmp_path / "crawl.wacz", write_wacz(tmp_path / "b.wacz", files)], FileRun(duplicate_ids="allow")
    twice = dedup_files(both, tmp_path / "two", RECIPE, run=run)
    assert [file["path"].partition("/")[0] for file in twice["inputs"]] == ["crawl.wacz"] * 2 + ["b.wacz"] * 2
    assert (twice["num_documents"], twice["num_kept"]) == (10, 4)
    (tmp_path / "deep").mkdir()
    with pytest.raises(InvalidInput, match="another WACZ file has this name"):
        dedup_files([both[1], write_wacz(tmp_path / "deep" / "b.wacz", files)], tmp_path / "none", RECIPE)


def test_other_files_of_this_name_are_told(tmp_path):
    for content, message in (
        (
            {"archive/notes.txt": b"", "a.warc.gz": FIRST, "archive/a.jsonl": b"{}"},
            "no web archive is in the folder arch",
        ),
        (None, "not a WACZ file, or damaged"),
    ):
        write_wacz(tmp_path / "in.wacz", content or {})
        if content is None:
            (tmp_path / "in.wacz").write_bytes(b"no zip")
        with pytest.raises(InvalidInput, match=message):
            dedup_files(tmp_path / "in.wacz", tmp_path / "out", RECIPE)
