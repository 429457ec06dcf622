"""Weight tables in other processes and next to recipes, and warnings about their counts."""

import copy
import json
import pickle

import pytest

import likewise
from likewise.batch.pair_files import pair_files, sketch_files
from likewise.batch.read import ingest as weighing
from likewise.errors import InvalidParameter
from likewise.progress import Warned
from likewise.stages.weights import count_weights, read_table
from tests import command
from tests.command import likewise_command

TEXTS = [
    f"the annual report of the committee {word} and {other}" for word in ("red", "blue") for other in ("one", "two")
]


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_bytes(command.jsonl(TEXTS))
    return path


def test_tables_and_their_recipes_go_to_other_processes():
    for table in (count_weights(TEXTS), likewise.Weights.from_terms({"flood": 5, "the": 0})):
        for recipe in (likewise.Recipe.minhash(weights=table), likewise.Recipe.simhash(weights=table, within=3)):
            again = pickle.loads(pickle.dumps(recipe))
            assert (again, again.table, copy.copy(again)) == (recipe, table, recipe)
            assert again.table.rules == table.rules
            made, expected = (likewise.sketch(TEXTS, some).array for some in (again, recipe))
            assert (made == expected).all()
    assert pickle.loads(pickle.dumps(table)).num_listed == 2


def test_the_rules_of_a_table_do_not_change():
    with pytest.raises(TypeError):
        count_weights(TEXTS).rules["shingle"] = 9


def warnings_of(do, *arguments, **options):
    events = []
    do(*arguments, progress=events.append, **options)
    return [event.message for event in events if isinstance(event, Warned)]


def test_counts_of_a_sketch_and_of_nothing_are_doubted_wherever_they_are_made(texts, tmp_path, monkeypatch):
    recipe = likewise.Recipe.minhash(weights="idf")
    assert not warnings_of(pair_files, texts, tmp_path / "p.tsv", recipe)
    monkeypatch.setattr(weighing, "doubts_of", lambda table: [f"{table.num_documents} doubts"])
    for do, arguments in (
        (pair_files, (texts, tmp_path / "p.tsv", recipe)),
        (sketch_files, (texts, recipe)),
        (likewise.dedup_files, (texts, tmp_path / "out", recipe)),
        (likewise.pairs, (TEXTS, recipe)),
        (likewise.dedup, (TEXTS, recipe)),
    ):
        assert warnings_of(do, *arguments) == ["4 doubts"]


def test_doubts():
    assert not weighing.doubts_of(count_weights(TEXTS))
    for few in ([], [""], ["one fine day"], ["one fine day"] * 3):
        (doubt,) = weighing.doubts_of(count_weights(few))
        assert "all features look equally rare" in doubt
    many = [" ".join(f"w{i}x{j}" for j in range(400)) for i in range(1000)]
    (doubt,) = weighing.doubts_of(
        count_weights(many, likewise.Recipe.minhash(weights="idf", shingle=1), memory_bytes="17MB")
    )
    assert "too high" in doubt


@pytest.mark.parametrize("quiet", [True, False])
def test_json_does_not_hide_a_doubt(tmp_path, quiet):
    path = tmp_path / "one.jsonl"
    path.write_bytes(command.jsonl(["one fine day"]))
    ran = likewise_command("weights", path, "-o", tmp_path / "w", "--json", *(["--quiet"] if quiet else []))
    assert json.loads(ran.out)["num_documents"] == 1
    assert ran.err.count("all features look equally rare") == 1


def test_weights_named_beside_a_recipe_replace_its_table(texts, tmp_path):
    def run(*arguments):
        return likewise_command("dedup", other, "-o", tmp_path / "two", "--overwrite", *arguments)

    first = likewise.dedup_files(texts, tmp_path / "one", likewise.Recipe.minhash(weights="idf"))
    summary = tmp_path / "one" / "summary.json"
    other = tmp_path / "other.jsonl"
    others = [*TEXTS, f"{TEXTS[0]} something else"]
    other.write_bytes(command.jsonl(others))
    kept = run("--recipe", summary)
    assert kept.status == 0, kept.err
    assert json.loads((tmp_path / "two" / "summary.json").read_text())["recipe"] == first["recipe"]
    # Without the table that the run stored, its weights are not known.
    (tmp_path / "one" / "recipe").rename(tmp_path / "stored")
    refused = run("--recipe", summary)
    assert refused.status != 0
    assert "set weights again" in refused.err
    assert run("--recipe", summary, "--weights", "idf").status == 0
    counted = json.loads((tmp_path / "two" / "summary.json").read_text())["recipe"]
    assert counted["weights_id"] == count_weights(others).weights_id
    assert {**counted, "weights_id": first["recipe"]["weights_id"]} == first["recipe"]
    count_weights(TEXTS).write(tmp_path / "w")
    for named in (tmp_path / "w", f"idf:{tmp_path / 'w'}"):
        assert run("--recipe", summary, "--weights", named).status == 0
        again = json.loads((tmp_path / "two" / "summary.json").read_text())["recipe"]
        assert again["weights_id"] == count_weights(TEXTS).weights_id
    for named in ("none", "log-count-idf", f"log-count-idf:{tmp_path / 'w'}"):
        refused = run("--recipe", summary, "--weights", named)
        assert refused.status == 2
        assert "--weights" in refused.err


def test_what_has_no_place_is_refused_by_the_name_that_was_used(texts, tmp_path):
    count_weights(TEXTS).write(tmp_path / "w")
    ran = likewise_command("dedup", texts, "-o", tmp_path / "out", "--method", "exact", "--weights", tmp_path / "w")
    assert ran.status == 2
    assert "--weights" in ran.err
    assert "--table" not in ran.err
    ran = likewise_command("weights", texts, "-o", "-")
    assert ran.status == 2
    assert "--out" in ran.err or "-o" in ran.err
    with pytest.raises(InvalidParameter, match="weights"):
        likewise.Recipe.from_options("exact", table=count_weights(TEXTS))


@pytest.mark.parametrize(("name", "tab"), [("l.tsv", "\t"), ("l.csv", ",")])
def test_only_line_feeds_end_the_lines_of_a_lexicon(tmp_path, name, tab):
    path = tmp_path / name
    lines = ["term{tab}weight", "flood\u2028gate{tab}5", "spring\x85tide{tab}4", "", "ebb{tab}0003"]
    path.write_bytes("\r\n".join(lines).format(tab=tab).encode())
    expected = likewise.Weights.from_terms({"flood gate": 5, "spring tide": 4, "ebb": 3})
    assert read_table(path) == expected


def test_words_of_weight_0_leave_out_what_is_made_of_them_alone():
    table = likewise.Weights.from_terms({"of": 0, "the": 0, "new york": 5})
    recipe = likewise.Recipe.minhash(weights=table, shingle=2)
    from likewise.stages.features import features

    # "of the" is dropped; "the end" is kept, at the weight of "end".
    assert features(["end of the end"], recipe).weights.tolist() == [1, 1]
    assert sorted(features(["in new york the end"], recipe).weights.tolist()) == [1, 1, 1, 5]
