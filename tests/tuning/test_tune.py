"""`likewise tune` as a user runs it."""

import json
import shlex
import signal
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import likewise
from likewise._native import Texts
from likewise.errors import InvalidInput, InvalidParameter
from likewise.job.reading import FileRun
from likewise.recipe.recipe import Recipe
from likewise.stages.verify import verify_pairs
from likewise.stages.weights import Sample, with_counted
from likewise.tuning import Label, Labels, collection, read_labels, tune_files
from likewise.tuning.collection import _nearest, _sample
from likewise.tuning.grid import grid
from likewise.tuning.tuning import open_tuner
from tests.command import jsonl, likewise_command
from tests.oracle import features as oracle
from tests.oracle.sketches import simhash
from tests.waiting import LIMIT_S, wait_until

WORDS = [f"word{i}" for i in range(400)]


def made(num_texts=40, seed=0):
    """Return texts, some in pairs that differ in a few words, and labels of such pairs and of unlike ones."""
    random = np.random.default_rng(seed)
    texts, labels = [], []
    for number in range(num_texts):
        words = [WORDS[i] for i in random.integers(0, len(WORDS), 40)]
        changed = list(words)
        for place in random.choice(40, int(random.integers(1, 6)), replace=False):
            changed[place] = WORDS[random.integers(0, len(WORDS))]
        texts += [" ".join(words), " ".join(changed)]
        labels.append(Label(str(2 * number), str(2 * number + 1), is_duplicate=True))
        if number:
            labels.append(Label(*sorted((str(2 * number), str(2 * number - 2))), is_duplicate=False))
    return texts, labels


@pytest.fixture
def folder(tmp_path):
    texts, labels = made()
    rows = (json.dumps({"id": str(i), "text": text}) + "\n" for i, text in enumerate(texts))
    (tmp_path / "notes.jsonl").write_text("".join(rows))
    lines = (f"{label.a},{label.b},{int(label.is_duplicate)}\n" for label in labels[:60])
    (tmp_path / "pairs.csv").write_text("doc_id_a,doc_id_b,label\n" + "".join(lines))
    return tmp_path


def test_weights_are_those_of_the_whole_collection_and_counted_once_for_all_recipes(folder, monkeypatch):
    texts, _ = made()
    counted = []

    class Counted(Sample):
        def count(self, recipe, *args, **options):
            counted.append((recipe.tokens, recipe.shingle))
            return super().count(recipe, *args, **options)

    monkeypatch.setattr(collection, "Sample", Counted)
    weighed = [number for number, one in enumerate(grid()) if one.weights.endswith("idf") and one.measure != "hamming"]
    with open_tuner(folder / "notes.jsonl", most_documents=30) as tuner:
        sample = tuner._collection
        for number in weighed:
            candidate = grid()[number]
            recipe = with_counted(candidate.features(), [Texts.from_list(texts)], threads=1)
            expected = verify_pairs(sample.texts, sample.sample_pairs, recipe, measure=candidate.measure)
            assert np.array_equal(tuner.similarities(number), expected.astype(np.float32))
    assert tuner.num_sampled == 30
    assert len(counted) == len(set(counted)) == 5


def test_labels_to_a_recipe_that_dedup_takes(folder):
    ran = likewise_command("tune", "notes.jsonl", "--labels", "pairs.csv", "-o", "r.json", cwd=folder)
    assert ran.status == 0, ran.err
    shown = ran.out.decode()
    assert "31 duplicates and 29 others labeled" in shown
    assert "likewise dedup notes.jsonl -o out --recipe r.json" in shown
    ran = likewise_command("dedup", "notes.jsonl", "-o", "out", "--recipe", "r.json", cwd=folder)
    assert ran.status == 0, ran.err
    summary = json.loads((folder / "out" / "summary.json").read_text())
    assert summary["num_kept"] == 40
    assert summary["num_removed"] == 40
    ran = likewise_command("tune", "notes.jsonl", "--labels", "pairs.csv", "-o", "r.json", cwd=folder)
    assert "likewise dedup notes.jsonl -o out-2 --recipe r.json" in ran.out.decode()


