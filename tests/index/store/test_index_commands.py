"""``likewise index``, and ``dedup`` with an index, as a user runs them."""

import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
from unittest import mock

import pyarrow.parquet as pq
import pytest

import likewise
from likewise import cli
from likewise.batch.against import index as indexed
from likewise.batch.against.index import IndexUse
from likewise.batch.files import stream_dedup
from tests.command import Ran, jsonl
from tests.quality.test_promises import planted

OPTIONS = ["--threshold", "0.6", "--shingle", "2"]
RECIPE = likewise.Recipe.minhash(0.6, shingle=2)


def rows_of(out):
    return [json.loads(line) for line in out.splitlines()]


def command_here(*arguments, stdin=b"", cwd="."):
    """Run the command in this process, since starting dozens of processes would take most of the time."""
    out, err = io.BytesIO(), io.StringIO()
    streams = {
        "stdin": io.TextIOWrapper(io.BytesIO(stdin)),
        "stdout": io.TextIOWrapper(out, "utf-8", write_through=True),
        "stderr": err,
    }
    with mock.patch.multiple(sys, **streams), contextlib.chdir(cwd):
        status = cli._status(list(map(str, arguments)))
        sys.stdout.detach()
    return Ran(status, out.getvalue(), err.getvalue())


def run(*arguments, stdin=b"", status=0):
    ran = command_here("index", *arguments, stdin=stdin)
    assert ran.status == status, ran.err
    return ran


@pytest.fixture
def texts():
    return [text.encode("utf-8", "replace").decode() for text in planted()]


@pytest.fixture
def index(tmp_path):
    path = tmp_path / "seen.lw"
    run("create", path, *OPTIONS)
    return path


def test_from_creation_to_export(tmp_path, index, texts):
    (tmp_path / "in.jsonl").write_bytes(jsonl(texts))
    verdicts = rows_of(run("add", index, tmp_path / "in.jsonl").out)
    removed = {row["row"]: row for row in likewise.dedup(texts, RECIPE).removed.to_pylist()}
    assert [row["doc_id"] for row in verdicts] == [str(row) for row in range(len(texts))]
    assert [row["is_new"] for row in verdicts] == [row not in removed for row in range(len(texts))]
    for number, row in enumerate(verdicts):
        assert (row["seq"], row["added"]) == (number + 1, True)
        if not row["is_new"]:
            expected = removed[number]
            assert (row["kept_id"], row["similarity"]) == (str(expected["kept_id"]), expected["similarity"])

    again = run("add", index, "-", stdin=jsonl(texts[:20]))
    assert not any(row["added"] for row in rows_of(again.out))
    assert "20 documents" in again.err

    # Without ids, from standard input, without a writer.
    checked = rows_of(run("check", index, "-", stdin=jsonl(texts[:3], ids=False)).out)
    assert [row["doc_id"] for row in checked] == [None] * 3
    assert not any(row["is_new"] for row in checked)

    stats = json.loads(run("stats", index).out)
    assert stats["num_documents"] == len(texts)
    assert run("verify", index, "--full").out == b""

    found = rows_of(run("query", index, "-", "--k", "2", stdin=jsonl(texts[:1])).out)
    assert found[0]["neighbors"][0]["doc_id"] == "0"
    near = rows_of(run("query", index, "-", "--among", "kept", stdin=jsonl(texts[:1])).out)[0]["neighbors"]
    assert {one["doc_id"] for one in near} <= {row["doc_id"] for row in verdicts if row["is_new"]}
    leader = next(row["kept_id"] for row in verdicts if not row["is_new"])
    known = rows_of(run("query", index, "--id", leader).out)[0]
    assert known["is_new"]
    assert known["member_ids"] == [row["doc_id"] for row in verdicts if row.get("kept_id") == leader]

    removal = rows_of(run("remove", index, leader).out)[0]
    assert (removal["doc_id"], removal["was_kept"]) == (leader, True)
    assert sorted(removal["promoted"] + [row["doc_id"] for row in removal["moved"]]) == sorted(known["member_ids"])

    run("compact", index)
    run("snapshot", index, tmp_path / "copy.lw")
    exported = rows_of(run("export", tmp_path / "copy.lw").out)
    assert [row["doc_id"] for row in exported] == [row["doc_id"] for row in verdicts if row["doc_id"] != leader]
    assert run("export", index, "-o", tmp_path / "all.jsonl").out == b""
    assert rows_of((tmp_path / "all.jsonl").read_bytes()) == exported


