"""Commands in the documentation do what it states: each block runs as shown, in its own folder."""

import gzip
import json
import re
import shutil
import socket
import sys
from pathlib import Path

import pytest

from tests.command import jsonl
from tests.io import archives
from tests.structure import pages
from tests.structure.test_documentation import COMMAND_PAGES, TEXTS, TOGETHER, TUTORIAL, evaluated, folder
from tests.structure.test_rules import ROOT

__all__ = ["folder"]


def test_every_block_is_run_or_says_why_not():
    for page in pages.pages():
        assert not pages.hidden_commands(page), page
        # Fences that the pattern misses would never be run.
        assert not re.search(r"^([ \t]+```|~~~|````)", (ROOT / page).read_text(encoding="utf-8"), re.M), page
        for block in pages.fenced(page):
            assert not block.mark or block.why_not_run or block.mark == pages.SERVES, (page, block.line)
            if block.language == "console" and not block.why_not_run:
                assert block.code.startswith("$ "), (page, block.line)


def test_the_tutorial_goes_as_written(tmp_path, monkeypatch, capsys):
    names = run_all_blocks(TUTORIAL, tmp_path, monkeypatch, capsys)
    assert names["result"].kept.tolist() == [True, False, True]
    assert {path.name for path in tmp_path.iterdir()} >= {"notices.jsonl", "out", "copies", "newest", "mine", "seen.lw"}


def test_the_front_page_goes_as_written(tmp_path, monkeypatch, capsys):
    names = run_all_blocks("README.md", tmp_path, monkeypatch, capsys)
    assert names["result"].kept.tolist() == [True, False, True]
    assert names["verdict"].kept_id == "doc-1"


@pytest.mark.parametrize("page", TOGETHER)
def test_a_page_whose_python_reads_files_of_its_commands(page, tmp_path, monkeypatch, capsys):
    run_all_blocks(page, tmp_path, monkeypatch, capsys)


def run_all_blocks(page, tmp_path, monkeypatch, capsys):
    """Run every block in order in one empty folder, comparing output with the lines shown; return the Python names."""
    monkeypatch.chdir(tmp_path)
    names, printed = {}, ""
    for block in pages.fenced(page):
        if block.why_not_run:
            continue
        if block.language == "python":
            capsys.readouterr()
            evaluated(block.code, names)
            printed = capsys.readouterr().out
        elif block.language == "text":
            pages.shows(printed, block.code.splitlines(), f"line {block.line}")
        elif block.mark == pages.SERVES:
            pytest.importorskip("fastapi", reason="needs likewise[server]")
            (command,) = pages.commands(block)
            page, said = pages.serve(command[0], tmp_path, free_port())
            assert "Groups" in page
            assert "http://127.0.0.1:8765" in said
        elif block.language in pages.SHELL:
            for command, output in pages.commands(block):
                pages.shows(pages.run(command, tmp_path), output, command)
    return names


def free_port():
    """Return a port that is free at the moment."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_a_line_that_is_not_said_is_seen(tmp_path):
    pages.shows("one\ntwo 2.5\nthree\n", ["one", "...", "t...e"])
    with pytest.raises(AssertionError):
        pages.shows("one\ntwo\n", ["two", "one"])
    with pytest.raises(AssertionError):
        pages.run("likewise diff nothing nowhere", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_commands_run(page, folder):
    """Run every command of a page in the shell, in order, with the output shown; `-o out` always finds no `out`."""
    give(folder)
    shell = [block for block in pages.fenced(page) if block.language in pages.SHELL and not block.why_not_run]
    lines = [item for block in shell for item in pages.commands(block)]
    lines += [(line.removeprefix("$ ").strip(), []) for line in indented(page)]
    for command, output in lines:
        command = command.replace("KEPT_ID", "1").replace("DOC_ID", "0")
        if re.search(r"-o out\b", command):
            shutil.rmtree(folder / "out", ignore_errors=True)
        pages.shows(pages.run(command, folder), output, command)


def indented(page):
    """Return commands in indented paragraphs."""
    fenced = {line for block in pages.fenced(page) for line in block.code.splitlines()}
    return [line for block in pages.blocks(page, "console") for line in block.splitlines() if line not in fenced]


def give(folder):
    """Write the files that the pages assume."""
    pages.write(folder, "names.txt", "小明\n")
    pages.write(folder, "stop.txt", "的\n")
    pages.write(folder, "terms.tsv", "flood\t5\nriver\t3\nthe\t0\n")
    pages.write(folder, "table.csv", "url,body\na,some text\nb,some text\n")
    for name in ("one.so", "two.so"):
        pages.write(folder, f"builds/{name}", bytes(range(256)) * 20 + name.encode())
    pages.write(folder, "crawl/a.jsonl", jsonl(TEXTS))
    news = [
        {"id": number, "text": text, "published": f"2026-01-{number + 1:02}", "source": "a" if number % 2 else "b"}
        for number, text in enumerate(TEXTS)
    ]
    pages.write(folder, "news.jsonl", "".join(json.dumps(row) + "\n" for row in news))
    pages.write(folder, "questions.jsonl", jsonl(TEXTS[:1]))
    for first, name in ((0, "crawl/a.warc.gz"), (10, "crawl/a.warc.wet.gz"), (20, "crawl.warc.gz")):
        members = archives.by_member(archives.page(number, text) for number, text in enumerate(TEXTS, first))
        pages.write(folder, name, members)
    pages.write(folder, "notes/deep/a.md", "some words\n")
    zstandard = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    pages.write(folder, "articles.jsonl.zst", zstandard.compress(jsonl(TEXTS)))
    pages.write(folder, "dump.gz", gzip.compress(b"id,text\na,some text\nb,some text\n"))
    assert Path("articles.jsonl").is_file()