def test_json_says_all_that_was_tried(folder):
    ran = likewise_command("tune", "notes.jsonl", "--labels", "pairs.csv", "-o", "r.json", "--json", "-q", cwd=folder)
    assert ran.status == 0, ran.err
    found = json.loads(ran.out)
    assert Recipe.from_file(folder / "r.json") == Recipe.from_dict(found["recipe"])
    assert len(found["tried"]) == len(grid())
    assert found["held_out"]["f1"]["value"] == 1.0
    assert found["held_out"]["f1"]["low"] < 1
    scores = [one["score"] for one in found["tried"]]
    assert scores == sorted(scores, reverse=True)


def test_a_method_and_tokens_alone(folder):
    labels = read_labels(folder / "pairs.csv")
    assert tune_files(folder / "notes.jsonl", labels, method="simhash").recipe.method == "simhash"
    found = tune_files(folder / "notes.jsonl", labels, method="minhash", tokens="char")
    assert {one.candidate.tokens for one in found.tried} == {"char"}
    with pytest.raises(InvalidParameter, match="minhash, simhash"):
        tune_files(folder / "notes.jsonl", labels, method="bloom")


def test_similarities_are_those_of_a_run(folder):
    """Measured similarities of pairs are those that `likewise pairs` reports with the proposed recipe."""
    labels = read_labels(folder / "pairs.csv")
    for method in ("minhash", "simhash"):
        found = tune_files(folder / "notes.jsonl", labels, method=method)
        (folder / "r.json").write_text(found.recipe.to_json())
        ran = likewise_command("pairs", "notes.jsonl", "-o", "-", "--recipe", "r.json", cwd=folder)
        assert ran.status == 0, ran.err
        pairs = {tuple(sorted(line.split("\t")[:2])) for line in ran.out.decode().splitlines()}
        said = {(label.a, label.b) for label in labels.labels if label.is_duplicate}
        hits = len(pairs & said)
        assert hits / len(said) == pytest.approx(found.chosen.on_labels.recall.value)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("0,1,1\n2,3,1\n", "2 pairs are labeled duplicates and 0 are not"),
        ("x,y,1\n" * 1 + "0,1,1\n", "'x'"),
        ("", "0 pairs are labeled duplicates"),
    ],
)
def test_too_few_labels_are_counted(folder, lines, said):
    (folder / "few.csv").write_text("doc_id_a,doc_id_b,label\n" + lines)
    ran = likewise_command("tune", "notes.jsonl", "--labels", "few.csv", cwd=folder)
    assert ran.status == 2
    assert said in ran.err
    assert not (folder / "recipe.json").exists()


def test_a_file_that_is_no_labels(folder):
    ran = likewise_command("tune", "notes.jsonl", "--labels", "notes.jsonl", cwd=folder)
    assert ran.status == 2
    assert "not a file of labeled pairs" in ran.err
    assert likewise_command("tune", "notes.jsonl", "--labels", "absent.csv", cwd=folder).status == 2


def test_a_recipe_that_cannot_be_written_is_refused_before_the_work(folder):
    for out, said in (("absent/r.json", "directory absent does not exist"), ("notes.jsonl", "is not a recipe")):
        ran = likewise_command("tune", "notes.jsonl", "--labels", "pairs.csv", "-o", out, cwd=folder)
        assert ran.status == 2
        assert said in ran.err


def test_one_document_is_nothing_to_tune(tmp_path):
    (tmp_path / "one.jsonl").write_bytes(jsonl(["some text"]))
    with pytest.raises(InvalidInput, match="at least two"):
        tune_files(tmp_path / "one.jsonl", Labels([]))


def asked_of(ran):
    """Return the pairs that a session showed."""
    lines = [line for line in ran.out.decode().splitlines() if line.startswith("--- ")]
    return [tuple(sorted(line.split(": ")[1].split("  and  "))) for line in lines]


