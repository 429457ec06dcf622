"""Rows joined into documents: the verdicts of the joined texts, and the rows of kept documents where they were."""

import csv
import gzip
import io
import json
import random
import signal

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.against.index import IndexUse
from likewise.batch.pair_files import pair_files
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch
from likewise.job.reading import FileRun
from likewise.runs.pair import compare_in_run
from likewise.runs.viewing.catalog import GroupFilter
from likewise.runs.viewing.view import RunView
from tests.batch.labels import grouped_texts
from tests.batch.resume.test_resume import continued, forker  # noqa: F401 - a fixture
from tests.command import likewise_command
from tests.files import jsonl

RECIPE = likewise.Recipe.minhash(threshold=0.6)


def rows_of(num_groups=40, seed=3):
    """Return rows of documents, some of them near-copies; the rows of a document are in order and lie apart."""
    chance, waiting = random.Random(seed), []
    for number, text in enumerate(grouped_texts(num_groups, seed)):
        words = text.split()
        cuts = sorted(chance.sample(range(1, len(words)), chance.randint(0, 5)))
        parts = [words[a:b] for a, b in zip([0, *cuts], [*cuts, len(words)], strict=True)]
        waiting.append([{"n": 0, "repo": f"r{number}", "text": " ".join(part)} for part in parts])
    rows = []
    while waiting:
        # Mostly the same document again, as in a file sorted by it.
        place = 0 if chance.random() < 0.7 else chance.randrange(len(waiting))
        rows.append(waiting[place].pop(0) | {"n": len(rows)})
        if not waiting[place]:
            del waiting[place]
    return rows


def joined(rows):
    """Return one row for each document: its id, its joined text, and the number of its rows."""
    documents = {}
    for row in rows:
        documents.setdefault(row["repo"], []).append(row["text"])
    return [{"id": name, "text": "\n".join(texts), "num": len(texts)} for name, texts in documents.items()]


def write(path, rows):
    """Write rows in the format that the name of the file says."""
    kind = path.name.partition(".")[2]
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=17)
    elif kind == "arrow":
        feather.write_feather(pa.Table.from_pylist(rows), path, chunksize=11)
    elif kind == "csv":
        with path.open("w", newline="") as file:
            made = csv.DictWriter(file, rows[0])
            made.writeheader()
            made.writerows(rows)
    else:
        jsonl(path, rows)
        if kind == "jsonl.gz":
            path.write_bytes(gzip.compress(path.read_bytes()))
    return path


def read(path):
    """Return the rows of a file."""
    kind = path.name.partition(".")[2]
    if kind in ("parquet", "arrow"):
        return (pq.read_table(path) if kind == "parquet" else feather.read_table(path)).to_pylist()
    data = gzip.decompress(path.read_bytes()) if kind == "jsonl.gz" else path.read_bytes()
    if kind == "csv":
        return [row | {"n": int(row["n"])} for row in csv.DictReader(io.StringIO(data.decode(), newline=""))]
    return [json.loads(line) for line in data.decode().splitlines()]


def evidence(out, *more):
    """Return rows of evidence: ids, similarity and further columns."""
    return [
        tuple(row[name] for name in ("doc_id", "kept_id", "similarity", *more))
        for row in pq.read_table(out / "removed.parquet").to_pylist()
    ]


def verdicts(tmp_path, rows, recipe=RECIPE):
    """Return the evidence of a plain run over the joined texts, and the kept ids."""
    documents = joined(rows)
    likewise.dedup_files(jsonl(tmp_path / "plain.jsonl", documents), tmp_path / "plain", recipe)
    found = evidence(tmp_path / "plain")
    assert len(found) > 20
    return found, {row["id"] for row in documents} - {name for name, *_ in found}


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "csv", "parquet", "arrow"])
@pytest.mark.parametrize("memory", [None, "256MB"])
def test_the_verdicts_are_those_of_the_joined_texts(tmp_path, monkeypatch, kind, memory):
    if memory is not None:
        monkeypatch.setattr("likewise.batch.joined._AT_ONCE", 7)
    rows = rows_of()
    wanted, kept = verdicts(tmp_path, rows)
    (tmp_path / "in").mkdir()
    places = [slice(0, 100), slice(100, 130), slice(130, None)]
    files = [write(tmp_path / f"in/{name}.{kind}", rows[part]) for name, part in zip("abc", places, strict=True)]
    out = tmp_path / "out"
    summary = likewise.dedup_files(files, out, RECIPE, document_by="repo", memory=memory)
    numbers = {row["id"]: row["num"] for row in joined(rows)}
    assert evidence(out, "num_rows", "kept_num_rows") == [(*row, numbers[row[0]], numbers[row[1]]) for row in wanted]
    for file, part in zip(files, places, strict=True):
        assert read(out / "kept" / file.name) == [row for row in rows[part] if row["repo"] in kept]
    assert (summary["num_documents"], summary["num_kept"]) == (len(numbers), len(kept))
    assert summary["num_rows"] == len(rows) == sum(numbers.values())
    assert summary["num_kept_rows"] == sum(numbers[name] for name in kept)
    assert summary["options"]["document_by"] == "repo"
    # A document is at the place of its first row.
    firsts = {}
    for file, part in zip(files, places, strict=True):
        for row in rows[part]:
            firsts.setdefault(row["repo"], file.name)
    assert {row[0]: row[3] for row in evidence(out, "file")} == {name: firsts[name] for name, *_ in wanted}


