"""Kinds of tokens, folding, markup, word lists and binary files through every entry point."""

import copy
import json
import pickle
import random

import numpy as np
import pyarrow as pa
import pytest

import likewise
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch
from likewise.job.reading import FileRun
from likewise.recipe.word_lists import WordList
from likewise.stages.features import features, tokens
from likewise.stages.weights import count_weights
from tests import command
from tests.command import likewise_command
from tests.command import successful_command as run

Minhash = likewise.Recipe.minhash


@pytest.fixture
def binaries(tmp_path):
    """Return two builds of one program, another program, and random bytes named and begun like gzip; none is UTF-8."""
    rng = random.Random(4)
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    program = rng.randbytes(60_000)
    (folder / "one.so").write_bytes(program)
    (folder / "sub" / "two.so").write_bytes(program[:20_000] + b"\0inserted" + program[20_000:])
    (folder / "other").write_bytes(rng.randbytes(50_000))
    (folder / "packed.gz").write_bytes(b"\x1f\x8b" + rng.randbytes(9_000))
    return folder


def test_binary_files_are_documents(binaries, tmp_path):
    run("dedup", binaries, "-o", tmp_path / "out", "--tokens", "chunks", "--threshold", "0.6", "--quiet")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert (summary["num_documents"], summary["num_removed"]) == (4, 1)
    assert summary["recipe"]["libraries"] == "fastcdc 5.0.0"
    kept = {path.relative_to(tmp_path / "out" / "kept").as_posix() for path in (tmp_path / "out" / "kept").rglob("*")}
    assert kept - {"sub"} == {"one.so", "other", "packed.gz"}
    assert (tmp_path / "out" / "kept" / "one.so").read_bytes() == (binaries / "one.so").read_bytes()


@pytest.mark.parametrize("options", [{"tokens": "bytes"}, {"tokens": "chunks"}, {"tokens": "bytes", "shingle": 16}])
def test_files_and_bytes_in_memory_give_the_same(binaries, tmp_path, options):
    recipe = Minhash(0.6, **options)
    paths = sorted(path for path in binaries.rglob("*") if path.is_file())
    likewise.dedup_files([binaries], tmp_path / "out", recipe)
    removed = pa.parquet.read_table(tmp_path / "out" / "removed.parquet").to_pylist()
    result = likewise.dedup([path.read_bytes() for path in paths], recipe)
    assert [row["row"] for row in removed] == np.flatnonzero(~result.kept).tolist() == [3]
    assert removed[0]["similarity"] == result.removed["similarity"][0].as_py()


def test_fixed_chunks_do_not_survive_an_insertion(binaries):
    one, two = ((binaries / name).read_bytes() for name in ("one.so", "sub/two.so"))
    content = likewise.compare(one, two, Minhash(tokens="chunks"))
    fixed = likewise.compare(one, two, Minhash(tokens="chunks", chunking="fixed"))
    assert content.measures.jaccard > 0.8 > 0.4 > fixed.measures.jaccard
    assert content.alignment == ()


def test_compare_of_binary_files(binaries):
    done = run("compare", binaries / "one.so", binaries / "sub" / "two.so", "--tokens", "chunks")
    assert b"match by jaccard" in done.out
    refused = likewise_command("compare", binaries / "one.so", binaries / "other")
    assert refused.status == 2


def test_binary_files_are_no_texts(binaries, tmp_path):
    with pytest.raises(InvalidInput, match="no input file has a known format"):
        likewise.dedup_files(binaries / "sub", tmp_path / "out")
    with pytest.raises(InvalidParameter, match="--tokens bytes or --tokens chunks"):
        likewise.dedup_files(binaries, tmp_path / "out", run=FileRun(file_format="binary"))
    (binaries / "nul.txt").write_bytes(b"a\0b")
    with pytest.raises(InvalidInput, match="--tokens bytes or chunks"):
        likewise.dedup_files(binaries / "nul.txt", tmp_path / "out")


