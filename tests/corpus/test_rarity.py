"""Items by a weight table: the oracle's result from its counts, the result of counting, and tables that do not fit."""

import json
import random

import numpy as np
import pytest

import likewise
from likewise.corpus import decontaminate_files
from likewise.errors import InvalidParameter, RecipeMismatch
from likewise.recipe.recipe import Recipe
from likewise.recipe.weights import Weights
from likewise.stages.weights import count_weights
from tests.command import likewise_command
from tests.corpus.test_items import SCRIPTS
from tests.corpus.test_items import collection as drawn
from tests.golden.texts import made_up
from tests.oracle.items import Items

NAMES = ("row", "span_start", "span_end", "longest_run", "item_id")


def table_of(documents, **fields):
    return count_weights(documents, Recipe.minhash(weights="idf", **{"shingle": 5, **fields}))


def collection(seed, num_documents=120):
    """Return items from three templates, and documents; a third of them contain one with other words."""
    rng = random.Random(seed)
    frames = [made_up(16, 10 + i).split() for i in range(3)]
    items = [[*frame[:6], *made_up(5, 100 + i).split(), *frame[6:]] for i in range(12) for frame in frames[i % 3 :][:1]]
    documents = []
    for i in range(num_documents):
        words = made_up(rng.randint(6, 60), 2000 + i).split()
        copy = list(rng.choice(items)) if i % 3 else list(rng.choice(frames))
        for place in rng.sample(range(len(copy)), rng.choice([0, 1, 3, 5])):
            copy[place] = "changed"
        at = rng.randint(0, len(words))
        words[at:at] = copy if i % 2 else []
        documents.append(" ".join(words))
    return [" ".join(words) for words in items], documents


def rows_of(found):
    return [tuple(row[name] for name in NAMES) for row in found.evidence.to_pylist()]


@pytest.mark.parametrize("of_table", [slice(0, 120), slice(0, 60), slice(60, 120), slice(0, 0)], ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_verdicts_are_those_of_the_oracle(seed, of_table):
    items, documents = collection(seed)
    counted = documents[of_table]
    found = likewise.decontaminate(documents, {"s": items}, min_share=0, threshold=0, weights=table_of(counted))
    oracle = Items(items, 8)
    expected = {
        (m.document, m.start, m.end, m.run, str(m.text)): (share, similarity)
        for m, share, similarity in oracle.judge(documents, counted)
    }
    assert len(expected) > 30
    assert set(rows_of(found)) == set(expected)
    for row, *ours in zip(
        rows_of(found), *(found.evidence.column(n).to_pylist() for n in ("share", "similarity")), strict=True
    ):
        np.testing.assert_allclose(ours, expected[row], rtol=1e-9)
    plain = likewise.decontaminate(documents, {"s": items}, min_share=0, threshold=0)
    assert plain.evidence.column("share").to_pylist() != found.evidence.column("share").to_pylist()
    assert found.summary["weights"]["num_documents"] == len({*counted})
    assert "weights" not in plain.summary


@pytest.mark.parametrize("script", SCRIPTS)
def test_ngrams_of_any_script_are_features_of_the_table(script):
    items, documents = drawn(3, SCRIPTS[script])
    oracle = Items(items, 4)
    table = table_of(documents)
    found = likewise.decontaminate(documents, {"s": items}, min_ngrams=4, min_share=0, threshold=0, weights=table)
    expected = {(m.document, m.start, m.text): (share, alike) for m, share, alike in oracle.judge(documents, documents)}
    for row in found.evidence.to_pylist():
        share, alike = expected[row["row"], row["span_start"], oracle.distinct[int(row["item_id"])]]
        np.testing.assert_allclose((row["share"], row["similarity"]), (share, alike), rtol=1e-9)
    assert found.evidence.num_rows > 30


@pytest.mark.parametrize("seed", range(3))
def test_a_table_of_the_corpus_gives_what_counting_gives(tmp_path, seed):
    items, documents = collection(seed)
    plain = likewise.decontaminate(documents, {"s": items})
    found = likewise.decontaminate(documents, {"s": items}, weights=table_of(documents))
    assert 10 < len(rows_of(plain)) < len(rows_of(likewise.decontaminate(documents, {"s": items}, threshold=0)))
    assert rows_of(found) == rows_of(plain)
    assert found.kept.tolist() == plain.kept.tolist()
    for name, texts in (("corpus", documents), ("s", items)):
        lines = (json.dumps({"text": text}) + "\n" for text in texts)
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    corpus, table = tmp_path / "corpus.jsonl", tmp_path / "corpus.weights"
    made = likewise_command("weights", corpus, "--shingle", "5", "-o", table)
    assert made.status == 0, made.err
    for weights in ((), ("--weights", table)):
        out = tmp_path / f"out{len(weights)}"
        done = likewise_command("decontaminate", corpus, "--against", tmp_path / "s.jsonl", *weights, "-o", out)
        assert done.status == 0, done.err
    kept = [(tmp_path / f"out{n}" / "kept" / "corpus.jsonl").read_bytes() for n in (0, 2)]
    assert kept[0] == kept[1]
    summary = json.loads((tmp_path / "out2" / "summary.json").read_bytes())
    assert summary["weights"]["weights_id"] == Weights.read(table).weights_id


def test_the_rarity_of_a_whole_corpus_judges_a_part_of_it():
    """A phrase that occurs in one document of a part is common in the whole."""
    frame, rest = made_up(20, 1), [made_up(12, 100 + i) for i in range(60)]
    whole = [f"{frame} {one}" for one in rest[:50]] + rest[50:]
    item = f"{frame} {made_up(8, 9)}"
    part = [whole[0], *rest[50:]]
    assert likewise.decontaminate(part, {"s": [item]}, threshold=0.5).kept.tolist()[0] is False
    assert likewise.decontaminate(part, {"s": [item]}, threshold=0.5, weights=table_of(whole)).kept.all()


def test_a_run_with_another_table_begins_anew(tmp_path, monkeypatch):
    items, documents = collection(1)
    (tmp_path / "c.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    (tmp_path / "s.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in items))
    files = (tmp_path / "c.jsonl", {"s": tmp_path / "s.jsonl"}, tmp_path / "out")

    def fail(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("likewise.corpus.items.document_counts", fail)
        with pytest.raises(KeyboardInterrupt):
            decontaminate_files(*files, weights=table_of(documents))
    with pytest.raises(likewise.errors.LikewiseError, match="weights_id"):
        decontaminate_files(*files, weights=table_of(documents[:50]))
    summary = decontaminate_files(*files, weights=table_of(documents))
    whole = decontaminate_files(*files[:2], tmp_path / "whole", weights=table_of(documents))
    assert summary["items"] == whole["items"]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: table_of(["a b"], shingle=2), RecipeMismatch, "shingle is 2 here and 5 there"),
        (lambda: table_of(["a b"], tokens="char"), RecipeMismatch, "tokens is 'char' here and 'auto' there"),
        (lambda: table_of(["a b"], fold=("accents",)), RecipeMismatch, r"fold is \[?'?.*accents.* here and None there"),
        (lambda: table_of(["a b"], seed=3), RecipeMismatch, "seed is 3 here and 0 there"),
        (lambda: table_of(["a b"], markup="html"), RecipeMismatch, "markup is 'html' here and None there"),
        (lambda: Weights.from_terms({"a": 2}), InvalidParameter, "a lexicon has no document frequencies"),
        (lambda: "corpus.weights", InvalidParameter, "'corpus.weights' is not a weight table"),
    ],
)
def test_tables_that_do_not_fit_are_rejected(make, error, words):
    with pytest.raises(error, match=words) as raised:
        likewise.decontaminate(["a text"], {"s": ["a text"]}, weights=make())
    assert "likewise weights CORPUS --shingle 5 -o TABLE" in str(raised.value)


