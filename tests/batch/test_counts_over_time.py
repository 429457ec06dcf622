"""Counts of groups over several dumps equal a replay of all dumps, whatever is given again, and count nothing twice."""

import math
import random
import shutil
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import Recipe
from likewise.errors import InvalidInput, InvalidParameter
from likewise.job.reading import FileRun
from tests.command import likewise_command
from tests.files import jsonl
from tests.golden.texts import made_up

RECIPE = Recipe.minhash(0.6, seed=5)
NUM_DUMPS = 5


def dumps(seed=0):
    """Return five dumps of documents: copies of common texts in all, each with a site and perhaps a date."""
    rng = random.Random(seed)
    texts = [made_up(30, 100 * seed + i) for i in range(25)]
    found = []
    for dump in range(NUM_DUMPS):
        rows = []
        for i in range(30):
            number = rng.randrange(5 * dump, 5 * dump + 8) % 25 if i % 3 else rng.randrange(25)
            date = None if rng.random() < 0.2 else f"202{dump}-{rng.randint(1, 12):02}-01"
            # Every dump uses the same ids for other documents.
            row = {"id": f"d{i}", "text": texts[number], "published": date, "site": rng.choice(["x", "y", "z"])}
            rows.append(row)
        found.append(rows)
    return found


def replay(all_rows):
    """Return for each text, by first appearance: position of its kept document, its rows, and their dumps."""
    groups = {}
    for dump, rows in enumerate(all_rows):
        num_kept = 0
        for row in rows:
            if row["text"] not in groups:
                groups[row["text"]] = {"dump": dump, "position": num_kept, "rows": [], "dumps": set()}
                num_kept += 1
            groups[row["text"]]["rows"].append(row)
            groups[row["text"]]["dumps"].add(dump)
    return groups


def expected(groups):
    found = []
    for group in groups.values():
        dates = sorted(row["published"] for row in group["rows"] if row["published"] is not None)
        found.append(
            {
                "group": group["rows"][0]["id"],
                "dump": group["dump"],
                "position": group["position"],
                "num_copies": len(group["rows"]),
                "num_runs": len(group["dumps"]),
                "first_seen": dates[0] if dates else None,
                "last_seen": dates[-1] if dates else None,
                "values": dict(Counter(row["site"] for row in group["rows"])),
            }
        )
    return sorted(found, key=lambda row: (row["dump"], row["position"]))


def run_dump(tmp_path, number, rows, earlier, **options):
    out = tmp_path / f"run{number}"
    jsonl(tmp_path / f"dump{number}.jsonl", rows)
    options = {"write": "kept,groups", "date_field": "published", "count_by": "site", **options}
    likewise.dedup_files(tmp_path / f"dump{number}.jsonl", out, RECIPE, against=earlier, **options)
    return out


def counted(out, runs):
    """Return the rows of the groups in the form of the replay."""
    from likewise.batch.against.references import key_of_run

    keys = {key_of_run(run): number for number, run in enumerate(runs)}
    found, position = [], 0
    for row in pq.read_table(out / "groups.parquet").to_pylist():
        is_own = row["kept_source"] == "input"
        found.append(
            {
                **{name: row[name] for name in ("group", "num_copies", "num_runs", "first_seen", "last_seen")},
                "dump": runs.index(out) if is_own else keys[row["kept_run"]],
                "position": position if is_own else row["kept_position"],
                "values": {one["value"]: one["num_documents"] for one in row["values"]},
            }
        )
        position += is_own
    return sorted(found, key=lambda row: (row["dump"], row["position"]))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("keeps_sketches", [False, True])
def test_five_dumps_are_counted_as_in_a_replay(tmp_path, seed, keeps_sketches):
    all_rows = dumps(seed)
    runs = []
    for number, rows in enumerate(all_rows):
        runs.append(run_dump(tmp_path, number, rows, list(runs), keep_sketches=keeps_sketches))
        assert counted(runs[-1], runs) == expected(replay(all_rows[: number + 1]))
    # Each run counts its own part.
    sizes = sum(sum(pq.read_table(run / "groups.parquet").column("group_size").to_pylist()) for run in runs)
    assert sizes == sum(map(len, all_rows))
    # The order and location of earlier runs, and the number of threads, change no count.
    moved = tmp_path / "elsewhere"
    shutil.copytree(runs[1], moved)
    again = tmp_path / "again"
    options = {"write": "groups", "date_field": "published", "count_by": "site", "run": FileRun(threads=3)}
    others = [runs[3], moved, runs[0], runs[2]]
    likewise.dedup_files(tmp_path / "dump4.jsonl", again, RECIPE, against=others, **options)
    assert counted(again, [*runs[:4], again]) == counted(runs[4], runs)
    assert not (again / "kept").exists()


def test_inputs_of_a_run_may_come_in_any_order(tmp_path):
    rows = dumps(7)
    first = [
        jsonl(tmp_path / "b.jsonl", rows[0]),
        jsonl(tmp_path / "a.jsonl", [{**one, "id": f"e{i}"} for i, one in enumerate(rows[1])]),
    ]
    options = {"write": "kept,groups", "date_field": "published", "count_by": "site"}
    likewise.dedup_files(first, tmp_path / "run0", RECIPE, **options)
    out = run_dump(tmp_path, 1, rows[2], [tmp_path / "run0"])
    both = [*rows[0], *({**one, "id": f"e{i}"} for i, one in enumerate(rows[1]))]
    assert counted(out, [tmp_path / "run0", out]) == expected(replay([both, rows[2]]))