@pytest.mark.parametrize(
    "recipe", [likewise.Recipe.preset("default"), likewise.Recipe.exact(), likewise.Recipe.simhash(within=3)]
)
def test_every_method_joins(tmp_path, recipe):
    rows = rows_of()
    likewise.dedup_files(jsonl(tmp_path / "plain.jsonl", joined(rows)), tmp_path / "plain", recipe)
    likewise.dedup_files(jsonl(tmp_path / "a.jsonl", rows), tmp_path / "out", recipe, document_by="repo")
    assert evidence(tmp_path / "out") == evidence(tmp_path / "plain")


def test_lists_of_texts_and_keep(tmp_path):
    chats = [
        {"chat": row["repo"], "day": row["n"] % 13, "m": [{"role": "user", "content": row["text"]}, {"role": "system"}]}
        for row in rows_of()
    ]
    plain = joined([{"repo": row["chat"], "text": row["m"][0]["content"]} for row in chats])
    days = {}
    for row in chats:
        days.setdefault(row["chat"], row["day"])
    plain = [row | {"day": days[row["id"]]} for row in plain]
    recipe = RECIPE.replace(keep="max:day")
    likewise.dedup_files(jsonl(tmp_path / "plain.jsonl", plain), tmp_path / "plain", recipe, count_by="day")
    run = FileRun(("m[].content",), document_by="chat")
    likewise.dedup_files(jsonl(tmp_path / "a.jsonl", chats), tmp_path / "out", recipe, run=run, count_by="day")
    assert evidence(tmp_path / "out", "value") == evidence(tmp_path / "plain", "value")
    assert len(evidence(tmp_path / "out")) > 20


def test_other_outputs(tmp_path):
    rows = rows_of()
    wanted, kept = verdicts(tmp_path, rows)
    file = jsonl(tmp_path / "a.jsonl", rows)
    likewise.dedup_files(file, tmp_path / "unique", RECIPE, document_by="repo", write="unique,groups", store_pairs=0.6)
    alone = kept - {row[1] for row in wanted}
    assert read(tmp_path / "unique/unique/a.jsonl") == [row for row in rows if row["repo"] in alone]
    groups = pq.read_table(tmp_path / "unique/groups.parquet").to_pylist()
    assert {row["group"]: row["group_size"] for row in groups} == {
        name: 1 + sum(row[1] == name for row in wanted) for name in kept
    }
    likewise.dedup_files(
        file, tmp_path / "stays", RECIPE, document_by="repo", decisions={wanted[0][0]: "keep"}, write="evidence"
    )
    assert wanted[0][0] not in {row[0] for row in evidence(tmp_path / "stays")}
    ran = likewise_command("dedup", str(file), "--document-by", "repo", "--threshold", "0.6", "--dry-run", "--json")
    assert json.loads(ran.out)["num_rows"] == len(rows)


def test_rows_without_a_value(tmp_path):
    rows = rows_of()
    wanted, kept = verdicts(tmp_path, rows)
    others = [{"n": 1, "text": "no repo"}, {"n": 2, "repo": None, "text": "null"}, {"n": 3, "repo": "r0"}, {"n": 4}]
    mixed = [*rows[:50], *others, *rows[50:]]
    file = write(tmp_path / "a.jsonl", mixed)
    with pytest.raises(InvalidInput, match=r'no id field "repo" .* --document-by') as told:
        likewise.dedup_files(file, tmp_path / "out", RECIPE, document_by="repo")
    assert told.value.row == 51
    for action in ("skip", "keep"):
        out = tmp_path / action
        summary = likewise.dedup_files(file, out, RECIPE, document_by="repo", on_error=action)
        assert evidence(out) == wanted
        assert (summary["num_bad_rows"], summary["inputs"][0]["num_bad_rows"]) == (4, 4)
        assert len((out / "errors.jsonl").read_text().splitlines()) == 4
        stays = [
            row for row in mixed if (row.get("repo") in kept and "text" in row) or (action == "keep" and row in others)
        ]
        assert read(out / "kept/a.jsonl") == stays
    with pytest.raises(InvalidInput, match="limit is 2"):
        likewise.dedup_files(
            file, tmp_path / "few", RECIPE, run=FileRun(document_by="repo", on_error="skip", max_bad_rows="2")
        )