def test_texts_as_bytes(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(command.jsonl(["naïve text of some length", "naïve text of some length!", "x"]))
    recipe = Minhash(0.7, tokens="bytes")
    summary = likewise.dedup_files(tmp_path / "a.jsonl", tmp_path / "out", recipe, run=FileRun(file_format="jsonl"))
    assert summary["num_removed"] == 1
    texts = pa.chunked_array([["naïve"], ["text"]])
    assert features(texts, recipe).features.tolist() == features([b"na\xc3\xafve", b"text"], recipe).features.tolist()


CHINESE = ["我们都爱吃北京烤鸭和炸酱面。", "我們都愛吃北京烤鴨和炸醬麵！", "今天的股市又创下了新高"]


def test_options_of_the_command_line_are_those_of_python(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(command.jsonl(CHINESE))
    (tmp_path / "words.txt").write_text("北京烤鸭 100 n\n炸酱面\n", encoding="utf-8")
    (tmp_path / "stop.txt").write_text("的\n了\n\n和\n", encoding="utf-8")
    arguments = ["--tokens", "chinese", "--fold", "punctuation,traditional"]
    arguments += ["--dictionary", tmp_path / "words.txt", "--stop-words", tmp_path / "stop.txt"]
    run("sketch", tmp_path / "in.jsonl", "-o", tmp_path / "s.npy", *arguments, "--quiet")
    recipe = Minhash(
        tokens="chinese",
        fold=["traditional", "punctuation"],
        dictionary=[("北京烤鸭", 100), "炸酱面"],
        stop_words=["和", "了", "的"],
    )
    sketches = likewise.Sketches.read(tmp_path / "s.npy", recipe)
    assert (sketches.array == likewise.sketch(CHINESE, recipe).array).all()
    assert (sketches.array[0] == sketches.array[1]).all()
    assert tokens(CHINESE[1], recipe)[-3:] == ["北京烤鸭", "和", "炸酱面"]
    # A recipe in JSON names the lists; it cannot cut without them, and rejects others.
    (tmp_path / "recipe.json").write_text(recipe.to_json())
    again = likewise.Recipe.from_file(tmp_path / "recipe.json")
    assert again.recipe_id == recipe.recipe_id
    with pytest.raises(InvalidParameter, match="--stop-words FILE"):
        likewise.sketch(CHINESE, again)
    with pytest.raises(RecipeMismatch):
        again.replace(stop_words=["和"])
    lists = ["--dictionary", tmp_path / "words.txt", "--stop-words", tmp_path / "stop.txt"]
    done = run("pairs", tmp_path / "in.jsonl", "-o", "-", "--recipe", tmp_path / "recipe.json", *lists, "--quiet")
    assert done.out.decode().splitlines()[1:] == ["0\t1\t1.0\t"]


def test_markup_and_exact_texts(tmp_path):
    pages = ["<p>One   fine day</p>", "<div class=x>One fine day<script>1</script></div>", "One fine day"]
    (tmp_path / "in.jsonl").write_bytes(command.jsonl(pages))
    run("dedup", tmp_path / "in.jsonl", "-o", tmp_path / "a", "--method", "exact", "--markup", "html", "--quiet")
    assert json.loads((tmp_path / "a" / "summary.json").read_text())["num_removed"] == 2
    assert likewise.dedup(pages, likewise.Recipe.exact()).kept.all()
    folded = likewise.Recipe.exact(fold="digits")
    assert likewise.dedup(["version 1", "version 23"], folded).kept.tolist() == [True, False]
    assert likewise.compare("version 1", "version 23", folded).matches


def test_identity_of_text_options():
    plain = Minhash(0.8)
    ids = {plain.recipe_id}
    for options in (
        {"markup": "html"},
        {"fold": "digits"},
        {"fold": "width,digits"},
        {"stop_words": ["a"]},
        {"stop_words": ["b"]},
        {"tokens": "chinese"},
        {"tokens": "chunks"},
        {"tokens": "chunks", "chunk_bytes": 2048},
        {"tokens": "chunks", "chunking": "fixed"},
        {"tokens": "user", "tokenizer": "a"},
        {"tokens": "user", "tokenizer": "b"},
    ):
        recipe = Minhash(0.8, **options)
        ids.add(recipe.recipe_id)
        again = likewise.Recipe.from_json(recipe.to_json())
        assert again == recipe
        assert again.recipe_id == recipe.recipe_id
        assert recipe.sketch_id != plain.sketch_id
        assert copy.deepcopy(recipe) == pickle.loads(pickle.dumps(recipe)) == recipe
    assert len(ids) == 12
    assert Minhash(0.8, fold=()).recipe_id == plain.recipe_id
    fields = json.loads(Minhash(tokens="chinese").to_json()) | {"libraries": "jieba-rs 0.10.2"}
    with pytest.raises(RecipeMismatch, match="libraries"):
        likewise.Recipe.from_dict(fields)


def cut(text):
    return [word[:4] for word in text.lower().split()]


OWN = Minhash(0.6, tokens="user", tokenizer="first four", shingle=1)
TEXTS = ["Running dogs bark", "runner dogsled barking", "something else", "", "Running dogs bark"]


def test_own_tokens_through_every_door():
    lists = [cut(text) for text in TEXTS]
    by_lists, by_function = likewise.dedup(lists, OWN), likewise.dedup(TEXTS, OWN, tokenizer=cut)
    assert by_lists.kept.tolist() == by_function.kept.tolist() == [True, False, True, True, False]
    table = pa.table({"id": list("abcde"), "text": TEXTS})
    ids = [f"row {i}" for i in range(5)]
    assert likewise.dedup(table, OWN, tokenizer=cut).removed["kept_id"].to_pylist() == ["a", "a"]
    assert likewise.dedup(table.to_reader(max_chunksize=2), OWN, tokenizer=cut).kept.tolist() == by_lists.kept.tolist()
    assert likewise.dedup(lists, OWN, ids=ids).removed["doc_id"].to_pylist() == ["row 1", "row 4"]
    assert (likewise.sketch(iter(lists), OWN).array == likewise.sketch(TEXTS, OWN, tokenizer=cut).array).all()
    assert likewise.sketch(lists, OWN).is_empty.tolist() == [False, False, False, True, False]
    assert likewise.compare(lists[0], lists[1], OWN).matches
    assert likewise.compare(TEXTS[0], TEXTS[1], OWN, tokenizer=cut).measures.jaccard == 2 / 4 + 0.5
    assert likewise.pairs(lists, OWN).num_rows == 3
    longest = likewise.dedup(TEXTS, OWN, tokenizer=cut, keep="longest")
    assert longest.kept.tolist() == [False, True, True, True, False]


def test_a_recipe_rejects_another_version_of_the_package_that_cut():
    """Only where the name is that of an installed package and its version; other names are the caller's own."""
    for name, is_accepted in {
        f"numpy {np.__version__}": True,
        "numpy 0.0.1": False,
        "numpy small-model": True,
        "no-such-package 1.2.3": True,
        "1.2.3": True,
    }.items():
        recipe = Minhash(0.6, tokens="user", tokenizer=name, shingle=1)
        likewise.dedup([cut("an own list")], recipe)  # the version of what cut these is unknown
        if is_accepted:
            likewise.dedup(TEXTS, recipe, tokenizer=cut)
            continue
        for call in (likewise.dedup, likewise.sketch):
            with pytest.raises(RecipeMismatch, match=r"install numpy==0\.0\.1"):
                call(TEXTS, recipe, tokenizer=cut)


@pytest.mark.parametrize(
    ("first", "second"),
    [("किताब", "कातिब"), ("कुल", "कल"), ("ไม่ไป", "ไม้ไป"), ("தமிழ்", "தமிழு"), ("がっこう", "かっこう")],
)
@pytest.mark.parametrize("kind", ["auto", "word", "script", "char"])
def test_marks_that_are_letters_count(kind, first, second):
    """Other tools drop vowel signs, tones and the voicing of kana, or separate words at them."""
    recipe = Minhash(tokens=kind)
    assert tokens(first, recipe) != tokens(second, recipe)


def test_own_weights_and_counted_weights():
    pairs = [[(word, 3) for word in cut(text)] for text in TEXTS]
    own = Minhash(0.6, weights="own", shingle=1)
    assert likewise.dedup(pairs, own).kept.tolist() == [True, False, True, True, False]
    found = features(pairs[:1], own)
    assert found.weights.tolist() == [3, 3, 3]
    assert (found.features == features([cut(TEXTS[0])], OWN).features).all()
    rare = Minhash(0.5, tokens="user", tokenizer="first four", weights="idf", shingle=1)
    assert likewise.dedup(TEXTS, rare, tokenizer=cut).summary["weights"]["num_documents"] == 2
    counted = Minhash(0.5, weights=count_weights(TEXTS, OWN, tokenizer=cut))
    assert (counted.tokens, counted.tokenizer, counted.shingle) == ("user", "first four", 1)


MISTAKES = {
    "no name": (lambda: Minhash(tokens="user"), "need a tokenizer name"),
    "a name alone": (lambda: Minhash(tokenizer="x"), "tokens user"),
    "texts": (lambda: likewise.sketch(["a b"], OWN), "or a tokenizer"),
    "an arrow of texts": (lambda: likewise.sketch(pa.array(["a b"]), OWN), "not lists of tokens"),
    "pairs": (lambda: likewise.sketch([[("a", 1)]], OWN), "pairs require weights own"),
    "numbers": (lambda: likewise.sketch([[1]], OWN), "not a str"),
    "a tokenizer for words": (lambda: likewise.dedup(["a"], tokenizer=cut), "tokens auto"),
    "no function": (lambda: likewise.dedup(["a"], OWN, tokenizer="x"), "function"),
    "bytes for words": (lambda: likewise.dedup([b"a"]), "expected a str"),
    "bytes and text": (lambda: likewise.dedup([b"a", "a"], Minhash(tokens="bytes")), "expected bytes"),
    "folded bytes": (lambda: Minhash(tokens="bytes", fold="digits"), "used as given"),
    "folded chunks": (lambda: Minhash(tokens="chunks", markup="html"), "used as given"),
    "stop characters": (lambda: Minhash(tokens="char", stop_words=["a"]), "applies only to tokens auto, word, chinese"),
    "a dictionary for words": (lambda: Minhash(dictionary=["a"]), "applies only to tokens chinese"),
    "one stop word": (lambda: Minhash(stop_words="the"), "list of words"),
    "a bad count": (lambda: Minhash(tokens="chinese", dictionary=[("词", 0)]), "not an integer from 1"),
    "an unknown folding": (lambda: Minhash(fold="case"), "traditional, width"),
    "chunks of words": (lambda: Minhash(chunk_bytes=1024), "applies only to tokens chunks"),
    "odd chunks": (lambda: Minhash(tokens="chunks", chunk_bytes=1000), "power of two"),
    "tiny chunks": (lambda: Minhash(tokens="chunks", chunk_bytes=128), "from 256"),
    "another markup": (lambda: Minhash(markup="xml"), "html"),
    "own weights of words": (lambda: Minhash(tokens="word", weights="own"), "own weights require tokens user"),
    "no such option": (lambda: Minhash(libraries="x"), "not a recipe option"),
    "words for the exact": (lambda: likewise.Recipe.from_options("exact", stop_words=["a"]), "does not apply"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake):
    make, said = MISTAKES[mistake]
    with pytest.raises((InvalidInput, InvalidParameter), match=said):
        make()


@pytest.mark.parametrize(
    ("content", "said"), [(b"\xff\xfe", "not a word list"), (b"\n \n", "no words"), ("词 x n".encode(), "words.txt:1")]
)
def test_broken_lists_are_named(tmp_path, content, said):
    (tmp_path / "words.txt").write_bytes(content)
    (tmp_path / "in.jsonl").write_bytes(command.jsonl(["a"]))
    done = likewise_command(
        "sketch",
        tmp_path / "in.jsonl",
        "-o",
        tmp_path / "s.npy",
        "--tokens",
        "chinese",
        "--dictionary",
        tmp_path / "words.txt",
    )
    assert done.status == 2
    assert said in done.err


def test_word_lists():
    words = WordList(["The", "ＯＦ", "of", " "])
    assert [word for word, _ in words.entries] == ["of", "the"]
    assert words == WordList(["of", "the"])
    assert "2 words" in repr(words)
    assert len(words) == 2
