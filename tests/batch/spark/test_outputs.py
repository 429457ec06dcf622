"""Workers write kept files and evidence that are byte-identical to those of a local run."""

import gzip
import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import Recipe
from likewise.errors import InvalidInput, InvalidParameter
from likewise.job.reading import FileRun
from likewise.runs.diff import run_differences

pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]
# Without full buckets, to keep it short.
RECIPE = Recipe.minhash(0.7, bands=2, rows=16)


@pytest.fixture
def inputs(table, tmp_path):
    """Files of all kinds: one in a subdirectory, one without kept documents, one without documents."""
    rows = [{"id": row["id"], "text": row["text"]} for row in table.to_pylist()]
    lines = [json.dumps(row) for row in rows]
    root = tmp_path / "inputs"
    (root / "below").mkdir(parents=True)
    (root / "a.jsonl").write_text("\n".join([*lines[:60], "", "no json", *lines[60:90]]) + "\n")
    with gzip.open(root / "b.jsonl.gz", "wt") as file:
        file.write("\n".join([*lines[90:150], "", "no json", lines[150]]))
    pq.write_table(pa.Table.from_pylist(rows[151:220]), root / "below" / "c.parquet")
    quoted = [f'{row["id"]},"{row["text"].replace(chr(34), chr(34) * 2)}"' for row in rows[220:]]
    (root / "d.csv").write_text("\n".join(["id,text", *quoted]) + "\n", newline="")
    # Copies of the first documents, under other ids.
    (root / "e.jsonl").write_text(
        "".join(json.dumps({"id": f"copy {row['id']}", "text": row["text"]}) + "\n" for row in rows[:3])
    )
    (root / "f.jsonl").write_text("")
    return root


def files_of(directory):
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()
    }


def test_workers_write_what_a_local_run_writes(spark, inputs, tmp_path, monkeypatch):
    from likewise.batch.spark.files import engine as engines

    def gathered(*_):
        raise AssertionError("documents come to the driver")

    monkeypatch.setattr(engines, "_GatheredRun", gathered)
    run = FileRun(on_error="keep")
    local = likewise.dedup_files(inputs, tmp_path / "local", RECIPE, run=run)
    engine = engines.SparkEngine("local[2]", checkpoint_dir=str(tmp_path / "stages"))
    found = likewise.dedup_files(inputs, tmp_path / "spark", RECIPE, run=run, engine=engine)
    assert run_differences(tmp_path / "local", tmp_path / "spark")[0] == []
    evidence = [pq.read_table(tmp_path / name / "removed.parquet") for name in ("local", "spark")]
    assert evidence[0].num_rows > 30
    assert evidence[0].equals(evidence[1])
    wanted, written = files_of(tmp_path / "local" / "kept"), files_of(tmp_path / "spark" / "kept")
    assert list(written) == ["a.jsonl", "b.jsonl.gz", "below/c.parquet", "d.csv", "e.jsonl", "f.jsonl"]
    assert wanted == written
    assert written["e.jsonl"] == b""
    assert b"no json" in written["a.jsonl"]
    names = {path.name for path in (tmp_path / "spark").iterdir()}
    assert names == {"kept", "removed.parquet", "errors.jsonl", "summary.json"}
    assert (tmp_path / "local/errors.jsonl").read_text() == (tmp_path / "spark/errors.jsonl").read_text()
    # Workers do not count what the documents of a slice were copies of.
    for one in local["shrunk"]["slices"]:
        one["kept"] = []
    assert {**local, "timings": 0, "num_measured": 0} == {**found, "timings": 0, "num_measured": 0}


@pytest.mark.slow
def test_evidence_alone_and_groups(spark, inputs, tmp_path):
    """The driver writes groups, as in a local run. Both runs share their stages."""
    from likewise.spark import SparkEngine

    shutil.rmtree(inputs / "below")
    run = FileRun(on_error="skip")
    engine = SparkEngine("local[2]", checkpoint_dir=str(tmp_path / "stages"))
    for write in ("evidence", "annotated,groups"):
        for name, where in (("local", None), ("spark", engine)):
            likewise.dedup_files(inputs, tmp_path / name / write, RECIPE, run=run, write=write, engine=where)
        local, found = (files_of(tmp_path / name / write) for name in ("local", "spark"))
        assert list(local) == list(found)
        assert run_differences(tmp_path / "local" / write, tmp_path / "spark" / write)[0] == []
        for name in ("removed.parquet", "groups.parquet"):
            if name in local:
                tables = [pq.read_table(tmp_path / place / write / name) for place in ("local", "spark")]
                assert tables[0].equals(tables[1]), name
        assert {name: data for name, data in local.items() if name.startswith("annotated")} == {
            name: data for name, data in found.items() if name.startswith("annotated")
        }