def test_who_skips_most_pairs_is_not_asked_without_end(folder):
    """For four answers at most twelve pairs are shown, and each question shows how many were skipped."""

    def session(answers, questions=4):
        return likewise_command(
            "tune", "notes.jsonl", "-o", "r.json", "--questions", questions, stdin=answers, cwd=folder
        )

    ran = session(b"y\nn\n" + b"s\n" * 50)
    heads = [line for line in ran.out.decode().splitlines() if line.startswith("--- ")]
    assert [head[4:].partition(":")[0] for head in (heads[2], heads[3], heads[-1])] == [
        "3 of 4 (yes 1, no 1)", "3 of 4 (yes 1, no 1, skipped 1)", "3 of 4 (yes 1, no 1, skipped 9)",
    ]  # fmt: skip
    assert (len(heads), len(read_labels(folder / "r.labels.csv"))) == (12, 12)
    told = "2 of 4 answered, of 12 shown, saved in r.labels.csv; the proposal uses these; --questions 44 asks for more."
    assert told in ran.out.decode()
    assert ran.status == 2
    assert ran.err.endswith("10 pairs were skipped; --questions 44 asks for more\n")
    assert asked_of(session(b"")) == []
    # A pair whose answer is undone is asked again, and the suggested command continues the session.
    assert len(asked_of(session(b"s\nu\nn\nq\n", questions=44))) == 4


def test_questions_are_asked_kept_and_gone_on_with(folder):
    def session(answers):
        return likewise_command("tune", "notes.jsonl", "-o", "r.json", "--questions", 4, stdin=answers, cwd=folder)

    ran = session(b"what\ny\nu\nn\ns\n")
    assert ran.status == 2
    assert "answer y, n, s, u or q" in ran.out.decode()
    shown = asked_of(ran)
    # "Yes" was undone, so the pair was shown again; the last one was not answered.
    assert shown == [shown[0], shown[1], shown[0], shown[1], shown[4]]
    assert len(set(shown)) == 3
    assert [line[4:].partition(":")[0] for line in ran.out.decode().splitlines() if line.startswith("--- ")][:4] == [
        "1 of 4 (yes 0, no 0)", "2 of 4 (yes 1, no 0)", "1 of 4 (yes 0, no 0)", "2 of 4 (yes 0, no 1)",
    ]  # fmt: skip
    first = read_labels(folder / "r.labels.csv").labels
    assert [(label.a, label.b) for label in first] == [shown[2], shown[3]]
    assert [label.is_duplicate for label in first] == [False, None]
    ran = session(b"y\ny\ny\n")
    assert asked_of(ran)[0] == shown[4]
    assert ran.status == 2
    assert "3 pairs are labeled duplicates and 1 is not" in ran.err
    assert len(read_labels(folder / "r.labels.csv")) == 5
    # No more questions.
    assert asked_of(session(b"")) == []


