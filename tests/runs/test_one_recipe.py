"""What decided is stored with a run, and every view of it shows and uses the same recipe."""

import html
import json
import random
import re
import shutil

import pyarrow.parquet as pq
import pytest

import likewise
from likewise import Recipe
from likewise.batch.read.ingest import weigh_files
from likewise.runs.diff import compare_runs
from likewise.runs.pair import compare_in_run
from likewise.runs.report import report
from likewise.runs.viewing.view import RunView
from tests.command import jsonl, likewise_command
from tests.golden.texts import made_up
from tests.runs.viewing.runs import make_named_run


def pages(num=150):
    """Return rows of documents that share words, some with an edited copy: enough for weights and a threshold."""
    draw, rows = random.Random(3), []
    menu = made_up(40, 999)
    for number in range(num):
        words = f"{menu} {made_up(60, number)}".split()
        rows.append({"id": f"d{number}", "text": " ".join(words), "site": f"s{number % 3}"})
        if number % 5 == 0:
            words[draw.randrange(45, 100)] = "changed"
            rows.append({"id": f"d{number}-copy", "text": " ".join(words).upper(), "site": f"s{number % 3}"})
    return rows


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pages()))
    likewise.dedup_files(folder / "in.jsonl", folder / "out")
    return folder / "out"


def summary_of(run):
    return json.loads((run / "summary.json").read_text())


def shown(page):
    """Return the visible words of a page."""
    return html.unescape(re.sub(r"<[^>]*>", " ", page))


def expected_facts(summary):
    recipe = summary["recipe"]
    return [
        f"{recipe['measure']} ≥ {recipe['threshold']} + {recipe['short_margin']} / √",
        f"{recipe['tokens']} tokens, {recipe['shingle']} per feature, weights {recipe['weights']}",
        f"{recipe['bands']} bands of {recipe['rows']} rows, {recipe['num_slots']} slots",
        summary["recipe_id"],
    ]


def test_every_view_shows_the_recipe_of_the_summary(run):
    """Report, page, audit, comparison and the differences between runs, for a default run."""
    summary = summary_of(run)
    recipe = summary["recipe"]
    assert (recipe["weights"], recipe["short_margin"]) == ("idf", 1.0)
    texts = [report(run)]
    testing = pytest.importorskip("starlette.testclient", reason="needs likewise[server]")
    from likewise.service import Settings, create_app
    from tests.waiting import LIMIT_S

    app = create_app(run, Settings(has_request_log=False, deadline_s=LIMIT_S))
    with pytest.MonkeyPatch.context() as patch, testing.TestClient(app, base_url="http://127.0.0.1") as client:
        patch.setattr("likewise.service.page.routes._WAIT_S", LIMIT_S)
        texts.append(client.get("/look/out/").text)
        group = client.get("/look/out/groups/1").text
    for text in texts:
        for fact in expected_facts(summary):
            assert fact in shown(text)
    assert f"({recipe['threshold']:g} + " in shown(group) or "all features are equal" in group
    audited = likewise_command("audit", run, "--json")
    assert audited.status == 0, audited.err
    assert json.loads(audited.out)["recipe"] == recipe
    row = pq.read_table(run / "removed.parquet").to_pylist()[0]
    compared = likewise_command("compare", run, "--ids", row["doc_id"], row["kept_id"], "--json")
    assert compared.status == 0, compared.err
    assert json.loads(compared.out)["recipe"] == recipe
    with RunView(run) as view:
        assert view.stated.to_dict() == view.recipe.to_dict() == recipe
        assert view.note is None
    again = likewise.dedup_files(run.parent / "in.jsonl", run.parent / "again", Recipe.from_file(run / "summary.json"))
    assert again["recipe"] == recipe
    assert compare_runs(run, run.parent / "again").is_same