def test_numbers_are_the_strings_of_them(tmp_path):
    rows = [{"repo": 7, "text": "one fine day"}, {"repo": "7", "text": "in may"}, {"repo": 8, "text": "one"}]
    (tmp_path / "a.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    summary = likewise.dedup_files(tmp_path / "a.jsonl", tmp_path / "out", RECIPE, document_by="repo")
    assert (summary["num_documents"], summary["num_rows"], summary["num_blank_lines"]) == (2, 3, 2)


def test_a_document_may_be_too_long(tmp_path):
    rows = [{"repo": "big", "text": "x" * 600}, {"repo": "small", "text": "y"}, {"repo": "big", "text": "x" * 600}]
    run = FileRun(document_by="repo", max_document_bytes=1000)
    with pytest.raises(InvalidInput, match=r"the 2 rows of document 'big' have 1,200 bytes .* --max-document limit is"):
        likewise.dedup_files(jsonl(tmp_path / "a.jsonl", rows), tmp_path / "out", RECIPE, run=run)


def test_what_it_cannot_be_combined_with(tmp_path):
    rows = [{"repo": "a", "id": 1, "text": "one fine day"}]
    file, out = jsonl(tmp_path / "a.jsonl", rows), tmp_path / "out"
    likewise.dedup_files(file, tmp_path / "old", RECIPE)
    for name, options in {
        "id_field": {"id_field": "id"},
        "an index": {"index": IndexUse(create=tmp_path / "new.lw")},
        "against": {"against": [tmp_path / "old"]},
        "write annotated": {"write": "annotated"},
        "keep_sketches": {"keep_sketches": True},
        "only_within": {"only_within": "id"},
        "tokens bytes": {"tokens": "bytes"},
    }.items():
        recipe = None if {"only_within", "tokens"} & set(options) else RECIPE
        with pytest.raises(InvalidParameter, match=f"document_by: cannot be combined with {name}"):
            likewise.dedup_files(file, out, recipe, document_by="repo", **options)
    (tmp_path / "b.txt").write_text("one fine day")
    with pytest.raises(InvalidInput, match="a text file has no fields and is one document; remove --document-by"):
        likewise.dedup_files(tmp_path / "b.txt", out, RECIPE, document_by="repo")
    run = FileRun(document_by="repo")
    with pytest.raises(InvalidParameter, match="document_by: requires the local engine"):
        likewise.dedup_files(file, out, RECIPE, run=run, engine=object())
    with pytest.raises(InvalidParameter, match="document_by: applies only to likewise dedup"):
        pair_files(file, tmp_path / "pairs.tsv", RECIPE, run=run)
    ran = likewise_command("dedup", str(file), "-o", "-", "--document-by", "repo")
    assert ran.status == 2
    assert "--document-by: applies only to likewise dedup with an output directory" in ran.err
    for command in ("pairs", "repeats"):
        ran = likewise_command(command, str(file), "-o", str(out), "--document-by", "repo")
        assert "No such option '--document-by'. It applies to likewise dedup." in ran.err
    ran = likewise_command("index", "add", str(tmp_path / "x"), str(file), "--document-by", "repo")
    assert "--document-by" in ran.err
    assert not out.exists()


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "parquet"])
def test_what_reads_the_documents_again_joins_their_rows(tmp_path, kind):
    rows = rows_of()
    wanted, _ = verdicts(tmp_path, rows)
    texts = {row["id"]: row["text"] for row in joined(rows)}
    (tmp_path / "in").mkdir()
    for name, part in (("a", slice(0, 90)), ("b", slice(90, None))):
        write(tmp_path / f"in/{name}.{kind}", [*rows[part], {"n": 0, "repo": None, "text": "bad"}])
    out = tmp_path / "out"
    run = FileRun(document_by="repo", on_error="skip")
    likewise.dedup_files(tmp_path / "in", out, RECIPE, run=run)
    with RunView(out) as view:
        assert view.note is None
        shown = list(view.catalog.rows_of(GroupFilter()))
        assert len(shown) == len(wanted)
        for group, member in shown:
            found = view.texts([(group.row, group.place), (member.row, member.place)])
            assert found == [texts[group.doc_id], texts[member.doc_id]]
        nearest = view.neighbors(texts[wanted[0][0]], 3)
        assert wanted[0][0] in [near.doc_id for near in nearest if near.similarity == 1.0]
    name, other, similarity = wanted[0]
    found, row = compare_in_run(out, (name, other))
    assert found.measures.jaccard == row["similarity"] == similarity
    assert likewise.audit(out).passed
    assert likewise_command("report", str(out)).status == 0
    kept = next((out / "kept").iterdir())
    kept.write_bytes(kept.read_bytes()[:-200])
    assert not likewise.audit(out).passed


