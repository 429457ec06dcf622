"""Hostile conditions: unwritable places, inputs named twice, odd fields and ids."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.files import stream_dedup
from likewise.io.output import whole as scratch
from likewise.job.reading import FileRun
from likewise.runs.diff import aligned
from tests.command import jsonl, likewise_command, started
from tests.golden.texts import made_up
from tests.waiting import wait_until

TEXTS = ["one two three four five six", "one two three four five SIX", "something else"]


@pytest.fixture
def articles(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(jsonl(TEXTS))
    return path


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.jsonl", "pairs.parquet", "sketches.npy", "sketches.parquet"])
def test_a_missing_directory_is_named(tmp_path, articles, name):
    command = name.split(".")[0].removesuffix("es")
    target = tmp_path / "absent" / name
    ran = likewise_command(command, articles, "-o", target)
    first = ran.err.splitlines()[0]
    assert (ran.status, ran.out) == (2, b"")
    assert f"{target}: directory {target.parent} does not exist; create it" in first
    assert "unfinished" not in ran.err


def limited(*arguments, file_bytes=0, standard_output=os.devnull):
    """Run a command that may write files up to a size only, as on a full device."""
    process = started(Path(__file__).with_name("full.py"), file_bytes, standard_output, *arguments)
    with process.stdout, process.stderr:
        said = process.stderr.read()
    return process.wait(), said


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.jsonl", "pairs.parquet", "sketches.npy", "sketches.parquet"])
def test_a_full_device_is_named(tmp_path, name):
    articles = tmp_path / "a.jsonl"
    articles.write_bytes(jsonl([f"{os.urandom(9).hex()} one two three four five six seven" for _ in range(300)]))
    command = name.split(".")[0].removesuffix("es")
    options = ("--threshold", "0.3") if command == "pairs" else ()
    status, said = limited(command, articles, "-o", tmp_path / name, *options, file_bytes=500)
    assert (status, f"error: {tmp_path / name}: file too large" in said, "hint: free some space" in said) == (
        1,
        True,
        True,
    ), said
    assert "unfinished" not in said
    assert not (tmp_path / f".{name}.unfinished").exists()
    assert not (tmp_path / name).exists()


def test_a_full_output_directory_and_a_full_tmpdir_are_named(tmp_path, articles, monkeypatch):
    status, said = limited("dedup", articles, "-o", tmp_path / "out", file_bytes=50)
    assert (status, said.splitlines()[0]) == (1, f"error: {tmp_path / 'out'}: file too large")
    (tmp_path / "tmp").mkdir()
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(articles.read_bytes()))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    status, said = limited("pairs", packed, "-o", tmp_path / "p.tsv", file_bytes=50)
    assert (status, said.splitlines()[0]) == (
        1,
        f"error: {tmp_path / 'tmp'}, the directory for temporary files (set TMPDIR to use another one): file too large",
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("command", ["pairs", "dedup", "dedup --json", "plan"])
def test_a_full_standard_output_is_named(tmp_path, articles, command):
    name, *json_option = command.split()
    arguments = ["plan", "--threshold", "0.8"]
    if name != "plan":
        arguments = [name, articles, "-o", tmp_path / "out" if json_option else "-", *json_option]
    check_named(*limited(*arguments, standard_output="/dev/full"))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("arguments", [("dedup", "-o", "-"), ("plan", "--threshold", "0.8")])
def test_a_full_standard_output_that_is_not_buffered_is_named(articles, arguments):
    name, *options = arguments
    command = [sys.executable, "-m", "likewise", name, *([articles] if name == "dedup" else []), *options]
    with open("/dev/full", "wb") as full:
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment, text=True)
    check_named(done.returncode, done.stderr)


def check_named(status, said):
    assert status == 1
    assert "error: standard output: no space left on device\nhint: free some space" in said
    assert "Traceback" not in said


def test_an_input_is_never_the_output(tmp_path, articles):
    before = articles.read_bytes()
    for command in (["pairs", articles, "-o", articles], ["pairs", tmp_path / "." / "a.jsonl", "-o", articles]):
        ran = likewise_command(*command)
        assert ran.status == 2
        assert "both input and output" in ran.err
        assert articles.read_bytes() == before
    # Output of an earlier run in the directory is not read by the next.
    for _ in range(2):
        ran = likewise_command("pairs", tmp_path, "-o", tmp_path / "pairs.jsonl")
        assert "1 pair among 3 documents" in ran.err


def test_one_file_named_twice_says_so(tmp_path, articles):
    for again in (articles, tmp_path, tmp_path / "*.jsonl"):
        ran = likewise_command("dedup", articles, again, "-o", tmp_path / "out")
        assert ran.status == 2
        assert f"{articles}: this file is in the inputs twice" in ran.err
        assert "give it once" in ran.err


def test_links_as_output(tmp_path, articles):
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    ran = likewise_command("dedup", articles, "-o", tmp_path / "link")
    assert ran.status == 2
    assert f"{tmp_path / 'link'} is a broken link; delete it" in ran.err
    # A link to a file that does not exist yet is written through, as in a shell.
    (tmp_path / "link.tsv").symlink_to(tmp_path / "real.tsv")
    assert likewise_command("pairs", articles, "-o", tmp_path / "link.tsv").status == 0
    assert (tmp_path / "link.tsv").is_symlink()
    assert (tmp_path / "real.tsv").read_bytes().startswith(b"doc_id_a")


def kept_id(rows, keep, suffix="jsonl"):
    if suffix == "csv":
        lines = ["id,text,n", *(f"{i},same words,{n}" for i, n in enumerate(rows))]
    else:
        lines = [f'{{"id":{i},"text":"same words","n":{n}}}' for i, n in enumerate(rows)]
    run = FileRun(stdin=io.BytesIO("\n".join(lines).encode() + b"\n"), file_format=suffix)
    out = io.BytesIO()
    stream_dedup("-", out, likewise.Recipe.minhash(keep=keep), run=run)
    last = out.getvalue().decode().splitlines()[-1]
    return int(last.split(",")[0]) if suffix == "csv" else json.loads(last, parse_int=Decimal)["id"]


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_decimals_are_compared_exactly(suffix):
    fine = ["0.1", "0.10000000000000000001", "0.099999999999999999999"]
    assert [kept_id(fine, keep, suffix) for keep in ("max:n", "min:n")] == [1, 2]
    large = ["9007199254740993", "9007199254740993.5", "9007199254740992.9"]
    assert [kept_id(large, keep, suffix) for keep in ("max:n", "min:n")] == [1, 2]
    assert [kept_id(["1e999", "1e1000", "-1e999"], keep, suffix) for keep in ("max:n", "min:n")] == [1, 2]
    assert kept_id(["2", "1.50", "1.5"], "min:n", suffix) == 1
    digits = "9" * 5000
    assert kept_id([digits, f"{digits}1"], "max:n", suffix) == 1


def test_dates_are_compared_to_the_nanosecond():
    dates = ['"2024-01-01T00:00:00.000000001"', '"2024-01-01T00:00:00.000000002Z"', '"2024-01-01T00:00:00"']
    assert [kept_id(dates, keep) for keep in ("max:n", "min:n")] == [1, 2]


def test_decimal_columns():
    for kind in (pa.decimal128(30, 20), pa.decimal256(60, 20)):
        values = pa.array([Decimal("0.1"), Decimal("0.10000000000000000001"), None], kind)
        table = pa.table({"text": ["same"] * 3, "n": values})
        assert likewise.dedup(table, keep="max:n").kept.tolist() == [False, True, False]
        assert likewise.dedup(table, keep="min:n").kept.tolist() == [True, False, False]


def test_a_decimal_in_a_string_is_no_number():
    ran = likewise_command(
        "dedup", "-", "-o", "-", "--keep", "max:n", stdin=b'{"text":"a","n":"2.50"}\n{"text":"a","n":2}\n'
    )
    assert ran.status == 2
    assert """stdin.jsonl:1: field 'n' holds "2.50"; keep requires numbers""" in ran.err
    ran = likewise_command(
        "dedup", "-", "-o", "-", "--keep", "max:n", stdin=b'{"text":"a","n":1e99999999999999999999}\n'
    )
    assert ran.status == 2
    assert "exponent is too large" in ran.err


def test_one_inserted_line_is_one_difference(tmp_path):
    texts = [f"{number} {made_up(12, number)}" for number in range(3000)]
    changed = [*texts[:5], "an inserted line", *texts[5:2000], "a changed line", *texts[2001:]]
    for name, lines in (("a", texts), ("b", changed)):
        stdin = jsonl([*lines, texts[0]], ids=False)
        assert likewise_command("dedup", "-", "-o", tmp_path / name, stdin=stdin).status == 0
    ran = likewise_command("diff", tmp_path / "a", tmp_path / "b")
    assert ran.status == 1
    kept = [line for line in ran.out.decode().splitlines() if line.startswith("kept")]
    assert len(kept) == 2, kept
    assert "only the second run has document 5, " in kept[0]
    assert "an inserted line" in kept[0]
    assert "document 2000 (2001 in the second run) is " in kept[1]
    assert len([line for line in ran.out.decode().splitlines() if line.startswith("evidence")]) == 1


def test_alignment_gives_every_item_once():
    generator = np.random.default_rng(5)
    for size in (0, 1, 40, 3000):
        one = generator.integers(0, 50 if size < 1000 else 10**6, size).tolist()
        two = [x for x in one if generator.random() > 0.05]
        for place in generator.integers(0, size + 1, size // 20).tolist():
            two.insert(place, 7)
        found = list(aligned(iter(one), iter(two), lambda x: x))
        assert [x.a for x in found if x.a is not None] == one
        assert [x.b for x in found if x.b is not None] == two
        assert all((x.a == x.b) == x.is_same for x in found)
        assert all(x.a is None or one[x.number_a] == x.a for x in found)
        if size == 3000:
            assert sum(x.is_same for x in found) > 2700
    far = list(aligned(iter(range(5000)), iter(range(2000, 5000)), lambda x: x))
    assert len(far) >= 5000


def test_a_killed_run_is_cleaned_up_after(tmp_path, articles):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "likewise", "dedup", "-", "-o", str(tmp_path / "out")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as killed:
        assert wait_until(lambda: list(tmp_path.rglob(f"{scratch.PREFIX}*/run/stdin*")))
        # While the run is alive, other runs leave its files alone.
        subprocess.run([*command[:-3], str(articles), "-o", str(tmp_path / "o1")], env=environment, check=True)
        assert list(tmp_path.rglob(f"{scratch.PREFIX}*/run/stdin*"))
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    assert list(tmp_path.rglob(f"{scratch.PREFIX}*/run/stdin*"))
    others = tmp_path / f"{scratch.PREFIX}young"
    others.mkdir()
    subprocess.run([*command[:-3], str(articles), "-o", str(tmp_path / "o2")], env=environment, check=True)
    assert list(tmp_path.glob(f"{scratch.PREFIX}*")) == [others]


@pytest.mark.parametrize("on_error", ["skip", "keep", "fail"])
def test_a_text_field_in_no_row_is_an_error_that_names_those_there_are(tmp_path, on_error):
    rows = b'{"id":1,"body":"words","meta":{"title":"a"}}\n' * 3
    ran = likewise_command("dedup", "-", "-o", tmp_path / "out", "--on-error", on_error, stdin=rows)
    assert (ran.status, ran.out) == (2, b"")
    first = ran.err.splitlines()[0]
    assert 'no field "text" (found: id, body, meta, meta.title); choose a field with --text-field' in first
    assert not (tmp_path / "out").exists()
    if on_error != "fail":
        ran = likewise_command(
            "dedup", "-", "-o", tmp_path / "out", "--on-error", on_error, stdin=rows + b'{"text":"words"}\n' * 3
        )
        assert ran.status == 0


def test_an_id_field_in_no_row_is_an_error_that_names_those_there_are(tmp_path):
    rows = b'{"key":1,"text":"words"}\n' * 3
    for on_error in ("skip", "keep", "fail"):
        options = ["--id-field", "url", "--on-error", on_error]
        ran = likewise_command("dedup", "-", "-o", tmp_path / "out", *options, stdin=rows)
        assert (ran.status, ran.out) == (2, b"")
        assert 'no id field "url" (found: key, text); choose a field with --id-field' in ran.err.splitlines()[0]
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("more", [[], ["--memory", "1GB"], ["--group", "components"], ["--method", "simhash"]])
def test_a_field_of_keep_in_no_document_is_an_error_that_names_those_there_are(tmp_path, more):
    rows = b'{"id":1,"text":"the same words","quality":2}\n{"id":2,"text":"the same words","quality":5}\n'
    (tmp_path / "in.jsonl").write_bytes(rows)
    ran = likewise_command("dedup", tmp_path / "in.jsonl", "-o", tmp_path / "out", "--keep", "max:qualty", *more)
    assert (ran.status, ran.out) == (2, b"")
    assert next(line for line in ran.err.splitlines() if line.startswith("error")) == (
        "error: in.jsonl: no document has the field 'qualty' used by keep (found in the first: id, text, quality); "
        "choose another field with --keep"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet", "txt"])
def test_fields_of_keep_that_are_missing_are_counted_or_refused(tmp_path, suffix):
    """A column without values counts as present, and an unknown name does not, in every format."""
    rows = {"text": ["the same words"] * 4, "n": [None, 2, None, 3]}
    none = {**rows, "n": [None] * 4}
    for name, columns in (("some", rows), ("none", none)):
        path = tmp_path / f"{name}.{suffix}"
        if suffix == "parquet":
            pq.write_table(pa.table(columns, pa.schema({"text": pa.string(), "n": pa.int64()})), path)
        elif suffix == "csv":
            cells = [f"{text},{'' if n is None else n}" for text, n in zip(*columns.values(), strict=True)]
            path.write_text("\n".join(["text,n", *cells, ""]))
        elif suffix == "jsonl":
            path.write_text(
                "".join(json.dumps({"text": t, "n": n}) + "\n" for t, n in zip(*columns.values(), strict=True))
            )
        else:
            path.write_text("the same words")
    for name, count in (("some", 2), ("none", 4)):
        if suffix != "txt":
            ran = likewise_command("dedup", tmp_path / f"{name}.{suffix}", "-o", tmp_path / name, "--keep", "max:n")
            assert ran.status == 0, ran.err
            assert json.loads((tmp_path / name / "summary.json").read_text())["num_without_field"] == {"n": count}
            assert f"field n of --keep is missing in {count} documents, which rank last" in ran.err
    ran = likewise_command("dedup", tmp_path / f"some.{suffix}", "-o", tmp_path / "no", "--keep", "newest:m")
    assert ran.status == 2
    has = "" if suffix == "txt" else " (found in the first: text, n)"
    assert f"no document has the field 'm' used by keep{has};" in ran.err


def test_a_field_of_keep_that_only_references_have_is_none_that_is_spelt_wrong(tmp_path):
    """A field that only the earlier run's documents have is accepted for ranking."""
    row = b'{"id":"%d","text":"words of number %d","%s":1}\n'
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    # The first reference document need not have the field.
    old.write_bytes(row % (0, 0, b"m") + row % (1, 1, b"n"))
    new.write_bytes(row % (50, 50, b"q") + row % (51, 1, b"q"))
    late = tmp_path / "late.jsonl"
    late.write_bytes(b"".join(row % (number, number, b"m") for number in range(2, 40)) + row % (1, 1, b"n"))
    runs = {"file": late}
    ranked = ("--keep-sketches", "--keep", "max:n")
    for name, given, options in [("run", late, ()), ("kept", old, ("--keep-sketches",)), ("ranked", late, ranked)]:
        runs[name] = tmp_path / name
        assert likewise_command("dedup", given, "-o", runs[name], *options).status == 0
    for name, against in runs.items():
        out = tmp_path / f"out-{name}"
        ran = likewise_command("dedup", new, "-o", out, "--keep", "max:n", "--against", against)
        assert ran.status == 0, ran.err
        summary = json.loads((out / "summary.json").read_text())
        assert (summary["num_without_field"], summary["num_removed"]) == ({"n": 2}, 1)
        ran = likewise_command("dedup", new, "-o", tmp_path / "no", "--keep", "max:k", "--against", against)
        assert ran.status == 2
        told = "no document has the field 'k' used by keep (found in the first: id, text, q), nor do documents of"
        assert f"new.jsonl: {told} --against;" in ran.err
        assert not (tmp_path / "no").exists()


