"""``likewise weights`` and ``--weights``: tables, lexicons, two passes, and rejected arguments."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.read.ingest import weigh_files
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch
from likewise.job.reading import FileRun
from likewise.stages.weights import count_weights
from tests import command
from tests.command import likewise_command
from tests.command import successful_command as run

lexicon = likewise.Weights.from_terms

# Every page has the same head and foot; the bodies are short.
HEAD = "the annual report of the committee on standards and measures for the year"
FOOT = "all rights reserved by the committee printed in the house of the society"
BODIES = ["alpha beta gamma delta", "alpha beta gamma omega"]
BODIES += [f"one{number} two{number} three{number} four{number}" for number in range(10)]
PAGES = [f"{HEAD} {body} {word} {FOOT}" for body in BODIES for word in ("red", "blue")]


def jsonl(path, texts):
    path.write_bytes(command.jsonl(texts))
    return path


@pytest.fixture
def pages(tmp_path):
    return jsonl(tmp_path / "pages.jsonl", PAGES * 4)


def test_template_words_are_no_evidence():
    plain = likewise.dedup(PAGES, likewise.Recipe.minhash(0.45, shingle=2, weights="none"))
    rare = likewise.dedup(PAGES, likewise.Recipe.minhash(0.45, weights="idf"))
    # The template makes all pages similar; with rarity weights, only pages with the same body are.
    assert int(plain.kept.sum()) == 1
    assert int(rare.kept.sum()) > 1


def test_a_table_and_two_passes_give_the_same_answer(pages, tmp_path):
    run("weights", pages, "-o", tmp_path / "w", "--quiet")
    table = likewise.Weights.read(tmp_path / "w")
    first = likewise.dedup_files(pages, tmp_path / "one", likewise.Recipe.minhash(weights="idf"))
    assert first["weights"]["num_documents"] == len(PAGES)
    assert first["weights"]["is_exact"]
    assert first["recipe"]["weights_id"] == table.weights_id
    again = likewise.Recipe.from_file(tmp_path / "one" / "summary.json")
    for recipe in (likewise.Recipe.minhash(weights=table), again, again.with_table(table)):
        assert likewise.dedup_files(pages, tmp_path / "two", recipe, overwrite=True)["recipe_id"] == first["recipe_id"]
        one, two = (pq.read_table(tmp_path / name / "removed.parquet") for name in ("one", "two"))
        assert one.equals(two)
    command_line = ["--recipe", tmp_path / "one" / "summary.json", "--weights", tmp_path / "w"]
    run("dedup", pages, "-o", tmp_path / "two", "--overwrite", *command_line)
    assert pq.read_table(tmp_path / "two" / "removed.parquet").equals(one)
    with pytest.raises(RecipeMismatch, match="weights_id"):
        likewise.dedup(PAGES[:3], likewise.Recipe.from_dict(first["recipe"]))


def test_every_input_is_read_twice(pages, tmp_path):
    recipe = ["--weights", "idf", "--threshold", "0.45"]
    expected = run("dedup", pages, "-o", "-", *recipe, "--quiet").out
    text = pages.read_bytes()
    packed = tmp_path / "pages.jsonl.gz"
    packed.write_bytes(gzip.compress(text))
    assert run("dedup", "-", "-o", "-", *recipe, "--quiet", stdin=text).out == expected
    summary = likewise.dedup_files(packed, tmp_path / "out", likewise.Recipe.minhash(weights="idf"))
    assert summary["num_kept"] == len(expected.splitlines())
    table = pa.table({"text": PAGES * 4})
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=3))
    found = likewise.dedup(stream, likewise.Recipe.minhash(weights="idf"))
    assert int(found.kept.sum()) == len(expected.splitlines())
    assert found.summary["recipe"]["weights_id"] == summary["recipe"]["weights_id"]


def test_threads_and_batches_change_no_table(tmp_path):
    texts = [f"w{i % 7} w{i % 11} w{i * i % 101} own{i}" for i in range(5000)]
    recipe = likewise.Recipe.minhash(weights="idf", shingle=1)
    ids = {count_weights(texts, recipe, threads=threads).weights_id for threads in (1, 2, 5)}
    ids |= {count_weights(texts[::-1], recipe).weights_id}
    file = jsonl(tmp_path / "texts.jsonl", texts)
    ids |= {weigh_files(file, recipe, run=FileRun(threads=threads)).weights_id for threads in (1, 3)}
    assert len(ids) == 1


def test_a_collection_beyond_memory_says_so_loudly(tmp_path):
    texts = [" ".join(f"w{i}x{j}" for j in range(400)) for i in range(2000)]
    file = jsonl(tmp_path / "texts.jsonl", texts)
    done = run("weights", file, "-o", tmp_path / "w", "--memory", "17MB", "--shingle", 1, "--quiet")
    assert "warning" in done.err
    table = likewise.Weights.read(tmp_path / "w")
    assert not table.is_exact
    assert table.excess > 0
    assert table.num_documents == 2000
    exact = count_weights(texts, likewise.Recipe.minhash(weights="idf", shingle=1))
    assert exact.is_exact
    assert table.weights_id != exact.weights_id


def test_a_lexicon(tmp_path):
    tsv = tmp_path / "lexicon.tsv"
    tsv.write_text("term\tweight\nannual\t0\nReport\t5\n\n", encoding="utf-8")
    file = jsonl(tmp_path / "texts.jsonl", PAGES)
    arguments = ["--method", "simhash", "--shingle", "1", "--quiet"]
    run("sketch", file, "-o", tmp_path / "s.parquet", "--weights", tsv, *arguments)
    sketches = likewise.Sketches.read(tmp_path / "s.parquet")
    recipe = likewise.Recipe.simhash(shingle=1, weights=likewise.Weights.from_terms({"report": 5, "annual": 0}))
    assert sketches.array.tolist() == likewise.sketch(PAGES, recipe).array.tolist()
    csv = tmp_path / "lexicon.csv"
    csv.write_text('"annual",0\nreport,5\n', encoding="utf-8")
    run("sketch", file, "-o", tmp_path / "t.parquet", "--weights", f"lexicon:{csv}", *arguments)
    assert likewise.Sketches.read(tmp_path / "t.parquet", sketches.recipe)


def test_where_a_lexicon_leaves_nothing_the_unfiltered_features_serve():
    table = likewise.Weights.from_terms({"cat": 0, "dog": 0})
    for recipe in (
        likewise.Recipe.minhash(shingle=1, weights=table),
        likewise.Recipe.simhash(shingle=1, weights=table),
    ):
        assert likewise.dedup(["cat", "dog", "cat"], recipe).kept.tolist() == [True, True, False]


@pytest.mark.parametrize("weights", ["idf", "log-count-idf"])
@pytest.mark.parametrize("method", ["minhash", "simhash"])
def test_cat_dog_cat(method, weights):
    recipe = likewise.Recipe.from_options(method, weights=weights)
    assert likewise.dedup(["cat", "dog", "cat"], recipe).kept.tolist() == [True, True, False]
    assert likewise.dedup(["", "cat", " "], recipe).kept.tolist() == [True, True, False]
    assert likewise.dedup(["cat"], recipe).kept.tolist() == [True]
    assert likewise.dedup([], recipe).kept.tolist() == []


def test_what_was_weighed_otherwise_does_not_mix(tmp_path):
    rare = likewise.Recipe.simhash(weights="idf", within=3)
    ours, theirs = likewise.sketch(PAGES, rare), likewise.sketch(PAGES[:3], rare)
    with pytest.raises(RecipeMismatch, match="weights_id"):
        likewise.Sketches.concatenate([ours, theirs])
    with pytest.raises(RecipeMismatch, match="weights_id"):
        ours.recipe.with_table(theirs.recipe.table)
    with pytest.raises(RecipeMismatch, match="shingle"):
        ours.recipe.replace(shingle=3)
    ours.write(tmp_path / "s.parquet")
    assert likewise.Sketches.read(tmp_path / "s.parquet", ours.recipe).recipe.weights_id == ours.recipe.weights_id
    with pytest.raises(RecipeMismatch, match="weights_id"):
        likewise.Sketches.read(tmp_path / "s.parquet", theirs.recipe)


def test_a_recipe_is_json_both_ways_without_its_table():
    recipe = likewise.sketch(PAGES, likewise.Recipe.minhash(weights="idf")).recipe
    again = likewise.Recipe.from_json(recipe.to_json())
    assert again == recipe
    assert again.recipe_id == recipe.recipe_id
    assert again.table is None
    assert again.with_table(recipe.table).feature_rules.weights == "idf"
    assert recipe.sketch_id != likewise.Recipe.minhash(weights="idf").sketch_id


MISTAKES = {
    "an id without a table": (lambda: likewise.Recipe.minhash(weights="none", weights_id="0" * 32), InvalidParameter),
    "an id that is none": (lambda: likewise.Recipe.minhash(weights="idf", weights_id="nonsense"), InvalidParameter),
    "another kind": (lambda: likewise.Recipe.minhash(weights="idf", table=lexicon({"a": 2})), InvalidParameter),
    "no use for it": (lambda: likewise.Recipe.minhash(weights="none", table=lexicon({"a": 2})), InvalidParameter),
    "two tables": (lambda: likewise.Recipe.minhash(weights=lexicon({"a": 2}), table=lexicon({})), InvalidParameter),
    "a term too long": (lambda: likewise.Recipe.minhash(shingle=1, weights=lexicon({"a b": 2})), InvalidParameter),
    "no lexicon": (lambda: likewise.Recipe.minhash(weights="lexicon").feature_rules, InvalidParameter),
    "too heavy": (lambda: lexicon({"a": 16}), InvalidParameter),
    "twice": (lambda: lexicon({"a": 2, "A": 3}), InvalidInput),
    "no token": (lambda: lexicon({"...": 2}), InvalidInput),
    "no collection": (lambda: likewise.compare("a", "b", likewise.Recipe.minhash(weights="idf")), InvalidParameter),
    "a run of texts for pairs": (lambda: likewise.dedup(["a"], likewise.Recipe.minhash(weights="own")), InvalidInput),
    "text for pairs": (lambda: likewise.sketch(["text"], likewise.Recipe.minhash(weights="own")), InvalidInput),
    "a heavy pair": (lambda: likewise.sketch([[("a", 256)]], likewise.Recipe.minhash(weights="own")), InvalidInput),
    "no pairs": (lambda: lexicon("abc"), InvalidParameter),
    "terms alone": (lambda: lexicon(["flood"]), InvalidParameter),
    "no terms": (lambda: lexicon(7), InvalidParameter),
    "numbers": (lambda: lexicon({3: 2}), InvalidInput),
    "a seed below 0": (lambda: lexicon({"a": 2}, seed=-1), InvalidParameter),
    "other tokens": (lambda: lexicon({"a": 2}, tokens="klingon"), InvalidParameter),
    "several tokens left out": (lambda: lexicon({"new york": 0}), InvalidInput),
    "nothing to count": (lambda: count_weights(["a"], likewise.Recipe.exact()), InvalidParameter),
    "a name as recipe": (lambda: count_weights(["a"], "minhash"), InvalidParameter),
    "memory below 0": (lambda: count_weights(["a"], memory_bytes=-1), InvalidParameter),
    "memory without bound": (lambda: count_weights(["a"], memory_bytes=float("inf")), InvalidParameter),
    "half a pair": (lambda: likewise.sketch([[("a",)]], likewise.Recipe.minhash(weights="own")), InvalidInput),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake):
    make, error = MISTAKES[mistake]
    with pytest.raises(error):
        make()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"cat\t3\ndog three\n", "bad.tsv:2"),
        (b"cat\t3\ndog\t16\n", "bad.tsv:2"),
        (b"cat\t3\nCat\t4\n", "bad.tsv:2"),
        (b"cat\t" + b"1" * 5000 + b"\n", "not an integer from 0 to 15"),
        (b"cat dog\t0\n", "bad.tsv:1"),
        (b"\xff\xfe\x00", "not a weight table or lexicon"),
        (b"LWWEIGHT" + bytes(100), "version is 0"),
        (b"LWWEIGHT", "ends too early"),
    ],
)
def test_a_bad_file_is_named(tmp_path, content, said):
    file = tmp_path / "bad.tsv"
    file.write_bytes(content)
    texts = jsonl(tmp_path / "texts.jsonl", PAGES)
    done = likewise_command("dedup", str(texts), "-o", str(tmp_path / "out"), "--weights", str(file))
    assert done.status == 2
    assert said in done.err


def test_bad_rows_are_told_by_the_second_pass(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"text": "cat"}\n{"no": 1}\n{"text": "dog"}\n', encoding="utf-8")
    done = likewise_command("dedup", str(file), "-o", str(tmp_path / "out"), "--weights", "idf")
    assert done.status == 2
    assert "rows.jsonl:2" in done.err
    with pytest.raises(InvalidInput):
        weigh_files(file)
    run = FileRun(on_error="skip")
    assert weigh_files(file, run=run).num_documents == 2
    assert (
        likewise.dedup_files(file, tmp_path / "out", likewise.Recipe.minhash(weights="idf"), run=run)["num_kept"] == 2
    )


def test_the_table_is_not_written_over_an_input(tmp_path):
    path = jsonl(tmp_path / "in.jsonl", PAGES)
    before = path.read_bytes()
    ran = likewise_command("weights", path, "-o", tmp_path / "." / "in.jsonl")
    assert (ran.status, path.read_bytes()) == (2, before)
    assert "both input and output" in ran.err


@pytest.mark.parametrize(("name", "content"), [("l.tsv", ""), ("l.tsv", "\n\n"), ("l.csv", "term,weight\n")])
def test_a_lexicon_without_terms_is_refused(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    path = jsonl(tmp_path / "in.jsonl", PAGES)
    ran = likewise_command("dedup", path, "-o", tmp_path / "out", "--weights", tmp_path / name)
    assert ran.status == 2
    assert f"{name}: the lexicon is empty" in ran.err


def test_memory_of_the_counts_is_understood_as_text(tmp_path):
    assert count_weights(PAGES, memory_bytes="64MB").num_listed == count_weights(PAGES).num_listed
    path = jsonl(tmp_path / "in.jsonl", PAGES)
    assert weigh_files(path, memory_bytes="0.1GB").weights_id == count_weights(PAGES).weights_id
    ran = likewise_command("weights", path, "-o", tmp_path / "w", "--memory", "0")
    assert ran.status == 2
    assert "--memory:" in ran.err


def test_a_term_that_is_cut_is_named_with_its_line_and_the_cure(tmp_path):
    (tmp_path / "texts.jsonl").write_text('{"id": "a", "text": "渡船开往东岸码头"}\n', encoding="utf-8")
    terms = tmp_path / "terms.tsv"
    terms.write_text("渡船\t5\n\n东岸码头\t3\n", encoding="utf-8")
    (tmp_path / "words.txt").write_text("东岸码头\n", encoding="utf-8")
    options = [tmp_path / "texts.jsonl", "-o", tmp_path / "out", "--tokens", "chinese", "--shingle", "1"]
    options += ["--method", "simhash", "--within", "3", "--weights", terms]
    refused = likewise_command("dedup", *options)
    assert refused.status == 2
    assert f"'东岸码头' ({terms}, line 3) of 2 tokens" in refused.err
    assert "add the term to the dictionary" in refused.err
    run("dedup", *options, "--dictionary", tmp_path / "words.txt")
