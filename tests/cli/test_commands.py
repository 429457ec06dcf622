"""Help, streams, exit codes, and the rules of the output directory."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

import likewise
from tests.command import jsonl, likewise_command
from tests.golden.texts import made_up
from tests.waiting import LIMIT_S, wait_until

COMMANDS = ("dedup", "pairs", "compare", "sketch", "plan", "diff")
TEXTS = ["the same few words once more", "The same few words once more!", "something else entirely"]

# Weights that a run by rarity stores.
RECIPE_FILES = ["recipe", "recipe/weights.lww"]


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_help_names_every_command():
    ran = likewise_command("--help")
    assert (ran.status, ran.err) == (0, "")
    assert all(f"  {name} " in ran.out.decode() for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(name):
    ran = likewise_command(name, "--help")
    assert (ran.status, ran.err) == (0, "")
    assert "Example" in ran.out.decode()
    assert f"likewise {name} " in ran.out.decode()


def test_version():
    ran = likewise_command("--version")
    assert (ran.status, ran.out.decode()) == (0, f"likewise {likewise.__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["dedup"],
        ["dedup", "x.jsonl", "-o", "o", "--no-such-option"],
        ["dedup", "absent.jsonl", "-o", "o"],
        ["dedup", "absent*.jsonl", "-o", "o"],
        ["dedup", "-", "-o", "o", "--threshold", "1.5"],
        ["dedup", "-", "-o", "o", "--threshold", "0"],
        ["dedup", "-", "-o", "o", "--method", "minhash", "--within", "3"],
        ["dedup", "-", "-o", "o", "--method", "simhash", "--bits", "48"],
        ["dedup", "-", "-o", "o", "--method", "simhash", "--num-slots", "64"],
        ["dedup", "-", "-o", "o", "--keep", "biggest"],
        ["dedup", "-", "-o", "o", "--shingle", "0"],
        ["dedup", "-", "-o", "o", "--max-document", "much"],
        ["dedup", "-", "-o", "o", "--recipe", "absent.json"],
        ["dedup", "-", "-o", "o", "--threads", "0"],
        ["pairs", "-", "-o", "pairs.xml"],
        ["sketch", "-", "-o", "sketches.xml"],
        ["diff", "absent1", "absent2"],
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_2_and_says_why(tmp_path, arguments):
    ran = likewise_command(*arguments, stdin=jsonl(TEXTS), cwd=tmp_path)
    assert (ran.status, ran.out) == (2, b"")
    assert ran.err
    assert "Traceback" not in ran.err
    assert tree(tmp_path) == []


def test_summary_goes_to_stderr_and_json_to_stdout(tmp_path):
    ran = likewise_command("dedup", "-", "-o", tmp_path / "a", stdin=jsonl(TEXTS))
    assert (ran.status, ran.out) == (0, b"")
    assert "2 kept, 1 removed" in ran.err
    ran = likewise_command("dedup", "-", "-o", tmp_path / "b", "--json", "--quiet", stdin=jsonl(TEXTS))
    assert ran.err == ""
    assert json.loads(ran.out) == json.loads((tmp_path / "b" / "summary.json").read_text())
    ran = likewise_command("dedup", "-", "-o", tmp_path / "c", "--quiet", stdin=jsonl(TEXTS))
    assert (ran.status, ran.out, ran.err) == (0, b"", "")


def test_output_directory(tmp_path):
    out = tmp_path / "out"
    (tmp_path / "in.jsonl").write_bytes(jsonl(TEXTS))
    dedup = ["dedup", tmp_path / "in.jsonl", "-o", out]
    assert likewise_command(*dedup).status == 0
    assert tree(out) == ["kept", "kept/in.jsonl", *RECIPE_FILES, "removed.parquet", "summary.json"]
    before = (out / "summary.json").read_bytes()
    ran = likewise_command(*dedup)
    assert ran.status == 2
    assert "--overwrite" in ran.err
    assert (out / "summary.json").read_bytes() == before
    ran = likewise_command(*dedup, "--overwrite", "--write", "evidence")
    assert ran.status == 0, ran.err
    assert tree(out) == [*RECIPE_FILES, "removed.parquet", "summary.json"]
    (out / "precious.txt").write_text("mine")
    ran = likewise_command(*dedup, "--overwrite")
    assert ran.status == 2
    assert "precious.txt" in ran.err
    assert (out / "precious.txt").read_text() == "mine"
    assert likewise_command("dedup", tmp_path / "in.jsonl", "-o", tmp_path / "in.jsonl").status == 2


def test_what_is_written(tmp_path):
    rows = [{"text": text, "site": f"site{number}", "day": 5 - number} for number, text in enumerate(TEXTS)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dedup = ["dedup", tmp_path / "in.jsonl", "--threshold", "0.8", "-o"]
    for words, written in (
        (["annotated", "--write-prefix", "lw_"], ["annotated", "annotated/in.jsonl"]),
        (["unique"], ["unique", "unique/in.jsonl"]),
        (["groups", "--date-field", "day"], ["groups.parquet"]),
        (["evidence", "--count-by", "site"], []),
    ):
        out = tmp_path / words[0]
        ran = likewise_command(*dedup, out, "--write", *words)
        assert ran.status == 0, ran.err
        assert tree(out) == sorted([*written, "removed.parquet", "summary.json"])
    lines = (tmp_path / "annotated" / "annotated" / "in.jsonl").read_text().splitlines()
    assert [json.loads(line)["lw_group"] for line in lines] == ["in.jsonl:1", "in.jsonl:1", "in.jsonl:3"]
    assert (tmp_path / "unique" / "unique" / "in.jsonl").read_text() == json.dumps(rows[2]) + "\n"
    groups = pq.read_table(tmp_path / "groups" / "groups.parquet").to_pylist()
    assert [(row["group_size"], row["first_seen"], row["last_seen"]) for row in groups] == [
        (2, "4", "5"),
        (1, "3", "3"),
    ]
    assert "removed by site (3 values): site1 1 of 1" in ran.err
    assert "duplicates between values of site: site1 of site0 1" in ran.err
    for words in (["--write", "annotated"], ["--count-by", "site"], ["--date-field", "day"]):
        ran = likewise_command("dedup", tmp_path / "in.jsonl", *words, "-o", "-")
        assert ran.status == 2
        assert words[0] in ran.err
    ran = likewise_command(*dedup, tmp_path / "more", "--against", tmp_path / "annotated")
    assert ran.status == 2
    assert "--write annotated" in ran.err


def test_a_failed_overwrite_leaves_the_old_run(tmp_path):
    out = tmp_path / "out"
    assert likewise_command("dedup", "-", "-o", out, stdin=jsonl(TEXTS)).status == 0
    before = {name: (out / name).read_bytes() for name in tree(out) if (out / name).is_file()}
    ran = likewise_command("dedup", "-", "-o", out, "--overwrite", stdin=b"broken\n")
    assert ran.status == 2
    assert {name: (out / name).read_bytes() for name in tree(out) if (out / name).is_file()} == before


def test_directories_are_read_in_order_and_mirrored(tmp_path):
    data = tmp_path / "data"
    (data / "b" / "deep").mkdir(parents=True)
    (data / "a.jsonl").write_bytes(jsonl(["first words here"], ids=False))
    (data / "b" / "deep" / "c.ndjson").write_bytes(jsonl(["first words here", "second thing now"], ids=False))
    (data / "notes.doc").write_text("not ours")
    (data / "link.jsonl").symlink_to(data / "a.jsonl")
    out = data / "out"
    for _ in range(2):
        ran = likewise_command("dedup", data, "-o", out, "--overwrite", "--json")
        assert ran.status == 0, ran.err
        summary = json.loads(ran.out)
        assert [entry["path"] for entry in summary["inputs"]] == ["a.jsonl", "b/deep/c.ndjson"]
        assert sorted(os.path.basename(path) for path in summary["skipped_files"]) == ["link.jsonl", "notes.doc"]
        assert summary["num_kept"] == 2
        assert (out / "kept" / "b" / "deep" / "c.ndjson").read_bytes() == jsonl(["second thing now"], ids=False)


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """100,000 documents of 150 words, few of them near-duplicates: seconds of work."""
    path = tmp_path_factory.mktemp("big") / "big.jsonl"
    texts = [made_up(150, i) for i in range(2000)]
    with path.open("w") as file:
        for copy in range(50):
            file.writelines(f'{{"id": "{copy}-{i}", "text": "v{copy} {text}"}}\n' for i, text in enumerate(texts))
    return path


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "likewise", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def wait_for(condition, process):
    assert wait_until(lambda: condition() or process.poll() is not None)


@pytest.mark.parametrize("delay_s", [0.0, 0.15, 0.4])
def test_control_c_leaves_nothing_but_finished_parts(tmp_path, big, delay_s):
    out = tmp_path / "out"
    process = start("dedup", big, "-o", out)
    wait_for(lambda: (out / ".unfinished").exists(), process)
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, err
    assert b"interrupted" in err
    assert b"Traceback" not in err
    if out.exists():
        assert [path.name for path in out.iterdir()] == [".unfinished"]
        assert list((out / ".unfinished" / "parts").iterdir())
        assert b"repeat the command to continue" in err


@pytest.mark.slow
def test_a_killed_run_is_begun_again(tmp_path, big):
    out = tmp_path / "out"
    # As if the run had taken longer.
    code = "from likewise.batch.read import resume; resume.SAVED_AFTER_S = 0.0; from likewise.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "dedup", str(big), "-o", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    parts = out / ".unfinished" / "parts"
    wait_for(lambda: parts.exists() and any(parts.glob("*.arrow")), process)
    process.kill()
    process.communicate()
    assert tree(out)[0] == ".unfinished"
    assert not (out / "summary.json").exists()
    ran = likewise_command("dedup", big, "-o", out, "--threshold", "0.9")
    assert ran.status == 2
    assert "threshold" in ran.err
    assert likewise_command("dedup", big, "-o", out).status == 0
    assert tree(out) == ["kept", "kept/big.jsonl", *RECIPE_FILES, "removed.parquet", "summary.json"]


def test_diff(tmp_path):
    data = jsonl([made_up(40, i % 7) + " x" * (i % 3) for i in range(60)])
    for name, options in {
        "a": ["--threads", "1"], "b": ["--threads", "2"], "c": ["--keep", "shortest"], "d": ["--threshold", "0.3"],
    }.items():  # fmt: skip
        assert likewise_command("dedup", "-", "-o", tmp_path / name, *options, stdin=data).status == 0
    assert likewise_command("diff", tmp_path / "a", tmp_path / "b").status == 0
    for other in "cd":
        ran = likewise_command("diff", tmp_path / "a", tmp_path / other)
        assert ran.status == 1
        assert ran.out


def test_diff_as_json(tmp_path):
    texts = [f"{number} {made_up(12, number)}" for number in range(40)]
    runs = {"a": [*texts, texts[0], texts[1]], "b": [*texts[:5], "one more é", *texts[5:], texts[0]]}
    for name, lines in runs.items():
        stdin = jsonl(lines, ids=False)
        assert likewise_command("dedup", "-", "-o", tmp_path / name, "--method", "exact", stdin=stdin).status == 0
    ran = likewise_command("diff", tmp_path / "a", tmp_path / "a", "--json")
    assert (ran.status, ran.err) == (0, "")
    assert json.loads(ran.out) == {
        "is_same": True,
        "compared": "recipe, evidence, kept documents",
        "recipe": {},
        "counts": {},
        "evidence": {"num_differing": 0, "rows": []},
        "kept": {"num_differing": 0, "documents": []},
    }
    ran = likewise_command("diff", tmp_path / "a", tmp_path / "b", "--json")
    assert ran.status == 1
    found = json.loads(ran.out)
    assert (found["is_same"], found["recipe"]) == (False, {})
    assert found["counts"] == {"num_kept": [40, 41], "num_removed": [2, 1]}
    evidence = pq.read_table(tmp_path / "a" / "removed.parquet").to_pylist()
    assert found["evidence"]["num_differing"] == len(found["evidence"]["rows"])
    named = [(row["first"] and row["first"]["doc_id"], row["second"] and row["second"]["doc_id"])
             for row in found["evidence"]["rows"]]  # fmt: skip
    assert {first for first, _ in named} - {None} == {row["doc_id"] for row in evidence}
    (document,) = found["kept"]["documents"]
    assert (document["first_number"], document["first"], document["second_number"]) == (None, None, 5)
    assert json.loads(document["second"])["text"] == "one more é"
    assert likewise_command("dedup", "-", "-o", tmp_path / "c", "--threshold", "0.9", stdin=stdin).status == 0
    found = json.loads(likewise_command("diff", tmp_path / "a", tmp_path / "c", "--json").out)
    assert found["recipe"]["method"] == ["exact", "minhash"]
    assert likewise_command("diff", tmp_path / "a", tmp_path / "c", "--json", "-q").status == 2


@pytest.mark.parametrize("suffix", ["tsv", "jsonl", "parquet"])
def test_pairs(tmp_path, suffix):
    path = tmp_path / f"pairs.{suffix}"
    ran = likewise_command("pairs", "-", "-o", path, stdin=jsonl(TEXTS))
    assert (ran.status, ran.out) == (0, b""), ran.err
    if suffix == "parquet":
        rows = pq.read_table(path).to_pylist()
    elif suffix == "jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        head, *lines = (line.split("\t") for line in path.read_text().splitlines())
        rows = [dict(zip(head, line, strict=True)) for line in lines]
    assert [(row["doc_id_a"], row["doc_id_b"], float(row["similarity"])) for row in rows] == [("0", "1", 1.0)]


def test_pairs_leave_nothing_when_they_fail(tmp_path):
    ran = likewise_command("pairs", "-", "-o", tmp_path / "pairs.tsv", stdin=jsonl(TEXTS) + b"broken\n")
    assert ran.status == 2
    assert tree(tmp_path) == []


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
@pytest.mark.parametrize("method", ["minhash", "simhash"])
def test_sketches_are_those_of_the_library(tmp_path, suffix, method):
    path = tmp_path / f"sketches.{suffix}"
    ran = likewise_command("sketch", "-", "-o", path, "--method", method, stdin=jsonl([*TEXTS, ""]))
    assert ran.status == 0, ran.err
    recipe = likewise.Recipe.minhash() if method == "minhash" else likewise.Recipe.simhash()
    expected = likewise.sketch([*TEXTS, ""], recipe)
    read = likewise.Sketches.read(path)
    assert np.array_equal(read.array, expected.array)
    assert read.is_empty.tolist() == [False, False, False, True]
    assert read.recipe.sketch_id == recipe.sketch_id
    with pytest.raises(likewise.RecipeMismatch, match="seed"):
        likewise.Sketches.read(path, recipe.replace(seed=5))


def test_plan():
    ran = likewise_command("plan", "--threshold", "0.8", "--recall", "0.99")
    assert ran.status == 0, ran.err
    assert "21" in ran.out.decode()
    # Threshold, bands and features follow from the defaults; the output states each.
    ran = likewise_command("plan")
    assert "32 bands of 4; auto tokens, shingle 3, weights none\n" in ran.out.decode()
    assert "P(found) at jaccard 0.55" in ran.out.decode()
    ran = likewise_command("plan", "--method", "simhash", "--tokens", "word")
    assert "128 bits, all pairs within 24; word tokens, shingle 2, weights log-count\n" in ran.out.decode()


def test_plan_of_a_run_on_spark():
    ran = likewise_command("plan", "--documents", "1e9", "--engine", "spark", "--workers", "50")
    assert ran.status == 0, ran.err
    out = ran.out.decode()
    for name in ("read and sketch", "collapse", "bands", "verify", "decide", "core-hours", "on 50 cores"):
        assert name in out
    options = ("plan", "--engine", "spark", "--documents", "1e9", "--method", "simhash", "--json")
    ran = likewise_command(*options, "--bits", "64", "--within", "3", "--document-bytes", "2kB")
    plan = json.loads(ran.out)
    names = [stage["name"] for stage in plan["stages"]]
    assert (names, plan["warning"]) == (["read and sketch", "collapse", "search slabs"], None)
    assert plan["document_bytes"] == 2000
    assert plan["core_s"] == pytest.approx(sum(stage["core_s"] for stage in plan["stages"]))
    # One core takes as many seconds as there are core-seconds.
    assert plan["hours"] * 3600 >= plan["core_s"]
    assert "impractical" in json.loads(likewise_command(*options, "--within", "24", "--bits", "128").out)["warning"]
    for options, name in (
        (("--engine", "spark"), "--documents"),
        (("--documents", "5", "--workers", "5"), "--engine"),
        (("--documents", "5", "--engine", "spark", "--n", "5"), "--n"),
        (("--documents", "5", "--engine", "spark", "--workers", "0"), "--workers"),
        (("--documents", "5", "--engine", "spark", "--method", "shingles"), "--method"),
    ):
        ran = likewise_command("plan", *options)
        assert ran.status != 0
        assert name in ran.err


def test_plan_of_a_run_on_this_machine_is_that_of_the_run(tmp_path):
    lines = [json.dumps({"text": f"{n:04} " + " ".join(f"w{n:04}x{i}" for i in range(10, 40))}) for n in range(1000)]
    data = "".join(f"{line}\n" for line in lines).encode()
    matching = ("--threshold", "0.8", "--memory", "300MB")
    ran = likewise_command("dedup", "-", "-o", tmp_path / "out", *matching, stdin=data)
    assert ran.status == 0, ran.err
    (tmp_path / "in.jsonl").write_bytes(data)
    ran = likewise_command("dedup", tmp_path / "in.jsonl", "-o", tmp_path / "out", "--overwrite", *matching)
    stated = json.loads((tmp_path / "out" / "summary.json").read_text())["memory"]
    size = ("--documents", "1000", "--document-bytes", f"{len(data) // 1000}")
    planned = json.loads(likewise_command("plan", *size, *matching, "--json").out)
    assert planned == stated
    lines = likewise_command("plan", *size, *matching).out.decode().splitlines()
    assert lines[1].startswith("about 1,000 documents, ")
    for options, name in (
        (("--n", "5"), "--n"),
        (("--memory", "1MB"), "256000000"),
        (("--method", "shingles"), "shingles"),
    ):
        ran = likewise_command("plan", "--documents", "5", *options)
        assert ran.status == 2
        assert name in ran.err


def test_the_summary_says_what_was_resolved(tmp_path):
    ran = likewise_command("dedup", "-", "-o", tmp_path / "out", "--method", "simhash", stdin=jsonl(TEXTS))
    assert "Hamming distance <= 20 of 128 bits" in ran.err
    assert "\nSimHash: 128 bits, all pairs within 20; char tokens, shingle 5, weights log-count\n" in ran.err
    recipe = json.loads((tmp_path / "out" / "summary.json").read_text())["recipe"]
    assert recipe == likewise.Recipe.simhash().to_dict()


def test_compare_escapes_control_characters(tmp_path):
    (tmp_path / "a.txt").write_text("one two \x1b[31mthree")
    (tmp_path / "b.txt").write_text("one two four")
    ran = likewise_command("compare", tmp_path / "a.txt", tmp_path / "b.txt")
    assert ran.status in (0, 1), ran.err
    assert b"\x1b[31m" not in ran.out
    assert b"four" in ran.out


def test_a_recipe_file_is_the_recipe(tmp_path):
    recipe = likewise.Recipe.minhash(0.3, shingle=1, seed=4)
    (tmp_path / "recipe.json").write_text(recipe.to_json())
    ran = likewise_command(
        "dedup", "-", "-o", tmp_path / "out", "--recipe", tmp_path / "recipe.json", "--json", stdin=jsonl(TEXTS)
    )
    assert json.loads(ran.out)["recipe_id"] == recipe.recipe_id
    again = likewise_command(
        "dedup", "-", "-o", tmp_path / "2", "--recipe", tmp_path / "out" / "summary.json", "--json", stdin=jsonl(TEXTS)
    )
    assert json.loads(again.out)["recipe_id"] == recipe.recipe_id


# Interrupts as soon as a method has returned.
INTERRUPTING = """
import signal, sys
from likewise.cli import main
from likewise.io.output.whole import WholeFile
from likewise.job.output import OutputDirectory
kind, name = (OutputDirectory if "Directory" in sys.argv[1] else WholeFile), sys.argv.pop(1).split(".")[1]
before = getattr(kind, name)
setattr(kind, name, lambda own: (before(own), signal.raise_signal(signal.SIGINT)))
main()
"""


@pytest.mark.parametrize(
    ("at", "command", "output"),
    [
        ("OutputDirectory.finish", ["dedup", "a.jsonl", "-o", "out"], "out/summary.json"),
        ("WholeFile.finish", ["pairs", "a.jsonl", "-o", "p.tsv"], "p.tsv"),
        ("OutputDirectory._claim", ["dedup", "a.jsonl", "-o", "out"], None),
    ],
    ids=["finished run", "finished file", "unfinished run"],
)
def test_what_is_reported_on_control_c_is_true_before_and_after_outputs_are_in_place(tmp_path, at, command, output):
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    ran = subprocess.run(
        [sys.executable, "-c", INTERRUPTING, at, *command], cwd=tmp_path, capture_output=True, check=False
    )
    assert ran.returncode == 130
    assert ran.stderr.decode().splitlines()[-1] == "interrupted: each local output file is complete or absent"
    assert {path.name for path in tmp_path.iterdir()} == {"a.jsonl", (output or "a.jsonl").partition("/")[0]}
    assert output is None or (tmp_path / output).is_file()