def test_a_run_without_its_weights_still_shows_its_recipe(run, tmp_path):
    lost = tmp_path / "lost"
    lost.mkdir()
    for name in ("summary.json", "removed.parquet"):
        (lost / name).write_bytes((run / name).read_bytes())
    facts = summary_of(run)
    facts["input_directory"] = str(tmp_path / "gone")
    (lost / "summary.json").write_text(json.dumps(facts))
    text = shown(report(lost))
    for fact in expected_facts(facts):
        assert fact in text
    assert "weights of the run are not available" in text or "--inputs" in text


def test_a_run_explains_its_own_evidence(run):
    """Each removal, compared by the run's recipe and weights, has the similarity of its evidence."""
    measure = summary_of(run)["recipe"]["measure"]
    rows = pq.read_table(run / "removed.parquet").to_pylist()
    # A changed word among the first may be a name.
    assert len(rows) > 25
    for row in rows[::6]:
        found, evidence = compare_in_run(run, (row["doc_id"], row["kept_id"]))
        assert getattr(found.measures, measure) == row["similarity"] == evidence["similarity"]
        assert found.matches
        assert (found.required, found.penalty) == (evidence["required"], evidence["penalty"])
        assert found.differs_in == evidence["differs_in"]
        assert compare_in_run(run, (row["kept_id"], row["doc_id"]))[1] == evidence
    row = rows[0]
    ran = likewise_command("compare", run, "--ids", row["doc_id"], row["kept_id"])
    assert ran.status == 0, ran.err
    told = ran.out.decode().splitlines()[-1]
    assert told.startswith(
        f"evidence: {row['doc_id']} was removed for {row['kept_id']}: {measure} {row['similarity']:.4f}, "
        f"required {row['required']:.4f} ("
    )
    assert told.endswith(f", differs in {row['differs_in'] or 'other words'}")
    ran = likewise_command("compare", run, "--ids", "d1", "d2")
    assert ran.out.decode().splitlines()[-1] == "evidence: the run removed neither document for the other"
    refused = likewise_command("compare", run, "--ids", "d1", "d2", "--threshold", "0.5")
    assert (refused.status, "--threshold" in refused.err) == (2, True)
    refused = likewise_command("compare", run, "--ids", "d1", "nobody")
    assert (refused.status, "no document with id 'nobody'" in refused.err) == (2, True)


def test_documents_that_a_run_keeps_as_siblings_do_not_match_in_a_comparison(tmp_path):
    run = make_named_run(tmp_path)
    lines = (run.parent / "in.jsonl").read_text().splitlines()
    texts = {row["id"]: row["text"] for row in map(json.loads, lines)}
    kept = [doc_id for doc_id in texts if doc_id not in pq.read_table(run / "removed.parquet")["doc_id"].to_pylist()]
    recipe = Recipe.from_file(run / "summary.json")
    plain = recipe.replace(siblings=None)
    pairs = [(a, b) for a in kept[:40] for b in kept[:40] if a < b]
    siblings = [pair for pair in pairs if likewise.compare(*map(texts.get, pair), plain).matches]
    assert siblings
    for a, b in siblings[:10]:
        found = likewise.compare(texts[a], texts[b], recipe)
        assert not found.matches
        assert found.penalty > 0
        assert found.measures.jaccard < found.required
        assert {"lead", "slots"} & set(found.differs_in.split(","))
    ran = likewise_command("compare", run, "--ids", *siblings[0])
    assert ran.out.decode().splitlines()[2].startswith("no match by jaccard >= ")
    assert "for different names)" in ran.out.decode().splitlines()[2]


def test_a_removal_against_another_run_is_explained(run, tmp_path):
    (tmp_path / "new.jsonl").write_text(json.dumps({"id": "new", "text": pages()[0]["text"] + " more"}) + "\n")
    summary = likewise.dedup_files(tmp_path / "new.jsonl", tmp_path / "out", against=[run])
    assert summary["num_removed"] == 1
    assert summary["recipe"] == summary_of(run)["recipe"]
    found, evidence = compare_in_run(tmp_path / "out", ("new", "d0"))
    assert found.measures.jaccard == evidence["similarity"]