def test_a_line_is_answered_as_soon_as_it_is_there(index):
    command = [sys.executable, "-m", "likewise", "index", "add", str(index), "-", "--quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for number in range(3):
            process.stdin.write(json.dumps({"id": number, "text": f"words of document {number}"}).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["seq"] == number + 1
        process.stdin.close()
    assert process.returncode == 0


def test_bad_rows_are_told_and_those_before_them_are_there(tmp_path, index):
    lines = b'{"id": 1, "text": "one fine day"}\n\n{"id": 2}\n{"id": 3, "text": "another day"}\n'
    ran = run("add", index, "-", stdin=lines, status=2)
    assert [row["doc_id"] for row in rows_of(ran.out)] == ["1"]
    assert "stdin:3:" in ran.err
    ran = run("add", index, "-", "--on-error", "skip", stdin=lines)
    assert [(row["doc_id"], row["added"]) for row in rows_of(ran.out)] == [("1", False), ("3", True)]
    assert "1 bad row skipped" in ran.err
    assert "stdin:1: the row has no id" in run("add", index, "-", stdin=b'{"text": "x"}\n', status=2).err


def test_what_an_index_refuses_is_named_and_what_stands_before_is_stored(index):
    run("add", index, "-", stdin=b'{"id": 1, "text": "one fine day"}\n')
    lines = [
        b'{"id": 7, "text": "first of all"}',
        b'{"id": 1, "text": "something else"}',
        b'{"text": "nobody"}',
        b'{"id": 8, "text": "last of all"}',
        b'{"id": 7, "text": "another last"}',
    ]
    ran = run("add", index, "-", stdin=b"\n".join(lines), status=2)
    assert [row["doc_id"] for row in rows_of(ran.out)] == ["7"]
    assert "stdin:2:" in ran.err
    assert '"1"' in ran.err
    ran = run("add", index, "-", "--on-error", "skip", stdin=b"\n".join(lines))
    assert [(row["doc_id"], row["added"]) for row in rows_of(ran.out)] == [("7", False), ("8", True)]
    assert "3 bad rows skipped" in ran.err
    ran = run("remove", index, "8", "ghost", "7", status=2)
    assert [row["doc_id"] for row in rows_of(ran.out)] == ["8"]
    ran = run("remove", index, "-", "--on-error", "skip", stdin=b"8\nghost\n7\n")
    assert [row["doc_id"] for row in rows_of(ran.out)] == ["7"]
    assert "2 ids" in ran.err


def test_an_index_of_a_recipe_with_tables_and_an_age_limit(tmp_path, texts):
    (tmp_path / "in.jsonl").write_bytes(jsonl(texts))
    (tmp_path / "stop.txt").write_text("the\nof\n")
    assert command_here("weights", tmp_path / "in.jsonl", "-o", tmp_path / "table", *OPTIONS[2:]).status == 0
    path = tmp_path / "i.lw"
    run("create", path, *OPTIONS, "--weights", tmp_path / "table", "--ttl", "1000")
    run("add", path, tmp_path / "in.jsonl")
    assert not any(row["is_new"] for row in rows_of(run("check", path, tmp_path / "in.jsonl").out))
    stats = json.loads(run("stats", path).out)
    assert (stats["ttl_s"], stats["recipe"]["weights"]) == (1000, "idf")
    for option, value in (("expected", "5000"), ("partitions", "2"), ("durability", "written")):
        assert f"--{option}: requires --url" in run("create", tmp_path / "j.lw", f"--{option}", value, status=2).err
    run("create", tmp_path / "k.lw", "--stop-words", tmp_path / "stop.txt")
    assert json.loads(run("stats", tmp_path / "k.lw").out)["recipe"]["stop_words_id"]


def test_no_command_but_create_makes_an_index(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.txt").touch()
    for verb in ("add", "check", "query"):
        assert "no index here" in run(verb, tmp_path / "empty", "-", status=2).err
        assert "other files" in run(verb, tmp_path / "mine", "-", status=2).err
    for verb in ("compact", "stats", "verify", "export"):
        assert "no index here" in run(verb, tmp_path / "empty", status=2).err
    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_who_is_asked_to_end_says_what_is_stored(index):
    command = [sys.executable, "-m", "likewise", "index", "add", str(index), "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(b'{"id": 1, "text": "words"}\n')
        process.stdin.flush()
        process.stdout.readline()
        process.terminate()
        assert b"all printed documents are stored" in process.communicate()[1]
    assert process.returncode == 130
    assert json.loads(run("stats", index).out)["num_documents"] == 1


def test_mistakes_are_told(tmp_path, index):
    assert "Missing argument" in run("add", status=2).err
    assert "Missing argument 'INPUT" in run("add", index, status=2).err
    assert "no index here" in run("add", tmp_path / "nothing", "-", status=2).err
    assert "already exists" in run("create", index, status=2).err
    assert "--prefix: requires --url" in run("stats", index, "--prefix", "x", status=2).err
    assert "ghost" in run("remove", index, "ghost", status=2).err
    assert "ghost" in run("query", index, "--id", "ghost", status=2).err
    assert "unexpected extra argument" in run("stats", index, "more", status=2).err
    for method in ("shingles", "exact", "bloom"):
        ran = run("create", tmp_path / method, "--method", method, status=2)
        assert method in ran.err
        assert not (tmp_path / method).exists()


def dedup(*arguments, status=0, cwd=None):
    ran = command_here("dedup", *arguments, cwd=cwd or ".")
    assert ran.status == status, ran.err
    return ran


@pytest.fixture
def files(tmp_path, texts):
    """Write both halves of the texts, and all texts, to files, and return the size of the first half."""
    half = len(texts) // 2
    lines = jsonl(texts).splitlines(keepends=True)
    for name, part in {"old": lines[:half], "new": lines[half:], "all": lines}.items():
        (tmp_path / f"{name}.jsonl").write_bytes(b"".join(part))
    return half


def test_an_index_of_a_run_has_its_verdicts(tmp_path, files, texts):
    dedup("all.jsonl", "-o", "out", *OPTIONS, "--index", "seen.lw", cwd=tmp_path)
    removed = {row["doc_id"]: row for row in pq.read_table(tmp_path / "out" / "removed.parquet").to_pylist()}
    with likewise.Index(tmp_path / "seen.lw", read_only=True) as index:
        assert len(index) == len(texts)
        for row in range(len(texts)):
            found, evidence = index.get(str(row)), removed.get(str(row))
            assert found.is_new == (evidence is None)
            if evidence is not None:
                assert (found.kept_id, found.similarity) == (evidence["kept_id"], evidence["similarity"])
    assert "already exists" in dedup("all.jsonl", "-o", "out2", "--index", "seen.lw", status=2, cwd=tmp_path).err
    assert not (tmp_path / "out2").exists()
    ran = dedup("all.jsonl", "-o", "o", "--index", "new.lw", "--keep", "longest", status=2, cwd=tmp_path)
    assert "keep" in ran.err
    assert sorted(os.listdir(tmp_path)) == ["all.jsonl", "new.jsonl", "old.jsonl", "out", "seen.lw"]


def test_what_killed_runs_left_of_an_index_is_deleted(tmp_path, files):
    # The state after a run was killed while it created the index: an ended process holds no lock.
    left, living = (tmp_path / f".seen.lw.unfinished-{number}" for number in (11, 12))
    other = tmp_path / ".seen.lw.unfinished-13"
    other.mkdir()
    likewise.Index(left, RECIPE).close()
    with likewise.Index(living, RECIPE):
        dedup("old.jsonl", "-o", "out", *OPTIONS, "--index", "seen.lw", cwd=tmp_path)
        assert not left.exists()
        assert living.exists()
        assert other.exists()


def test_an_index_that_waits_for_its_name_is_no_killed_run_s(tmp_path, files):
    target, found = tmp_path / "seen.lw", []

    class Reader(io.BytesIO):
        def write(self, data):
            # Another run that will create the same index begins while the results of this one are read.
            indexed._delete_left(target)
            found.extend(tmp_path.glob(".seen.lw.unfinished-*"))
            return super().write(data)

    stream_dedup(tmp_path / "old.jsonl", Reader(), RECIPE, index=IndexUse(create=target))
    assert found
    assert target.is_dir()
    assert not list(tmp_path.glob(".seen.lw.*"))


def test_against_an_index_what_it_has_seen_goes(tmp_path, files, texts):
    dedup("old.jsonl", "-o", "old", *OPTIONS, "--index", "seen.lw", cwd=tmp_path)
    ran = dedup("new.jsonl", "-o", "new", "--against", "seen.lw", cwd=tmp_path)
    assert "removed as duplicates of documents in the index" in ran.err
    whole = likewise.dedup(texts, RECIPE)
    kept = [json.loads(line)["id"] for line in (tmp_path / "new" / "kept" / "new.jsonl").read_bytes().splitlines()]
    assert kept == [row for row in range(files, len(texts)) if whole.kept[row]]
    evidence = {row["doc_id"]: row for row in pq.read_table(tmp_path / "new" / "removed.parquet").to_pylist()}
    assert len(evidence) + len(kept) == len(texts) - files
    sources = set()
    for expected in whole.removed.to_pylist():
        if expected["row"] < files:
            continue
        row = evidence[str(expected["doc_id"])]
        sources.add(row["kept_source"])
        if row["kept_source"] == "against":
            assert row["kept_row"] is None
            assert row["kept_file"] is None
            assert row["kept_offset"] is None
            assert int(row["kept_id"]) < files
            if int(expected["kept_id"]) < files:
                assert (row["kept_id"], row["similarity"]) == (str(expected["kept_id"]), expected["similarity"])
        else:
            # It matches no document of the index.
            assert (row["kept_id"], row["similarity"]) == (str(expected["kept_id"]), expected["similarity"])
    assert sources == {"input", "against"}
    summary = json.loads((tmp_path / "new" / "summary.json").read_text())
    from_index = sum(row["kept_source"] == "against" for row in evidence.values())
    assert summary["against"] == {"path": "seen.lw", "num_removed": from_index, "adds": False}
    with likewise.Index(tmp_path / "seen.lw", read_only=True) as index:
        assert len(index) == files

    dedup("new.jsonl", "-o", "new", "--against", "seen.lw", "--add", "--overwrite", cwd=tmp_path)
    with likewise.Index(tmp_path / "seen.lw", read_only=True) as index:
        assert len(index) == files + len(kept)
        assert all(index.get(str(row)).is_new for row in kept)
    # A repeated run has the answer of the first. For another run, all documents are duplicates.
    out = dedup("new.jsonl", "-o", "-", "--against", "seen.lw", "--add", cwd=tmp_path).out
    assert out == (tmp_path / "new" / "kept" / "new.jsonl").read_bytes()
    assert dedup("new.jsonl", "-o", "-", "--against", "seen.lw", cwd=tmp_path).out == b""


def test_what_does_not_go_together_is_refused(tmp_path, files):
    dedup("old.jsonl", "-o", "old", *OPTIONS, "--index", "seen.lw", cwd=tmp_path)
    ran = dedup("new.jsonl", "-o", "o", "--against", "seen.lw", "--threshold", "0.9", status=2, cwd=tmp_path)
    assert "created with a different recipe" in ran.err
    assert "threshold" in ran.err
    assert "--add" in dedup("new.jsonl", "-o", "o", "--add", status=2, cwd=tmp_path).err
    assert "none: no such file" in dedup("new.jsonl", "-o", "o", "--against", "none", status=2, cwd=tmp_path).err
    ran = dedup("new.jsonl", "-o", "o", "--index", "x.lw", "--method", "shingles", status=2, cwd=tmp_path)
    assert "supports minhash and simhash" in ran.err
    both = ("--against", "seen.lw", "--index", "other.lw")
    assert "--index" in dedup("new.jsonl", "-o", "o", *both, status=2, cwd=tmp_path).err
    again = ("--against", "seen.lw", "--add", "--duplicate-ids", "allow")
    assert "ids" in dedup("new.jsonl", "-o", "o", *again, status=2, cwd=tmp_path).err
    # An id of the index with a different text.
    (tmp_path / "clash.jsonl").write_text('{"id": 3, "text": "words that the index has never seen before at all"}\n')
    ran = dedup("clash.jsonl", "-o", "o", "--against", "seen.lw", "--add", status=2, cwd=tmp_path)
    assert "clash.jsonl:1" in ran.err
    assert "'3' is already in the index seen.lw with a different text" in ran.err
    assert not (tmp_path / "o").exists()


def test_erase_writes_a_certificate_without_ids(tmp_path, index, texts):
    run("add", index, "-", stdin=jsonl(texts[:20]))
    ids, key, out = tmp_path / "ids", tmp_path / "key", tmp_path / "erased.json"
    ids.write_bytes(b"3\r\n\nno-such-id\n3\n")
    key.write_bytes(bytes(range(32)))
    ran = run("erase", index, "--ids", ids, "--key-file", key, "--certificate", out)
    assert ran.out == b""
    assert ran.err.startswith("1 document erased; 1 id not in the index")
    certificate = json.loads(out.read_text())
    status = {document["digest"]: document["status"] for document in certificate["documents"]}
    digests = [
        hashlib.blake2b(doc_id, key=key.read_bytes(), digest_size=32).hexdigest() for doc_id in (b"3", b"no-such-id")
    ]
    assert status == dict(zip(digests, ["erased", "absent"], strict=True))
    assert "no-such-id" not in out.read_text()
    assert "no document" in run("query", index, "--id", "3", status=2).err
    # From standard input, without a certificate, and quietly.
    ran = run("erase", index, "--ids", "-", "--quiet", stdin=b"4\n5\n")
    assert (ran.out, ran.err) == (b"", "")
    assert json.loads(run("stats", index).out)["num_documents"] == 17


def test_erase_refuses_before_it_erases(tmp_path, index, texts):
    run("add", index, "-", stdin=jsonl(texts[:5]))
    ids, key, short = tmp_path / "ids", tmp_path / "key", tmp_path / "short"
    ids.write_text("3\n")
    key.write_bytes(bytes(range(32)))
    short.write_bytes(b"x" * 15)
    erase = ["erase", index, "--ids", ids]
    out = tmp_path / "erased.json"
    assert "must be given together" in run(*erase, "--certificate", out, status=2).err
    assert "has 15 bytes; it must have 16 to 64" in run(*erase, "--certificate", out, "--key-file", short, status=2).err
    for target, reason in [
        (ids, "already exists; choose a new file"),
        (tmp_path / "none" / "erased.json", "does not exist"),
        (index / "erased.json", "is inside the index"),
    ]:
        assert reason in run(*erase, "--key-file", key, "--certificate", target, status=2).err
    run("erase", index, "--ids", tmp_path / "none", status=2)
    # No server listens there: the command is rejected before it connects.
    assert "RDB and AOF files" in run("erase", "--url", "redis://localhost:1", "--ids", ids, status=1).err
    assert json.loads(run("stats", index).out)["num_documents"] == 5
    assert {file.name for file in tmp_path.iterdir()} == {"ids", "key", "short", index.name}


def test_an_interrupted_erasure_is_told_by_every_command(tmp_path, index, texts):
    run("add", index, "-", stdin=jsonl(texts[:5]))
    with mock.patch("likewise.index.erasing._remove_all", side_effect=KeyboardInterrupt):
        run("erase", index, "--ids", "-", stdin=b"3\n4\n", status=130)
    told = "note: an erasure of 2 ids from"
    assert told in run("query", index, "--id", "1").err
    assert told in run("add", index, "-", stdin=jsonl(texts[:1])).err
    assert json.loads(run("stats", index).out)["unfinished_erasure"] == 2
    assert (
        b"was interrupted, so its files may still hold their documents; run it again"
        in run("verify", index, status=1).out
    )
    assert "2 documents erased" in run("erase", index, "--ids", os.devnull).err
    assert run("verify", index).out == b""
    assert told not in run("query", index, "--id", "1").err


def test_a_certificate_that_cannot_be_written_in_the_end_is_not_lost(tmp_path, index, texts):
    run("add", index, "-", stdin=jsonl(texts[:5]))
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    with mock.patch("pathlib.Path.write_text", side_effect=OSError(28, "No space left on device")):
        ran = run(
            "erase", index, "--ids", "-", "--key-file", key, "--certificate", tmp_path / "c", stdin=b"3\n", status=1
        )
    assert json.loads(ran.out)["num_erased"] == 1
    assert not (tmp_path / "c").exists()