def test_documents_of_files_stand_for_themselves(tmp_path):
    rows = dumps(3)
    text = rows[0][0]["text"]
    given = jsonl(tmp_path / "given.jsonl", [{"id": "g", "text": text, "published": "2001-01-01", "site": "given"}])
    new = [one for one in rows[0] if one["text"] == text]
    out = run_dump(tmp_path, 0, new, [given])
    (row,) = pq.read_table(out / "groups.parquet").to_pylist()
    assert (row["group"], row["kept_source"], row["kept_run"]) == ("g", "against", None)
    assert (row["group_size"], row["num_copies"], row["num_runs"]) == (len(new), len(new) + 1, 2)
    assert row["first_seen"] == "2001-01-01"
    assert {one["value"] for one in row["values"]} - {one["value"] for one in row["new_values"]} == {"given"}


def test_runs_that_do_not_know_of_each_other_are_told(tmp_path):
    rows = [{"id": "a", "text": made_up(30, 1), "published": "2021-01-01", "site": "x"}]
    first = run_dump(tmp_path, 0, rows, [])
    alone = run_dump(tmp_path, 1, rows, [])
    events = []
    run_dump(tmp_path, 2, rows, [first, alone], progress=events.append)
    assert any("1 document kept by several of the runs" in str(event) for event in events)
    after = run_dump(tmp_path, 3, rows, [first])
    events.clear()
    run_dump(tmp_path, 4, rows, [first, after], progress=events.append)
    assert not any("several of the runs" in str(event) or "not counted" in str(event) for event in events)
    # `after` counted copies of a document that `first` kept.
    events.clear()
    run_dump(tmp_path, 5, rows, [after], progress=events.append)
    assert any("copies of 1 document kept by a run that is not given" in str(event) for event in events)


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        ("log", lambda n: 1 + math.log(n)),
        ("sqrt", math.sqrt),
        ("inverse", lambda n: 1 / n),
        ("cap:2", lambda n: min(n, 2)),
    ],
)
def test_weights_follow_from_the_counts(tmp_path, name, weight):
    rows = dumps(1)
    first = run_dump(tmp_path, 0, rows[0], [])
    out = run_dump(tmp_path, 1, rows[1], [first], count_weight=name)
    groups = pq.read_table(out / "groups.parquet").to_pylist()
    assert [row["weight"] for row in groups] == pytest.approx([weight(row["num_copies"]) for row in groups])
    assert max(row["num_copies"] for row in groups) > 2


def test_a_run_without_groups_is_told_and_its_documents_count_once(tmp_path):
    rows = dumps(2)
    jsonl(tmp_path / "dump.jsonl", rows[0])
    likewise.dedup_files(tmp_path / "dump.jsonl", tmp_path / "plain", RECIPE)
    done = likewise_command(
        *("dedup", jsonl(tmp_path / "new.jsonl", rows[1]), "-o", tmp_path / "out", "--against", tmp_path / "plain"),
        *("--write", "kept,groups", "--count-weight", "log"),
    )
    assert done.status == 0, done.err
    assert "wrote no groups" in done.err
    assert "repeat it with --write kept,groups" in done.err
    groups = pq.read_table(tmp_path / "out" / "groups.parquet").to_pylist()
    kept = [row for row in groups if row["kept_source"] == "against"]
    assert len(kept) == len({row["text"] for row in rows[0]})
    assert all(row["num_copies"] == row["group_size"] + 1 for row in kept)


def test_what_makes_no_sense_is_refused(tmp_path):
    rows = dumps(4)
    first = run_dump(tmp_path, 0, rows[0], [])
    plain = run_dump(tmp_path, 1, rows[1], [first], date_field=None, count_by=None)
    new = jsonl(tmp_path / "new.jsonl", rows[2])

    def refused(message, error=InvalidInput, **options):
        options = {"against": [first, plain], "write": "kept,groups", **options}
        with pytest.raises(error, match=message):
            likewise.dedup_files(new, tmp_path / "out", RECIPE, **options)
        assert not (tmp_path / "out").exists()

    refused("have no first_seen; repeat it with --date-field published", date_field="published")
    refused("have no new_values; repeat it with --count-by site", count_by="site")
    refused("given twice with --against", against=[first, tmp_path / "run1" / ".." / "run0"])
    refused("names two outputs", InvalidParameter, write="kept,unique")
    refused("names two outputs", InvalidParameter, write="groups,groups")
    refused("must be|one of", InvalidParameter, write="kept,all")
    refused("requires --write groups", InvalidParameter, write="kept", count_weight="log")
    refused("cap:N", InvalidParameter, count_weight="cap")
    refused("cap:5", InvalidParameter, count_weight="cap:x")
    refused("count_weight", InvalidParameter, count_weight="tf")
    numbers = jsonl(tmp_path / "numbers.jsonl", [{"id": "n", "text": rows[0][0]["text"], "published": 17}])
    with pytest.raises(InvalidInput, match=r"cannot be compared with the values of this run|numbers in some rows"):
        likewise.dedup_files(numbers, tmp_path / "out", RECIPE, against=[first], write="groups", date_field="published")
    table = pq.read_table(first / "groups.parquet")
    pq.write_table(table.slice(1), first / "groups.parquet")
    refused("groups, but kept")
    (first / "groups.parquet").write_bytes(b"PAR1")
    refused("cannot read the groups")
    pq.write_table(pa.table({"group": ["a"]}), first / "groups.parquet")
    refused("cannot read the groups")