@pytest.mark.slow
def test_spark_writes_to_a_url(spark, inputs, tmp_path, monkeypatch):
    """On a cluster, Spark writes outputs at URLs as directories: text for lines, Parquet for evidence."""
    from likewise.batch import files
    from likewise.job import output
    from likewise.spark import SparkEngine

    engine = SparkEngine("local[2]", checkpoint_dir=str(tmp_path / "stages"))
    for module in (files, output):
        monkeypatch.setattr(module, "is_remote", lambda name: str(name).startswith("file:"))
    monkeypatch.setattr(SparkEngine, "is_on_this_machine", False)
    out, url = tmp_path / "spark", (tmp_path / "spark").as_uri()
    run = FileRun(on_error="keep")
    with pytest.raises(InvalidParameter, match=r"kept rows of below/c\.parquet cannot be written to file:"):
        likewise.dedup_files(inputs, url, RECIPE, run=run, engine=engine)
    shutil.rmtree(inputs / "below")
    with pytest.raises(InvalidParameter, match="requires a checkpoint directory"):
        likewise.dedup_files(inputs, url, RECIPE, run=run, engine=SparkEngine("local[2]"))
    local = likewise.dedup_files(inputs, tmp_path / "local", RECIPE, run=run)
    found = likewise.dedup_files(inputs, url, RECIPE, run=run, engine=engine)
    for name in ("a.jsonl", "b.jsonl.gz", "d.csv", "e.jsonl", "f.jsonl"):
        wanted = (tmp_path / "local" / "kept" / name).read_bytes()
        # The last line of this file has no line end, but Spark ends each line.
        wanted = gzip.decompress(wanted) + b"\n" if name.endswith(".gz") else wanted
        # A file without lines has no directory.
        assert b"".join(path.read_bytes() for path in out.glob(f"kept/file={name}/part-*")) == wanted, name
    evidence = pq.read_table(tmp_path / "local" / "removed.parquet")
    parts = spark.read.parquet(f"{url}/removed.parquet").orderBy("row").toArrow()
    assert parts.to_pylist() == evidence.to_pylist()
    errors = [path.read_text() for path in sorted(out.glob("errors.jsonl/part-*"))]
    lines = (tmp_path / "local" / "errors.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in "".join(errors).splitlines()] == [json.loads(line) for line in lines]
    written = json.loads("".join(path.read_text() for path in out.glob("summary.json/part-*")))
    assert written == json.loads(json.dumps(found))
    del local["shrunk"]
    assert {**local, "timings": 0, "num_measured": 0} == {**found, "timings": 0, "num_measured": 0}
    with pytest.raises(InvalidInput, match="contains a finished run"):
        likewise.dedup_files(inputs, url, RECIPE, run=run, engine=engine)


def test_a_run_at_a_url_that_is_replaced_leaves_nothing(spark, tmp_path, monkeypatch):
    from likewise.batch import files
    from likewise.batch.spark.files import engine as engines
    from likewise.job import output
    from likewise.spark import SparkEngine

    for module in (files, output):
        monkeypatch.setattr(module, "is_remote", lambda name: str(name).startswith("file:"))
    monkeypatch.setattr(SparkEngine, "is_on_this_machine", False)
    source, out = tmp_path / "a.jsonl", tmp_path / "out"

    def rerun(number, **options):
        engine = SparkEngine("local[2]", checkpoint_dir=str(tmp_path / f"stages{number}"))
        likewise.dedup_files(source, out.as_uri(), RECIPE, engine=engine, **options)

    def lines(name):
        return "".join(path.read_text() for path in out.glob(f"{name}/**/part-*"))

    row = '{"id": "a", "text": "a few words about a library"}\n'
    source.write_text(row + "no JSON\n")
    rerun(1, run=FileRun(on_error="keep"))
    assert lines("kept").startswith(row)
    assert lines("errors.jsonl")
    source.write_text(row.replace("few", "lot"))

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(engines, "evidence", killed)
        with pytest.raises(KeyboardInterrupt):
            rerun(2, write="evidence", overwrite=True)
    # The old summary no longer describes what is there.
    assert lines("summary.json") == ""
    rerun(2, write="evidence", overwrite=True)
    assert (lines("kept"), lines("errors.jsonl")) == ("", "")
    assert '"num_documents": 1' in lines("summary.json")


@pytest.mark.slow
def test_an_id_that_comes_twice_is_refused_as_in_a_local_run(spark, tmp_path):
    from likewise.spark import SparkEngine

    rows = [{"text": "one text"}, {"id": "b", "text": "two"}, {"id": "c", "text": "three"}, {"id": "b", "text": "four"}]
    rows += [{"id": "c", "text": "five"}, {"id": "one.jsonl:1", "text": "six"}]
    (tmp_path / "one.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:3]))
    (tmp_path / "two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[3:]))
    inputs = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    told = []
    for engine in (None, SparkEngine("local[2]")):
        with pytest.raises(InvalidInput) as caught:
            likewise.dedup_files(inputs, tmp_path / "out", RECIPE, engine=engine)
        told.append(str(caught.value))
    assert "the id 'b' is already used in one.jsonl:2" in told[0]
    assert told[0] == told[1]