def test_the_command_rejects_a_table_of_other_features(tmp_path):
    (tmp_path / "c.jsonl").write_text(json.dumps({"text": made_up(30, 1)}) + "\n")
    likewise_command("weights", tmp_path / "c.jsonl", "-o", tmp_path / "w")
    call = ("decontaminate", tmp_path / "c.jsonl", "--against", tmp_path / "c.jsonl", "-o", tmp_path / "out")
    done = likewise_command(*call, "--weights", tmp_path / "w")
    assert done.status != 0
    assert "shingle is 2 here and 5 there" in done.err
    assert "likewise weights CORPUS --shingle 5 -o TABLE" in done.err
    assert not (tmp_path / "out").exists()


def test_other_hashes_are_rejected():
    table = table_of([made_up(9, i) for i in range(9)], hash="md5")
    with pytest.raises(RecipeMismatch, match="hash is 'md5' here"):
        likewise.decontaminate(["a text"], {"s": ["a text"]}, weights=table)


def test_doubts_about_a_table_are_warnings(tmp_path):
    items, documents = collection(1)
    table, events = table_of(documents[:1]), []
    likewise.decontaminate(documents, {"s": items}, weights=table, progress=events.append)
    (tmp_path / "c.jsonl").write_text(json.dumps({"text": documents[0]}) + "\n")
    files = (tmp_path / "c.jsonl", {"s": tmp_path / "c.jsonl"}, tmp_path / "out")
    decontaminate_files(*files, weights=table, progress=events.append)
    assert sum("all features look equally rare" in str(event) for event in events) == 2


def test_frequencies_are_those_of_the_weights():
    """The error is half a weight step, in logarithms, plus rounding."""
    from likewise.corpus.items import _frequencies
    from tests.oracle.weights import idf

    for n in (2, 3, 10, 80, 200, 10_000, 10**7, 2**31):
        frequencies = _frequencies(n)
        for df in sorted({*range(1, min(n, 400) + 1), n // 2 + 1, n}):
            ours = int(frequencies[idf(n, df)])
            if idf(n, df) < 15:
                factor = max(n, 20) ** (1 / 20 if idf(n, df) == 1 else 1 / 30)
                assert df / factor - 1 <= ours <= df * factor + 1, (n, df)
            elif n < 2**30:
                assert (ours, df) == (0, 1), (n, df)
