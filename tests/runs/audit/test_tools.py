"""Audits of the output of other tools, against plain sets."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise import InvalidInput, InvalidParameter, Recipe, dedup_files
from likewise.job.reading import FileRun
from likewise.runs.audit import audit_output, read_certificate
from tests.command import likewise_command
from tests.runs.audit.corpora import failed, graded, resembling

RECIPE = Recipe.minhash(0.5)
THRESHOLD = 0.5


def shingles(text):
    words = text.split()
    return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}


class Tool:
    """A careless tool: it misses some duplicates, and removes some documents without any."""

    def __init__(self, folder, num=240, seed=3, share_wrong=0.05):
        self.folder, self.texts = folder, graded(num, seed)
        random = np.random.default_rng(seed)
        self.pairs = resembling(self.texts, THRESHOLD)
        self.removed = {b for a, b in self.pairs if random.random() < 0.6}
        self.removed |= set(np.flatnonzero(random.random(num) < share_wrong).tolist())
        self.kept = sorted(set(range(num)) - self.removed)
        # The truth by plain sets.
        sets = [shingles(text) for text in self.texts]
        self.nearest = {
            row: max((len(sets[row] & sets[k]) / len(sets[row] | sets[k]), -k) for k in self.kept)
            for row in self.removed
        }
        self.unmatched = {row for row, (similarity, _) in self.nearest.items() if similarity < THRESHOLD}
        self.left = {(a, b) for a, b in self.pairs if a not in self.removed and b not in self.removed}
        self.left_documents = {b for _, b in self.left}
        num_right = len(self.removed) - len(self.unmatched)
        self.recall = num_right / (num_right + len(self.left_documents))
        self.inputs, self.output = folder / "in.jsonl", folder / "kept.jsonl"
        self.write(self.inputs, range(num))
        self.write(self.output, self.kept)

    def write(self, path, rows, with_ids=True):
        lines = [{"id": f"d{row}"} if with_ids else {} for row in rows]
        texts = [self.texts[row] for row in rows]
        path.write_text(
            "".join(json.dumps({**line, "text": text}) + "\n" for line, text in zip(lines, texts, strict=True))
        )
        return path

    def audit(self, **options):
        return audit_output(self.inputs, self.output, RECIPE, **{"num_sampled": 10_000, **options})


@pytest.fixture(scope="module")
def tool(tmp_path_factory):
    return Tool(tmp_path_factory.mktemp("tool"))


def check_census(found, tool):
    """Check that the figures of an audit of all documents are those of plain sets."""
    facts = found.certificate
    assert facts["num_unmatched_seen"] == len(tool.unmatched) > 5
    assert found.unmatched.is_exact
    assert found.unmatched.value == pytest.approx(len(tool.unmatched) / len(tool.removed), abs=1e-12)
    assert facts["estimated"]["num_unmatched"] == len(tool.unmatched)
    assert facts["estimated"]["num_left_pairs"] == len(tool.left) > 5
    assert facts["estimated"]["num_left_documents"] == len(tool.left_documents)
    assert found.recall.removals.value == pytest.approx(tool.recall, abs=1e-12)
    assert found.recall.num_pairs == len(tool.pairs)


def test_a_census_counts_what_plain_sets_count(tool):
    found = tool.audit()
    check_census(found, tool)
    assert failed(found) == ["every removed document of the sample matches a kept one"]
    assert not found.passed
    worst = found.certificate["worst_removals"]
    assert {one["row"] for one in worst} == tool.unmatched
    for one in worst:
        similarity, kept = tool.nearest[one["row"]]
        assert one["doc_id"] == f"d{one['row']}"
        if similarity < 0.1:
            assert (one["similarity"], one["nearest_kept_id"], one["is_below"]) == (None, None, True)
        else:
            assert (one["similarity"], one["nearest_kept_row"]) == (pytest.approx(similarity), -kept)
    assert [one["similarity"] or 0.0 for one in worst] == sorted(one["similarity"] or 0.0 for one in worst)
    # Copies of one text count as one in the list.
    listed = {tuple(sorted((pair["row_a"], pair["row_b"]))) for pair in found.certificate["left_pairs"]}
    assert listed
    assert listed <= tool.left


def test_documents_without_ids_are_found_by_their_texts(tool, tmp_path):
    """The same figures without ids on either side, in other formats, order, case and whitespace."""
    kept = tmp_path / "kept.parquet"
    changed = ["  " + tool.texts[row].upper().replace(" ", "\n") for row in reversed(tool.kept)]
    pq.write_table(pa.table({"text": changed}), kept)
    for inputs in (tool.inputs, tool.write(tmp_path / "in.jsonl", range(len(tool.texts)), with_ids=False)):
        found = audit_output(inputs, kept, RECIPE, num_sampled=10_000)
        assert found.certificate["identified_by"] == "text"
        facts = found.certificate["estimated"]
        # Which of several equal texts was kept is unknown, but changes no figure.
        assert facts["num_left_pairs"] == len(tool.left)
        assert facts["num_unmatched"] == len(tool.unmatched)
    by_text = audit_output(tool.inputs, tool.output, RECIPE, run=FileRun(id_field="none"), num_sampled=10_000)
    assert by_text.certificate["identified_by"] == "text"
    assert by_text.recall.removals.value == pytest.approx(tool.recall)
    assert tool.audit().certificate["identified_by"] == "id"


def write_csv(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def test_clusters_show_the_chains_that_were_closed(tmp_path):
    """Connected components by plain sets; the first document of each is kept, whatever the others resemble."""
    tool = Tool(tmp_path, share_wrong=0.0)
    cluster = list(range(len(tool.texts)))
    for a, b in sorted(tool.pairs):
        low, high = sorted((cluster[a], cluster[b]))
        cluster = [low if one == high else one for one in cluster]
    tool.kept = sorted(set(cluster))
    removed = sorted(set(range(len(tool.texts))) - set(tool.kept))
    tool.write(tool.output, tool.kept)
    table = write_csv(tmp_path / "clusters.csv", ["id", "cluster"], [(f"d{i}", c) for i, c in enumerate(cluster)])
    found = tool.audit(clusters=table)
    chained = {row for row in removed if (cluster[row], row) not in tool.pairs}
    assert len(chained) > 3
    chains = found.certificate["chains"]
    assert (chains["num_checked"], chains["num_unmatched"]) == (len(removed), len(chained))
    assert {one["doc_id"] for one in chains["worst_pairs"]} == {f"d{row}" for row in chained}
    for one in chains["worst_pairs"]:
        a, b = (shingles(tool.texts[int(one[name][1:])]) for name in ("doc_id", "kept_id"))
        assert one["similarity"] == pytest.approx(len(a & b) / len(a | b))
    assert "every removed document matches a kept document of its cluster" in failed(found)
    assert "every removed document is in a cluster with a kept one" not in failed(found)
    # A cluster with nothing kept.
    lost = cluster[removed[0]]
    tool.write(tool.output, [row for row in tool.kept if row != lost])
    assert "every removed document is in a cluster with a kept one" in failed(tool.audit(clusters=table))


def test_a_table_of_removals_is_compared_with_what_was_kept(tool, tmp_path):
    rows = [(row, -tool.nearest[row][1]) for row in sorted(tool.removed)]
    listed = [(f"d{row}", f"d{kept}") for row, kept in rows]
    found = tool.audit(removed=write_csv(tmp_path / "removed.csv", ["doc_id", "kept_id"], listed))
    chains = found.certificate["chains"]
    assert (chains["num_checked"], chains["num_unmatched"]) == (len(rows), len(tool.unmatched))
    assert "the documents listed as removed are those that were not kept" not in failed(found)
    # In other formats, without kept ids, with one removal missing and one kept document listed.
    lines = "".join(json.dumps({"id": doc_id}) + "\n" for doc_id, _ in listed[1:])
    (tmp_path / "removed.jsonl").write_text(lines + json.dumps({"id": f"d{tool.kept[0]}"}) + "\n")
    found = tool.audit(removed=tmp_path / "removed.jsonl")
    (check,) = (check for check in found.checks if "listed as removed" in check.name)
    assert (check.num_failed, "chains" in found.certificate) == (2, False)
    # Without ids, documents are named by their row numbers; in Parquet these are integers.
    pq.write_table(
        pa.table({"id": [row for row, _ in rows], "kept_id": [kept for _, kept in rows]}), tmp_path / "r.parquet"
    )
    found = tool.audit(removed=tmp_path / "r.parquet", run=FileRun(id_field="none"))
    assert found.certificate["chains"]["num_checked"] + sum(
        check.num_failed for check in found.checks if "listed as removed" in check.name
    ) >= len(rows)
    # A removal for a document that was itself not kept has no kept match.
    other = [(listed[0][0], listed[1][0]), *listed[1:]]
    found = tool.audit(removed=write_csv(tmp_path / "other.csv", ["id", "kept_id"], other))
    assert listed[0][0] in {one["doc_id"] for one in found.certificate["chains"]["worst_pairs"]}


def test_other_text_under_an_id_is_seen(tool, tmp_path):
    rows = [json.loads(line) for line in tool.output.read_text().splitlines()]
    rows[4]["text"] += " and more"
    changed = tmp_path / "changed.jsonl"
    changed.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = audit_output(tool.inputs, changed, RECIPE)
    (check,) = (check for check in found.checks if "same text as the input" in check.name)
    assert (check.num_failed, check.failures) == (1, ("changed.jsonl:5",))


def lines_of(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


ABC = [{"id": name, "text": f"the text of {name} and some more words"} for name in "abc"]


@pytest.mark.parametrize(
    ("inputs", "kept", "error"),
    [
        (
            ABC,
            [*ABC[:1], {"id": "z", "text": "x"}],
            r"kept.jsonl:2: the inputs have no document with the id .*\(1 in total\)",
        ),
        ([*ABC, ABC[0]], ABC[:1], r"in.jsonl:4: two documents of the inputs have this id .*in.jsonl:1"),
        (ABC, [ABC[0], ABC[0]], r"kept.jsonl:2: two documents of the kept files have this id"),
        (ABC, [], "kept.jsonl: the kept files contain no documents"),
        ([], ABC, "in.jsonl: the inputs contain no documents"),
        ([*ABC, {"text": "x"}], ABC[:1], "in.jsonl:4: this document of the inputs has no id, but others do"),
        (ABC, [ABC[0], {"text": "x"}], "kept.jsonl:2: this document of the kept files has no id"),
        (
            ABC,
            [{"text": ABC[0]["text"]}] * 2,
            r"kept.jsonl:2: the text of this kept document is not in the inputs, .* \(1 in total\)",
        ),
        (ABC, [{"text": "another text"}], r"kept.jsonl:1: the text of this kept document is not in the inputs"),
        ([*ABC, {"id": "d", "text": 5}], ABC[:1], r"in.jsonl:4: .*"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(tmp_path, inputs, kept, error):
    (tmp_path / "in.jsonl").write_text(lines_of(*inputs))
    (tmp_path / "kept.jsonl").write_text(lines_of(*kept))
    with pytest.raises(InvalidInput, match=error):
        audit_output(tmp_path / "in.jsonl", tmp_path / "kept.jsonl", RECIPE)


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("t.csv", "id,cluster\na,1\nzz,1\n", "no document with the id 'zz'"),
        ("t.csv", "id,cluster\na,1\na,1\n", "'a' is listed twice"),
        ("t.csv", "id,group\na,1\n", r"no column 'cluster' \(found: id, group\)"),
        ("t.csv", "id,cluster\na\n", "cluster is missing or not an id: None"),
        ("t.csv", "", r"no column 'id' \(found: none\)"),
        ("t.jsonl", '{"id": "a", "cluster": [1]}\n', r"cluster is missing or not an id: \[1\]"),
        ("t.jsonl", "{\n", "cannot read this table"),
        ("t.jsonl", "3\n", "not every line is a JSON object"),
        ("t.parquet", "PAR1", "cannot read this table"),
        ("t.txt", "a 1\n", "the name must end in"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(tmp_path, name, content, error):
    (tmp_path / "in.jsonl").write_text(lines_of(*ABC))
    (tmp_path / "kept.jsonl").write_text(lines_of(*ABC[:2]))
    (tmp_path / name).write_text(content)
    with pytest.raises(InvalidInput, match=error):
        audit_output(tmp_path / "in.jsonl", tmp_path / "kept.jsonl", RECIPE, clusters=tmp_path / name)


def test_nothing_removed_and_nothing_matching_are_told(tmp_path):
    (tmp_path / "in.jsonl").write_text(lines_of(*ABC, {"id": "e", "text": ""}, {"id": "f", "text": " "}))
    found = audit_output(tmp_path / "in.jsonl", tmp_path / "in.jsonl", Recipe.minhash(0.9))
    assert found.passed
    assert (found.num_removed, found.certificate["estimated"]["num_unmatched"]) == (0, 0.0)
    # Two empty texts are copies.
    assert found.certificate["estimated"]["num_left_documents"] == 1
    (tmp_path / "kept.jsonl").write_text(lines_of(*ABC))
    found = audit_output(tmp_path / "in.jsonl", tmp_path / "kept.jsonl", Recipe.minhash(0.9))
    assert found.certificate["num_unmatched_seen"] == 2
    (tmp_path / "kept.jsonl").write_text(lines_of(*ABC, {"id": "f", "text": " "}))
    assert audit_output(tmp_path / "in.jsonl", tmp_path / "kept.jsonl", Recipe.minhash(0.9)).passed


@pytest.mark.parametrize(
    "recipe",
    [
        *(Recipe.shingles(0.6, measure=name) for name in ("jaccard", "containment", "overlap", "dice")),
        Recipe.simhash(threshold=0.7),
        Recipe.simhash(within=8),
        Recipe.exact(),
        Recipe.minhash("auto", weights="idf"),
    ],
    ids=lambda recipe: f"{recipe.method}-{recipe.measure}-{recipe.weights}",
)
def test_every_recipe_says_what_a_match_is(tool, recipe):
    """An audit of our own decision by the same recipe finds no fault."""
    out = tool.folder / f"own-{recipe.recipe_id}"
    summary = dedup_files(tool.inputs, out, recipe)
    # The summary states a chosen threshold.
    recipe = Recipe.from_dict(summary["recipe"])
    recipe = recipe if recipe.weights_id is None else recipe.replace(weights_id=None)
    found = audit_output(tool.inputs, out / "kept" / "in.jsonl", recipe, num_sampled=10_000)
    assert found.passed, failed(found)
    assert found.num_removed == summary["num_removed"]


def test_the_command_writes_a_certificate(tool, tmp_path):
    arguments = ["audit", "--inputs", tool.inputs, "--kept", tool.output, "--threshold", "0.5", "--sample", "10_000"]
    done = likewise_command(*arguments, cwd=tmp_path)
    assert done.status == 1, done.err
    out = done.out.decode()
    assert f"FAIL every removed document of the sample matches a kept one: {len(tool.unmatched)} of" in out
    assert f"about {len(tool.unmatched)} of {len(tool.removed)} removed without a kept match" in out
    certificate = read_certificate(tmp_path / "audit.json")
    assert [file["path"] for file in certificate["inputs"] + certificate["outputs"]] == ["in.jsonl", "kept.jsonl"]
    fewer = likewise_command(*arguments[:-1], "50", "--seed", "5", "--json", "-o", tmp_path / "a.json", "--quiet")
    assert json.loads(fewer.out) == read_certificate(tmp_path / "a.json")
    told = likewise_command(*arguments[:-1], "50", "--seed", "5", "-o", tmp_path / "d.json").out.decode()
    share = json.loads(fewer.out)["unmatched_removals"]
    low, high = (round(share[name] * len(tool.removed)) for name in ("low", "high"))
    assert f" ({low} to {high}) of {len(tool.removed)} removed without a kept match" in told
    again = likewise_command(
        *arguments[:-1], "50", "--seed", "5", "--threads", "3", "--json", "-o", tmp_path / "b.json"
    )
    same = [{k: v for k, v in json.loads(one.out).items() if k not in ("made_at", "seal")} for one in (fewer, again)]
    assert same[0] == same[1]
    assert likewise_command(*arguments, "-o", tmp_path / "c.json", "--least-recall", "0.99").status == 1


def test_options_of_one_kind_of_audit_are_refused_by_the_other(tool, tmp_path):
    def refused(*arguments):
        done = likewise_command("audit", *arguments, cwd=tmp_path)
        assert done.status == 2, done.out
        return done.err

    both = ["--inputs", tool.inputs, "--kept", tool.output]
    assert "--threshold: state what a match is" in refused(*both)
    assert "--kept: give OUT" in refused()
    assert "--inputs: give the documents" in refused("--kept", tool.output, "--threshold", "0.5")
    assert "applies to the output of another tool" in refused("out", "--threshold", "0.5")
    assert "applies to the output of another tool" in refused("out", "--kept", tool.output)
    assert "given twice" in refused("--inputs", "-", "--kept", "-", "--threshold", "0.5")
    assert "one directory" in refused("out", "--inputs", tmp_path, "--inputs", tmp_path)
    assert "no finished run" in refused(tmp_path)
    table = write_csv(tmp_path / "t.csv", ["id", "cluster"], [])
    assert "give one of them" in refused(*both, "--threshold", "0.5", "--removed", table, "--clusters", table)
    with pytest.raises(InvalidParameter, match="sample"):
        tool.audit(num_sampled=1)
    assert not (tmp_path / "audit.json").exists()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_intervals_hold_the_truth(tmp_path):
    """Of 100 audits of careless tools, at least 93 intervals contain the truth by plain sets, for each figure."""
    held = {"unmatched": 0, "recall": 0, "pairs": 0}
    for corpus in range(5):
        folder = tmp_path / str(corpus)
        folder.mkdir()
        tool = Tool(folder, num=700, seed=200 + corpus, share_wrong=(0.0, 0.01, 0.05, 0.1, 0.02)[corpus])
        truth = {
            "unmatched": len(tool.unmatched) / len(tool.removed),
            "recall": tool.recall,
            "pairs": 1 - len(tool.left) / len(tool.pairs),
        }
        for seed in range(20):
            found = tool.audit(num_sampled=200, seed=seed)
            shares = {"unmatched": found.unmatched, "recall": found.recall.removals, "pairs": found.recall.pairs}
            for name, share in shares.items():
                assert not share.is_exact
                held[name] += share.low - 1e-12 <= truth[name] <= share.high + 1e-12
    print(held)
    assert min(held.values()) >= 93


def test_groups_of_which_no_copy_was_kept_are_named(tmp_path):
    # As of a tool that keeps no copy of a repeated document: two equal, two near, and one without a match are removed.
    base = [graded(1, seed, share_of_copies=0.0)[0] for seed in range(4)]
    near = " ".join(["other", *base[1].split()[1:]])
    texts = [base[0], base[1], base[0], near, base[2], base[3]]
    rows = [{"id": f"d{i}", "text": text} for i, text in enumerate(texts)]
    for name, kept in (("in", range(6)), ("kept", [5])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(rows[i]) + "\n" for i in kept))
    found = audit_output(tmp_path / "in.jsonl", tmp_path / "kept.jsonl", RECIPE, num_sampled=100)
    assert not found.passed
    assert found.certificate["num_unmatched_seen"] == 5
    assert found.certificate["num_removed_with_all_copies"] == 4
    twins = {one["doc_id"]: one["removed_match_id"] for one in found.certificate["worst_removals"]}
    assert twins == {"d0": "d2", "d2": "d0", "d1": "d3", "d3": "d1", "d4": None}
    ran = likewise_command(
        "audit", "--inputs", tmp_path / "in.jsonl", "--kept", tmp_path / "kept.jsonl", "--threshold", "0.5",
        "-o", tmp_path / "audit.json",
    )  # fmt: skip
    said = ran.out.decode()
    assert ran.status == 1
    assert "its match d2 was removed too" in said
    assert "4 of 5 in the sample match only documents that were removed too: no copy of them was kept" in said