def test_control_c_says_that_answers_are_kept(folder):
    with subprocess.Popen(
        [sys.executable, "-m", "likewise", "tune", "notes.jsonl", "-o", "r.json"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
    ) as process:  # fmt: skip
        process.stdin.write(b"y\nn\n")
        process.stdin.flush()
        labels = folder / "r.labels.csv"
        assert wait_until(lambda: labels.exists() and len(read_labels(labels)) == 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, err
    assert err.decode().splitlines()[-1] == (
        "interrupted: 2 of 60 answered, saved in r.labels.csv; repeat the command to continue."
    )


def test_where_nothing_is_left_to_ask_or_take_back_that_is_said(tmp_path):
    (tmp_path / "two.jsonl").write_bytes(jsonl(["one two three four", "one two three five"]))
    ran = likewise_command("tune", "two.jsonl", stdin=b"u\ny\n", cwd=tmp_path)
    assert "no answer from this session to undo" in ran.out.decode()
    assert "1 of 60 answered, saved in recipe.labels.csv; there are no more pairs." in ran.out.decode()
    assert ran.status == 2


def test_standard_input_cannot_be_both(folder):
    ran = likewise_command("tune", "-", stdin=b"{}", cwd=folder)
    assert ran.status == 2
    assert "--labels" in ran.err


def test_documents_cannot_steer_the_terminal(tmp_path):
    texts = ["red \x1b[31m alarm one two three four five six", "red \x1b[31m alarm one two three four five seven"]
    (tmp_path / "a.jsonl").write_bytes(jsonl(texts * 3))
    ran = likewise_command("tune", "a.jsonl", stdin=b"n\nn\nn\n", cwd=tmp_path)
    assert b"--- 1 of" in ran.out
    assert b"\x1b" not in ran.out


def test_a_sample_of_many_holds_neighbors():
    random = np.random.default_rng(0)
    fingerprints = random.integers(0, 2**63, (2000, 2)).astype(np.uint64)
    # Each odd one is near the one before.
    fingerprints[1::2] = fingerprints[::2] ^ np.uint64(5)
    rows = _sample(fingerprints, 200, 0)
    assert len(rows) == 200
    assert (np.diff(rows) > 0).all()
    pairs = np.isin(rows ^ 1, rows).sum() // 2
    # A uniform sample of a tenth would contain about ten.
    assert pairs >= 45
    assert _sample(fingerprints[:150], 200, 0).tolist() == list(range(150))


def test_nearest_is_that_of_a_full_comparison():
    fingerprints = np.random.default_rng(1).integers(0, 2**63, (300, 2)).astype(np.uint64)
    seeds = np.array([0, 7, 299])
    distance = np.bitwise_count(fingerprints[seeds][:, None] ^ fingerprints[None]).sum(axis=2).astype(int)
    distance[np.arange(3), seeds] = 999
    found = _nearest(fingerprints, seeds)
    for row in range(3):
        assert sorted(distance[row][found[row]]) == sorted(distance[row])[:2]


def test_labels_and_other_files_are_not_written_over(folder):
    (folder / "notes.md").write_text("precious")
    (folder / "link.csv").symlink_to(folder / "pairs.csv")
    before = (folder / "pairs.csv").read_bytes()
    for labels, out, said in (
        ("pairs.csv", "pairs.csv", "the file of labels"),
        ("link.csv", "./pairs.csv", "the file of labels"),
        ("pairs.csv", "notes.md", "not a recipe"),
    ):
        ran = likewise_command("tune", "notes.jsonl", "--labels", labels, "-o", out, cwd=folder)
        assert ran.status == 2
        assert said in ran.err
    assert (folder / "pairs.csv").read_bytes() == before
    assert (folder / "notes.md").read_text() == "precious"
    # An earlier recipe is replaced.
    for _ in range(2):
        assert likewise_command("tune", "notes.jsonl", "--labels", "pairs.csv", "-q", cwd=folder).status == 0


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("doc_id_a,doc_id_b,label,who\n0,1,1,anna\n", "column 'who'"),
        ("0,1,1,anna\n", "column 4"),
        ("0,1,1\n0,1,0\n", "contradict"),
    ],
)
def test_answers_are_not_added_where_something_would_be_lost(folder, lines, said):
    (folder / "mine.csv").write_text(lines)
    ran = likewise_command("tune", "notes.jsonl", "--labels", "mine.csv", "--ask", stdin=b"y\n", cwd=folder)
    assert ran.status == 2
    assert said in ran.err
    assert (folder / "mine.csv").read_text() == lines


def test_answers_added_to_a_tsv_are_read_again(folder):
    (folder / "mine.tsv").write_text("0\t1\t1\nx\ty\t0\n")
    ran = likewise_command("tune", "notes.jsonl", "--labels", "mine.tsv", "--ask", stdin=b"n\n", cwd=folder)
    assert "2 of 60 answered" in ran.out.decode()
    found = {(label.a, label.b): label.is_duplicate for label in read_labels(folder / "mine.tsv").labels}
    assert len(found) == 3
    assert found["0", "1"] is True
    assert found["x", "y"] is False


def test_a_threshold_that_no_bands_reach_is_of_exact_sets():
    for candidate in grid(method="minhash"):
        assert [candidate.recipe(setting).method for setting in (0.02, 0.03, 0.5)] == ["shingles"] * 2 + ["minhash"]
        assert candidate.recipe(0.02).threshold == 0.02
        assert candidate.recipe(0.5).short_margin is None


def test_labels_that_nothing_tells_apart_give_no_recipe(folder):
    # No two texts share a sentence.
    with pytest.raises(InvalidInput, match="better than chance"):
        tune_files(folder / "notes.jsonl", read_labels(folder / "pairs.csv"), method="minhash", tokens="sentence")


def test_labels_that_are_the_wrong_way_round_give_no_recipe(folder):
    labels = read_labels(folder / "pairs.csv").labels
    turned = Labels([Label(one.a, one.b, is_duplicate=not one.is_duplicate) for one in labels])
    with pytest.raises(InvalidInput, match="better than chance"):
        tune_files(folder / "notes.jsonl", turned)


def test_too_few_answers_of_a_kind_say_how_to_go_on(folder):
    ran = likewise_command("tune", "notes.jsonl", "-o", "r.json", "--questions", 6, stdin=b"n\n" * 6, cwd=folder)
    assert ran.status == 2
    assert "--questions 46 asks for more" in ran.err
    assert not (folder / "r.json").exists()