def test_lone_surrogates_in_ids(tmp_path):
    lines = [
        b'{"id":"\\ud800x","text":"one two three four five six"}\n',
        b'{"id":"c\\udfff","text":"one two three four five SIX"}\n',
        b'{"id":"c","text":"zzz \\udc00"}\n',
    ]
    (tmp_path / "in.jsonl").write_bytes(b"".join(lines))
    ran = likewise_command("dedup", tmp_path / "in.jsonl", "-o", "-")
    assert (ran.status, ran.out) == (0, lines[0] + lines[2]), ran.err
    for name in ("pairs.tsv", "pairs.jsonl", "pairs.parquet", "sketches.parquet", "sketches.npy"):
        command = name.split(".")[0].removesuffix("es")
        assert likewise_command(command, tmp_path / "in.jsonl", "-o", tmp_path / name).status == 0
    assert (tmp_path / "pairs.tsv").read_text(encoding="utf-8").splitlines()[1].startswith("\ufffdx\tc\ufffd\t1.0")
    ran = likewise_command("compare", "--ids", "\ufffdx", "c\ufffd", tmp_path / "in.jsonl")
    assert ran.status == 0, ran.err
    found = likewise.pairs(TEXTS, ids=["\ud800x", "c\udfff", "c"])
    assert found.column("doc_id_a").to_pylist() == ["\ufffdx"]
    ran = likewise_command("dedup", "-", "-o", "-", stdin=lines[0] + lines[0].replace(b"d800", b"d801"))
    assert ran.status == 2
    assert "lone surrogates are read as U+FFFD" in ran.err
