"""Lists of tokens in an input field give the answers of the same lists in Python, through every entry point."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.errors import InvalidInput, InvalidParameter
from likewise.io.output.directory import EVIDENCE
from likewise.job.reading import FileRun
from likewise.stages.features import features
from tests.command import likewise_command
from tests.index.classic import RECIPE, SCALE, documents, replayed
from tests.oracle import features as oracle

PLAIN = likewise.Recipe.minhash(0.6, tokens="user", tokenizer="replay 1", shingle=1)
PAIRS = pa.list_(pa.struct([("token", pa.string()), ("weight", pa.float64())]))
CUT = ["--tokens-field", "cut", "--tokenizer", "replay 1, tf-idf", "--weights", "own", "--weight-scale", str(SCALE)]
CUT += ["--shingle", "1", "--method", "simhash", "--bits", "64", "--within", "3"]


def plain_documents():
    return [[word for word, _ in pairs] for pairs in documents()]


def written(folder, name, lists):
    """Write documents of tokens in a format, each with a title; return the path."""
    path = folder / name
    rows = [{"id": f"page-{i}", "title": f"Page {i}", "cut": cut} for i, cut in enumerate(lists)]
    if ".jsonl" in name:
        data = "".join(json.dumps(row, ensure_ascii=bool(i % 2)) + "\n" for i, row in enumerate(rows)).encode()
        if name.endswith(".gz"):
            data = gzip.compress(data)
        if name.endswith(".zst"):
            data = pa.compress(data, "zstd", asbytes=True)
        path.write_bytes(data)
        return path
    is_weighted = any(isinstance(token, tuple) for cut in lists for token in cut)
    kind = PAIRS if is_weighted else pa.list_(pa.string())
    cuts = [[{"token": word, "weight": weight} for word, weight in cut] for cut in lists] if is_weighted else lists
    table = pa.table({name: [row[name] for row in rows] for name in ("id", "title")} | {"cut": pa.array(cuts, kind)})
    if name.endswith(".parquet"):
        pq.write_table(table, path, row_group_size=40)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, 30)
    return path


def removed(out):
    table = pq.ParquetFile(out / EVIDENCE).read()
    return dict(zip(table["doc_id"].to_pylist(), table["kept_id"].to_pylist(), strict=True))


@pytest.mark.parametrize("name", ["in.jsonl", "in.jsonl.gz", "in.jsonl.zst", "in.parquet", "in.arrow"])
@pytest.mark.parametrize("memory", [None, "256MB"])
def test_weighted_lists_of_files_are_decided_as_by_hand(tmp_path, name, memory):
    pages = documents()
    expected = {f"page-{i}": verdict[0] for i, verdict in enumerate(replayed(pages)) if verdict is not None}
    path = written(tmp_path, name, pages)
    run = FileRun(tokens_field="cut", memory_bytes=memory, threads=2)
    summary = likewise.dedup_files(path, tmp_path / "out", RECIPE, run=run)
    assert removed(tmp_path / "out").keys() == expected.keys()
    result = likewise.dedup(pages, RECIPE)
    assert removed(tmp_path / "out") == {
        f"page-{row['row']}": f"page-{row['kept_row']}" for row in result.removed.to_pylist()
    }
    assert summary["options"]["tokens_field"] == "cut"
    assert summary["recipe_id"] == RECIPE.resolve().recipe_id


@pytest.mark.parametrize("name", ["in.jsonl", "in.parquet"])
def test_lists_without_weights(tmp_path, name):
    lists = plain_documents()
    path = written(tmp_path, name, lists)
    recipe = PLAIN.replace(keep="longest")
    likewise.dedup_files(path, tmp_path / "out", recipe, run=FileRun(tokens_field="cut"))
    result = likewise.dedup(lists, recipe)
    assert 20 < result.removed.num_rows < 90
    assert removed(tmp_path / "out") == {
        f"page-{row['row']}": f"page-{row['kept_row']}" for row in result.removed.to_pylist()
    }
    kept = tmp_path / "out" / "kept" / name
    if name == "in.jsonl":
        lines = path.read_bytes().splitlines(keepends=True)
        assert kept.read_bytes() == b"".join(line for line, stays in zip(lines, result.kept, strict=True) if stays)
    else:
        assert pq.read_table(kept).equals(pq.read_table(path).filter(pa.array(result.kept)))


def test_commands_take_lists(tmp_path):
    pages = documents()
    path = written(tmp_path, "in.jsonl", pages)
    verdicts = replayed(pages)
    expected = {f"page-{i}": verdict[0] for i, verdict in enumerate(verdicts) if verdict is not None}
    done = likewise_command("dedup", path, "-o", tmp_path / "out", *CUT)
    assert done.status == 0, done.err
    assert removed(tmp_path / "out").keys() == expected.keys()
    made = likewise_command("sketch", path, "-o", tmp_path / "sketches.parquet", *CUT[:-2])
    assert made.status == 0, made.err
    assert pq.read_table(tmp_path / "sketches.parquet").num_rows == len(pages)
    found = likewise_command("pairs", path, "-o", "-", *CUT)
    own = likewise.pairs(pages, RECIPE)
    assert found.out.decode().count("\n") == own.num_rows + 1
    create = ["--tokens", "user", *CUT[2:]]
    assert likewise_command("index", "create", tmp_path / "i", *create).status == 0
    for command in ("check", "add", "check", "query"):
        done = likewise_command("index", command, tmp_path / "i", path, "--tokens-field", "cut")
        assert done.status == 0, done.err
        rows = [json.loads(line) for line in done.out.splitlines()]
        if command == "add":
            assert {row["doc_id"]: row["kept_id"] for row in rows if not row["is_new"]} == expected
    with likewise.Index(tmp_path / "i") as index:
        assert index.check_and_add("page-3", pages[3]).added is False
    shown = likewise_command("compare", path, "--ids", "page-1", "page-0", *CUT, "--json")
    assert shown.status == 0, shown.err
    assert (
        json.loads(shown.out)["measures"]["distance"] == likewise.compare(pages[1], pages[0], RECIPE).measures.distance
    )
    audited = likewise_command("audit", tmp_path / "out", "--json")
    assert audited.status == 0, audited.err
    report = likewise_command("report", tmp_path / "out", "-o", tmp_path / "report.html")
    assert report.status == 0, report.err
    assert "新" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_frames_and_streams_of_lists():
    pages = documents()
    own = likewise.dedup(pages, RECIPE)
    cuts = [[{"token": word, "weight": weight} for word, weight in cut] for cut in pages]
    table = pa.table({"cut": pa.array(cuts, PAIRS)})
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(17))
    for given in (table, stream, table.slice(3)):
        result = likewise.dedup(given, RECIPE, text_field="cut")
        rows = likewise.dedup(pages[3:], RECIPE) if given is not table and given is not stream else own
        assert result.kept.tolist() == rows.kept.tolist()
    words = pa.array(plain_documents(), pa.large_list(pa.dictionary(pa.int32(), pa.string())))
    assert likewise.dedup(words, PLAIN).kept.tolist() == likewise.dedup(plain_documents(), PLAIN).kept.tolist()
    with_null = pa.array([["a"], None, ["a"]], pa.list_(pa.string()))
    with pytest.raises(InvalidInput, match="null"):
        likewise.dedup(with_null, PLAIN)
    assert likewise.dedup(with_null, PLAIN, nulls="keep").kept.tolist() == [True, True, False]
    with pytest.raises(InvalidInput, match="has type string, not lists of tokens"):
        likewise.dedup(pa.array(["a b"]), PLAIN)
    with pytest.raises(InvalidInput, match=r"the weight of 'a' is -1\.0") as refused:
        likewise.dedup(pa.array([[], [{"token": "a", "weight": -1.0}]], PAIRS), RECIPE)
    assert refused.value.row == 1


BAD = {
    '"a b"': 'field "cut" is a string, not a list of tokens',
    "null": 'field "cut" is null',
    '{"a": 1}': 'field "cut" is an object, not a list of tokens',
    '["a", 1]': 'field "cut": invalid type: integer `1`, expected a token (a string)',
    '[["a", 1]]': 'field "cut": a token is a list, not a string; [token, weight] pairs require --weights own',
}
BAD_PAIRS = {
    '["a"]': 'invalid type: string "a", expected a [token, weight] pair',
    '[["a"]]': "a [token, weight] pair does not have two values",
    '[["a", 1, 2]]': "a [token, weight] pair does not have two values",
    '[["a", "1"]]': 'invalid type: string "1", expected a weight (a number)',
    '[["a", true]]': "invalid type: boolean `true`, expected a weight (a number)",
    '[["a", -0.5]]': 'the weight of "a" is -0.5, not a number of at least 0',
    '[["a", NaN]]': "a weight is NaN or infinite, not a number of at least 0",
    '[["a", 10.7]]': 'the weight of "a" is 10.7, 257 when scaled; the limit is 255. Use a smaller --weight-scale',
}
BAD_WHOLE = {
    '[["a", 256]]': 'the weight of "a" is 256, not an integer from 0 to 255',
    '[["a", -1]]': 'the weight of "a" is -1, not an integer from 0 to 255',
    '[["a", 1.5]]': 'the weight of "a" is 1.5, not an integer from 0 to 255; for real weights set --weight-scale',
}


@pytest.mark.parametrize(
    ("recipe", "bad"), [(PLAIN, BAD), (RECIPE, BAD_PAIRS), (likewise.Recipe.own("w 1", weighted=True), BAD_WHOLE)]
)
def test_rows_that_hold_no_tokens_are_bad(tmp_path, recipe, bad):
    lines = [f'{{"cut": {cut}}}' for cut in bad] + ['{"text": "a"}', '{"cut": []}', '{"cut": []}']
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InvalidInput) as refused:
        likewise.dedup_files(path, tmp_path / "out", recipe, run=FileRun(tokens_field="cut"))
    assert next(iter(bad.values())) in str(refused.value)
    assert "in.jsonl:1" in str(refused.value)
    run = FileRun(tokens_field="cut", on_error="skip", max_bad_rows=1.0)
    summary = likewise.dedup_files(path, tmp_path / "out", recipe, run=run)
    errors = [json.loads(line) for line in (tmp_path / "out" / "errors.jsonl").read_text().splitlines()]
    assert len(errors) == len(bad) + 1
    for error, reason in zip(errors, bad.values(), strict=False):
        assert reason in error["reason"]
    assert errors[-1]["reason"] == 'no tokens field "cut"'
    assert (summary["num_documents"], summary["num_empty"], summary["num_removed"]) == (2, 2, 1)


def test_bad_rows_of_tables(tmp_path):
    values = [[("a", 1.0)], [("b", -1.0)], None, [("c", float("nan"))], [("d", 1e9)], [(None, 1.0)], [("e", None)], []]
    cuts = [cut and [{"token": word, "weight": weight} for word, weight in cut] for cut in values]
    pq.write_table(pa.table({"cut": pa.array(cuts, PAIRS)}), tmp_path / "in.parquet")
    run = FileRun(tokens_field="cut", on_error="skip", max_bad_rows=1.0)
    summary = likewise.dedup_files(tmp_path / "in.parquet", tmp_path / "out", RECIPE, run=run)
    errors = [json.loads(line) for line in (tmp_path / "out" / "errors.jsonl").read_text().splitlines()]
    reasons = [error["reason"] for error in errors]
    assert [error.get("row", error.get("line")) for error in errors] == [2, 3, 4, 5, 6, 7]
    for reason, part in zip(
        reasons,
        ["'b' is -1.0", "cut is null", "'c' is nan", "when scaled", "token is null", "'e' is None"],
        strict=True,
    ):
        assert part in reason
    assert summary["num_documents"] == 2
    with pytest.raises(InvalidInput, match=r"cut: the weight of 'b' is -1\.0"):
        likewise.dedup_files(tmp_path / "in.parquet", tmp_path / "x", RECIPE, run=FileRun(tokens_field="cut"))
    with pytest.raises(InvalidInput, match=r"not lists of tokens; .* require weights own; choose another"):
        likewise.dedup_files(tmp_path / "in.parquet", tmp_path / "x", PLAIN, run=FileRun(tokens_field="cut"))
    lists = [["a" * 600], ["b"]]
    pq.write_table(pa.table({"cut": lists}), tmp_path / "long.parquet")
    run = FileRun(tokens_field="cut", max_document_bytes=500)
    with pytest.raises(InvalidInput, match="the document has 600 bytes"):
        likewise.dedup_files(tmp_path / "long.parquet", tmp_path / "x", PLAIN, run=run)


def test_options_that_do_not_fit(tmp_path):
    (tmp_path / "in.csv").write_text("cut\na\n")
    path = written(tmp_path, "in.jsonl", plain_documents())
    with pytest.raises(InvalidInput, match="csv files have no lists of tokens"):
        likewise.dedup_files(tmp_path / "in.csv", tmp_path / "out", PLAIN, run=FileRun(tokens_field="cut"))
    with pytest.raises(InvalidParameter, match="give the name of the field"):
        likewise.dedup_files(path, tmp_path / "out", PLAIN)
    with pytest.raises(InvalidParameter, match="requires tokens user"):
        likewise.dedup_files(path, tmp_path / "out", "strict", run=FileRun(tokens_field="cut"))
    done = likewise_command("dedup", path, "-o", tmp_path / "out", "--tokens-field", "cut")
    assert done.status == 2
    assert "tokens user need a tokenizer name" in done.err
    done = likewise_command("repeats", path, "-o", tmp_path / "out", "--tokens-field", "cut", "--tokenizer", "x")
    assert done.status == 2


def test_against_an_earlier_run_and_in_shards(tmp_path):
    lists = plain_documents()
    first, second = written(tmp_path, "a.jsonl", lists[:50]), tmp_path / "b.parquet"
    rows = pa.table({"id": [f"late-{i}" for i in range(53)], "cut": lists[50:]})
    pq.write_table(rows, second)
    run = FileRun(tokens_field="cut")
    likewise.dedup_files([first, second], tmp_path / "both", PLAIN, run=run)
    likewise.dedup_files(first, tmp_path / "first", PLAIN, run=run)
    likewise.dedup_files(second, tmp_path / "second", PLAIN, run=run, against=[tmp_path / "first"])
    assert removed(tmp_path / "both") == removed(tmp_path / "first") | removed(tmp_path / "second")


def test_the_length_of_a_list_is_that_of_its_tokens(tmp_path):
    lists = [["é" * 3, "b"], ["é" * 3, "b", ""], ["é" * 3, "b", "b"]]
    path = written(tmp_path, "in.jsonl", lists)
    recipe = PLAIN.replace(keep="longest", threshold=0.5)
    likewise.dedup_files(path, tmp_path / "out", recipe, run=FileRun(tokens_field="cut"))
    assert set(removed(tmp_path / "out").values()) == {"page-2"}
    assert np.flatnonzero(likewise.dedup(lists, recipe).kept).tolist() == [2]


# The third is the first after normalization. No tokenizer found anything in them, or only the empty string that is in
# `"".split(" ")`; the last has no text either.
UNCUT = [
    {"id": 1, "text": "Библиотека открыта", "words": []},
    {"id": 2, "text": "Паром ходит", "words": [""]},
    {"id": 3, "text": " библиотека\nОТКРЫТА", "words": ["", ""]},
    {"id": 4, "text": "这是什么", "words": [""]},
    {"id": 5, "text": None, "words": [""]},
]
METHODS = {
    "minhash": PLAIN,
    "simhash": likewise.Recipe.simhash(within=3, bits=64, tokens="user", tokenizer="replay 1"),
    "shingles": likewise.Recipe.shingles(0.6, tokens="user", tokenizer="replay 1", shingle=2),
    "weighted": likewise.Recipe.own("replay 1", weighted=True),
    "datasketch": likewise.Recipe.minhash(0.6, tokens="user", tokenizer="replay 1", hash="datasketch", shingle=1),
}


def uncut_file(folder, name, field="text"):
    rows = [
        {("body" if field == "body" and key == "text" else key): value for key, value in row.items()} for row in UNCUT
    ]
    path = folder / name
    if name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(row, ensure_ascii=bool(row["id"] % 2)) + "\n" for row in rows))
        return path
    kinds = {"id": pa.int64(), field: pa.string(), "words": pa.list_(pa.string())}
    table = pa.Table.from_pylist(rows, pa.schema(kinds))
    if name.endswith(".parquet"):
        pq.write_table(table, path, row_group_size=2)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, 2)
    return path


@pytest.mark.parametrize("name", ["in.jsonl", "in.parquet", "in.arrow"])
@pytest.mark.parametrize("method", ["minhash", "simhash", "shingles", "datasketch"])
def test_a_row_without_tokens_goes_by_its_text(tmp_path, name, method):
    path = uncut_file(tmp_path, name)
    run = FileRun(tokens_field="words")
    summary = likewise.dedup_files(path, tmp_path / "out", METHODS[method], run=run)
    assert removed(tmp_path / "out") == {"3": "1"}
    assert (summary["num_empty"], summary["num_short"]) == (1, 4)
    pairs = likewise_command(
        "pairs", path, "-o", "-", "--tokens-field", "words", "--recipe", recipe_file(tmp_path, method)
    )
    assert pairs.status == 0, pairs.err
    assert [line.split("\t")[:2] for line in pairs.out.decode().splitlines()[1:]] == [["1", "3"]]


def recipe_file(folder, method):
    (folder / "recipe.json").write_text(METHODS[method].to_json())
    return folder / "recipe.json"


def test_the_text_of_a_row_without_tokens_has_a_field(tmp_path):
    path = uncut_file(tmp_path, "in.jsonl", field="body")
    # Without its text, every row is empty.
    likewise.dedup_files(path, tmp_path / "out", PLAIN, run=FileRun(tokens_field="words"))
    assert removed(tmp_path / "out") == dict.fromkeys("2345", "1")
    for name in ("in.jsonl", "in.parquet"):
        path = uncut_file(tmp_path, name, field="body")
        likewise.dedup_files(path, tmp_path / name.replace(".", "-"), PLAIN, run=FileRun(("body",), "words"))
        assert removed(tmp_path / name.replace(".", "-")) == {"3": "1"}


@pytest.mark.parametrize("method", METHODS)
def test_texts_of_which_a_tokenizer_leaves_nothing_differ_in_memory(method):
    recipe, texts = METHODS[method], [row["text"] or "" for row in UNCUT]
    kept = [True, True, False, True, True]

    def nothing(text):
        return [("", 3) if method == "weighted" else ""] * (len(text) % 3)

    assert likewise.dedup(texts, recipe, tokenizer=nothing).kept.tolist() == kept
    found = likewise.pairs(texts, recipe, tokenizer=nothing)
    assert found.select(["row_a", "row_b"]).to_pylist() == [{"row_a": 0, "row_b": 2}]
    # Lists have no text.
    assert likewise.dedup(list(map(nothing, texts)), recipe).kept.tolist() == [True] + [False] * 4
    compared = likewise.compare(texts[0], texts[1], recipe, tokenizer=nothing)
    assert not compared.matches
    assert compared.measures.jaccard == 0.0
    if method != "weighted":
        kinds = {"id": pa.int64(), "text": pa.string(), "words": pa.list_(pa.string())}
        table = pa.Table.from_pylist(UNCUT, pa.schema(kinds))
        stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2))
        for given in (table, stream, table.slice(0)):
            assert likewise.dedup(given, recipe, text_field="words").kept.tolist() == kept
        with_null = table.set_column(2, "words", pa.array([[], None, [""], [], []], pa.list_(pa.string())))
        result = likewise.dedup(with_null, recipe, text_field="words", nulls="keep")
        assert result.kept.tolist() == kept


def test_the_feature_of_a_text_without_tokens_is_that_of_the_oracle():
    for shingle in (1, 3):
        recipe = PLAIN.replace(shingle=shingle, seed=5)
        for row in UNCUT:
            text, words = row["text"] or "", row["words"]
            expected = oracle.features(text, oracle.Rules(shingle=shingle, seed=5), tokenize=lambda *_, cut=words: cut)
            found = features([text], recipe, tokenizer=lambda text, cut=words: cut)
            assert dict(zip(found.features.tolist(), [1] * len(found.features), strict=True)) == expected.weights


@pytest.mark.parametrize("store", ["shingles", "text"])
def test_an_index_tells_texts_without_tokens_apart(tmp_path, store):
    path = uncut_file(tmp_path, "in.jsonl")
    likewise.Index(tmp_path / "i", PLAIN, store=store).close()
    added = likewise_command("index", "add", tmp_path / "i", path, "--tokens-field", "words")
    assert added.status == 0, added.err
    rows = [json.loads(line) for line in added.out.splitlines()]
    assert {row["doc_id"]: row["kept_id"] for row in rows if not row["is_new"]} == {"3": "1"}
    checked = likewise_command("index", "check", tmp_path / "i", path, "--tokens-field", "words")
    assert [json.loads(line)["kept_id"] for line in checked.out.splitlines()] == ["1", "2", "1", "4", "5"]
    if store == "text":
        exported = likewise_command("index", "export", tmp_path / "i", "-o", "-")
        lines = exported.out.splitlines() or (tmp_path / "i.jsonl").read_text().splitlines()
        assert json.loads(lines[0])["text"] == UNCUT[0]["text"]