def test_an_earlier_run_of_joined_rows_is_rejected(tmp_path):
    file, out = jsonl(tmp_path / "a.jsonl", rows_of()), tmp_path / "out"
    assert likewise_command("dedup", str(file), "-o", str(out), "--document-by", "repo").status == 0
    ran = likewise_command("dedup", str(file), "-o", str(tmp_path / "next"), "--against", str(out))
    assert ran.status == 2
    assert f"{out}: this run joined rows (--document-by repo)" in ran.err


def test_another_field_does_not_continue_a_run(tmp_path, forker):  # noqa: F811
    rows = [row | {"other": row["repo"]} for row in rows_of(60)]
    file, out = jsonl(tmp_path / "a.jsonl", rows), tmp_path / "out"
    options = {"run": {"document_by": "repo"}, "part_bytes": 8_000}
    assert forker.run(tmp_path / "plain", [file], **options) == 0
    assert forker.run(out, [file], moment="decided", calls=1, **options) == -signal.SIGKILL
    for field in ("other", None):
        with pytest.raises(RecipeMismatch):
            likewise.dedup_files(file, out, likewise.Recipe.minhash(0.6, shingle=2), document_by=field)
    assert forker.run(out, [file], **options) == 0
    assert continued(out) > 0
    assert evidence(out, "num_rows", "file", "offset") == evidence(tmp_path / "plain", "num_rows", "file", "offset")
    assert (out / "kept/a.jsonl").read_bytes() == (tmp_path / "plain/kept/a.jsonl").read_bytes()


@pytest.mark.parametrize("form", ["list", "table", "stream", "pandas", "polars"])
def test_in_memory(form):
    rows = rows_of()
    documents = joined(rows)
    plain = likewise.dedup([row["text"] for row in documents], RECIPE, ids=[row["id"] for row in documents])
    kept = {row["id"] for row, stays in zip(documents, plain.kept.tolist(), strict=True) if stays}
    table = pa.Table.from_pylist(rows)
    given, key = table, "repo"
    if form == "list":
        given, key = [row["text"] for row in rows], [row["repo"] for row in rows]
    elif form == "stream":
        given = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(13))
    elif form == "pandas":
        given = pytest.importorskip("pandas").DataFrame(rows)
    elif form == "polars":
        given = pytest.importorskip("polars").from_arrow(table)
    found = likewise.dedup(given, RECIPE, document_by=key)
    assert found.kept.tolist() == [row["repo"] in kept for row in rows]
    names = ("doc_id", "kept_id", "similarity")
    assert found.removed.select(names).to_pylist() == plain.removed.select(names).to_pylist()
    firsts = {}
    for number, row in enumerate(rows):
        firsts.setdefault(row["repo"], number)
    numbers = {row["id"]: row["num"] for row in documents}
    for row in found.removed.to_pylist():
        assert (row["row"], row["num_rows"]) == (firsts[row["doc_id"]], numbers[row["doc_id"]])
        assert (row["kept_row"], row["kept_num_rows"]) == (firsts[row["kept_id"]], numbers[row["kept_id"]])
    of_document = {row["id"]: label for row, label in zip(documents, plain.table().to_pylist(), strict=True)}
    for row, label in zip(rows, found.table().to_pylist(), strict=True):
        assert label | {"row": 0} == of_document[row["repo"]] | {"row": 0}
    assert f"of {len(documents)} documents: {len(kept)} kept" in repr(found)
    assert (len(found), found.summary["num_rows"]) == (len(rows), len(rows))
    with pytest.raises(InvalidInput, match="joined rows"):
        found.sample()


def test_in_memory_nulls_and_options():
    texts, keys = ["one fine day in may", None, "a b", "one fine day in may\na b", "one more"], [1, 1, 1, 2, 3]
    found = likewise.dedup(texts, RECIPE, document_by=keys, nulls="keep")
    assert found.kept.tolist() == [True, True, True, False, True]
    assert likewise.dedup(texts, RECIPE, document_by=keys, nulls="drop").kept.tolist() == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert found.ids.to_pylist() == keys
    with pytest.raises(InvalidInput, match="the text is null"):
        likewise.dedup(texts, RECIPE, document_by=keys)
    with pytest.raises(InvalidInput):
        likewise.dedup(texts, RECIPE, document_by=[1, 1, None, 2, 3], nulls="keep")
    with pytest.raises(InvalidParameter, match="document_by: cannot be combined with ids"):
        likewise.dedup(["a"], RECIPE, document_by=[1], ids=[1])
    with pytest.raises(InvalidParameter, match="document_by: cannot be combined with only_within"):
        likewise.dedup(pa.table({"text": ["a"], "d": [1]}), likewise.Recipe.exact(only_within="d"), document_by="d")