def test_a_recipe_that_may_be_mostly_wrong_is_told(folder):
    lines = (folder / "pairs.csv").read_text().splitlines(keepends=True)
    few = [line for line in lines if line.endswith(",1\n")][:5] + [line for line in lines if line.endswith(",0\n")][:9]
    # Four of the others are as similar as duplicates.
    few += [f"{2 * number},{2 * number + 1},0\n" for number in (30, 31, 32, 33)]
    (folder / "few.csv").write_text(lines[0] + "".join(few))
    notes = tune_files(folder / "notes.jsonl", read_labels(folder / "few.csv")).notes
    assert any("precision may be as low as" in note for note in notes)
    notes = tune_files(folder / "notes.jsonl", read_labels(folder / "pairs.csv")).notes
    assert not any("precision may be as low as" in note for note in notes)


def test_the_command_that_is_shown_runs_as_it_stands(folder):
    rows = (json.loads(line) for line in (folder / "notes.jsonl").read_text().splitlines())
    lines = (json.dumps({"no": row["id"], "body": row["text"]}) + "\n" for row in rows)
    (folder / "my notes.jsonl").write_text("".join(lines))
    (folder / "stop.txt").write_text("the\n")
    reading = ("--text-field", "body", "--id-field", "no", "--stop-words", "stop.txt")
    ran = likewise_command("tune", "my notes.jsonl", "--labels", "pairs.csv", "-o", "my r.json", *reading, cwd=folder)
    assert ran.status == 0, ran.err
    shown = shlex.split(ran.out.decode().splitlines()[-1])
    assert shown[:3] == ["likewise", "dedup", "my notes.jsonl"]
    ran = likewise_command(*shown[1:], cwd=folder)
    assert ran.status == 0, ran.err
    assert json.loads((folder / "out" / "summary.json").read_text())["num_removed"] == 40


def test_labels_of_an_id_that_several_documents_have_are_left_out(folder):
    whole = (folder / "notes.jsonl").read_text()
    (folder / "notes.jsonl").write_text(whole + whole.splitlines(keepends=True)[0])
    run = FileRun(duplicate_ids="allow")
    found = tune_files(folder / "notes.jsonl", read_labels(folder / "pairs.csv"), run=run)
    assert (found.num_duplicates, found.num_others) == (30, 28)
    assert "2 labels with ids that several documents share were ignored" in found.notes


def test_what_is_shown_while_asking_names_its_measure_and_only_options_that_are_there(tmp_path):
    words = [f"w{i} x{i}" for i in range(30)]
    texts = [" ".join(words), " ".join(word if i % 2 else f"other{i}" for i, word in enumerate(words))]
    (tmp_path / "a.jsonl").write_bytes(jsonl(texts))
    ran = likewise_command("tune", "a.jsonl", "--method", "simhash", stdin=b"", cwd=tmp_path)
    shown = ran.out.decode()
    assert "SimHash, cosine" in shown
    assert "more differences)" in shown
    assert "--max-diff" not in shown


def test_labels_of_the_sample_are_found_in_it_by_their_ids(folder):
    """The index of a labeled pair among all pairs of the sample refers to the same two documents."""
    labels = read_labels(folder / "pairs.csv")
    with open_tuner(folder / "notes.jsonl", labels) as tuner:
        pairs = tuner._pairs
        places = np.array([[tuner._place[label.a], tuner._place[label.b]] for label in labels.labels])
        numbers = tuner._numbers_in_sample(places)
        assert (np.sort(pairs[numbers], axis=1) == np.sort(places, axis=1)).all()
        assert (tuner._numbers_in_sample(places[:, ::-1]) == numbers).all()