def test_a_recipe_is_complete_on_other_input(run, tmp_path):
    (tmp_path / "other.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pages()[:7]))
    ran = likewise_command("dedup", tmp_path / "other.jsonl", "-o", tmp_path / "out", "--recipe", run / "summary.json")
    assert ran.status == 0, ran.err
    assert summary_of(tmp_path / "out")["recipe_id"] == summary_of(run)["recipe_id"]


@pytest.mark.parametrize("name", ["stop_words", "dictionary", "lexicon"])
def test_word_lists_and_lexicons_are_stored_too(name, tmp_path):
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pages(20)))
    options = {
        "stop_words": {"stop_words": ["ka", "lo"]},
        "dictionary": {"tokens": "chinese", "dictionary": ["云计算"]},
        "lexicon": {"weights": likewise.Weights.from_terms({"ka": 5, "lo": 0}), "shingle": 2},
    }[name]
    recipe = Recipe.minhash(0.6, **options)
    likewise.dedup_files(tmp_path / "in.jsonl", tmp_path / "out", recipe)
    stored = Recipe.from_file(tmp_path / "out" / "summary.json")
    assert stored == recipe.resolve()
    assert not stored.is_incomplete
    audited = likewise_command("audit", tmp_path / "out")
    assert audited.status == 0, audited.err
    assert likewise_command("compare", tmp_path / "out", "--ids", "d0", "d0-copy").status == 0


def test_an_audit_uses_approximate_counts_that_a_run_stored(tmp_path):
    """Counts that do not fit in the memory of a run cannot be counted again in other memory."""
    texts = [" ".join(f"w{i}x{j}" for j in range(400)) for i in range(1000)]
    texts += [f"{text} more" for text in texts[:5]]
    path = tmp_path / "in.jsonl"
    path.write_bytes(jsonl(texts))
    table = weigh_files(path, Recipe.minhash(weights="idf", shingle=1), memory_bytes="17MB")
    assert not table.is_exact
    likewise.dedup_files(path, tmp_path / "out", Recipe.minhash(0.5, weights=table, shingle=1))
    audited = likewise_command("audit", tmp_path / "out", "--json")
    assert audited.status == 0, audited.err
    assert json.loads(audited.out)["run"]["recipe_id"] == summary_of(tmp_path / "out")["recipe_id"]


def test_a_comparison_names_what_a_run_lacks(run, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(run, moved)
    for lost in ("weights.lww", "."):
        gone = moved / "recipe" / lost
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
        done = likewise_command("compare", moved, "--ids", "d0-copy", "d0")
        told = (
            "The weights of the run are not available, because its directory recipe is missing or incomplete; copy it"
        )
        assert (done.status, f"{told} back, or repeat the run" in " ".join(done.err.split())) == (2, True), done.err
    facts = summary_of(run) | {"input_directory": str(tmp_path / "gone")}
    shutil.copytree(run / "recipe", moved / "recipe")
    (moved / "summary.json").write_text(json.dumps(facts))
    done = likewise_command("compare", moved, "--ids", "d0-copy", "d0")
    assert (done.status, "if the inputs were moved, add --inputs DIRECTORY" in done.err) == (2, True), done.err
    done = likewise_command("compare", moved, "--ids", "d0-copy", "d0", "--inputs", run.parent)
    assert done.status == 0, done.err


def test_a_damaged_table_is_told(run, tmp_path):
    (tmp_path / "recipe").mkdir()
    (tmp_path / "summary.json").write_bytes((run / "summary.json").read_bytes())
    (tmp_path / "recipe" / "weights.lww").write_bytes(b"nothing")
    with pytest.raises(likewise.InvalidInput, match="the stored recipe is damaged"):
        Recipe.from_file(tmp_path / "summary.json")


def test_what_the_recipe_ignores_is_not_marked(run):
    """Copies are in upper case and have one changed word, which alone is marked."""
    page = report(run)
    assert set(re.findall("<del>(.*?)</del>", page)) == {"CHANGED"}
    assert page.count("<ins>") == page.count("<del>") == 20