def test_in_memory_it_is_as_with_files(folder):
    rows = [json.loads(line) for line in (folder / "notes.jsonl").read_text().splitlines()]
    table = pa.Table.from_pylist(rows)
    labels = read_labels(folder / "pairs.csv")
    frame = pa.table(
        {
            "id_a": [label.a for label in labels.labels],
            "id_b": [label.b for label in labels.labels],
            "label": [label.is_duplicate for label in labels.labels],
        }
    )
    expected = tune_files(folder / "notes.jsonl", labels, method="minhash", tokens="auto").to_dict()
    for texts, given in ((table, frame), (table.to_reader(), folder / "pairs.csv")):
        found = likewise.tune(texts, given, method="minhash", tokens="auto", threads=1)
        assert found.to_dict() == expected
    more = pa.concat_tables([table, pa.table({"id": ["none"], "text": pa.nulls(1, pa.string())})])
    assert likewise.tune(more, labels, method="minhash", tokens="auto", nulls="drop").to_dict() == expected
    with pytest.raises(InvalidInput, match='nulls="drop"'):
        likewise.tune(more, labels)
    with pytest.raises(InvalidInput, match="at least 5 of each"):
        likewise.tune(table, frame.slice(0, 3), method="minhash", tokens="auto")
    assert likewise.dedup(table, found.recipe).summary["recipe_id"] == found.recipe.recipe_id


def test_own_tokens_and_weights_with_each_radius(tmp_path):
    random = np.random.default_rng(5)
    documents = []
    for _ in range(30):
        words = [(WORDS[at], int(random.integers(1, 6))) for at in random.choice(100, 12, replace=False)]
        documents += [words, [*words[: int(random.integers(8, 12))], ("other", 2)]]
    lines = (json.dumps({"id": str(row), "words": words}) + "\n" for row, words in enumerate(documents))
    (tmp_path / "words.jsonl").write_text("".join(lines))
    labels = [(str(row), str(row + 1), 1 - row % 2) for row in range(50)]
    (tmp_path / "pairs.csv").write_text(
        "".join(f"{a},{b},{label}\n" for a, b, label in [("id1", "id2", "label"), *labels])
    )
    own = ("--tokens-field", "words", "--tokenizer", "cut 1", "--weights", "own")
    asked = ("tune", "words.jsonl", "--labels", "pairs.csv", "-o", "r.json", *own)
    shown = likewise_command(*asked, cwd=tmp_path).out.decode()
    found = json.loads(likewise_command(*asked, "--json", "-q", cwd=tmp_path).out)

    # A token that occurs as often as it weighs has this weight by count.
    texts = [" ".join(word for word, weight in words for _ in range(weight)) for words in documents]
    rules = oracle.Rules("user", 1, "count")
    prints = [simhash(oracle.features(text, rules, lambda text, _: text.split()).weights, 64) for text in texts]
    near = np.array([(prints[int(a)] ^ prints[int(b)]).bit_count() for a, b, _ in labels])
    sets = [{word for word, _ in words} for words in documents]
    alike = np.array([len(one & other) / len(one | other) for one, other in pairwise(sets)][:50])
    is_copy = np.array([label for *_, label in labels], bool)
    for name, far in (("", alike < 0.8), (", short threshold 0", np.zeros(50, bool))):
        one = next(one for one in found["tried"] if one["name"].endswith(f"64 bits; user 1, weights own{name}"))
        expected = []
        for k in range(20, -1, -1):
            taken = (near <= k) & ~far
            if taken.any():
                expected.append([1 - k / 64, is_copy[taken].mean(), taken[is_copy].mean()])
        assert np.allclose(one["curve"], expected, rtol=0, atol=1e-12)
        assert len(expected) > 15
    best = next(one for one in found["tried"] if one["measure"] == "hamming")
    precision, recall = next((precision, recall) for at, precision, recall in best["curve"] if at == 1 - 3 / 64)
    assert f"\n   3  {precision:9.3f} {recall:7.3f}\n" in shown
    assert shown.rstrip().endswith("likewise dedup words.jsonl --tokens-field words -o out --recipe r.json")
    proposal = likewise.tune(documents, labels, tokenizer="cut 1", weights="own")
    assert proposal.recipe == Recipe.from_file(tmp_path / "r.json")
    ran = likewise_command(
        "dedup", "words.jsonl", "--tokens-field", "words", "-o", "out", "--recipe", "r.json", cwd=tmp_path
    )
    assert ran.status == 0, ran.err


def test_own_tokens_need_the_name_of_their_tokenizer(folder):
    ran = likewise_command("tune", "notes.jsonl", "--labels", "pairs.csv", "--tokens-field", "words", cwd=folder)
    assert (ran.status, "tokenizer name" in ran.err) == (2, True)
    with pytest.raises(InvalidParameter, match="tuning chooses them, except own"):
        grid(weights="idf")
