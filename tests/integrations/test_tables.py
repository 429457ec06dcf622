"""Tables of Lance, Delta and Iceberg: folders and objects of their libraries as inputs, with the verdicts of JSONL."""

import json
import struct
import sys

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.files import dedup_files
from likewise.errors import InvalidInput, LikewiseError
from likewise.io.inputs import find_inputs
from likewise.io.source.source import ReadRules
from likewise.job.reading import FileRun
from likewise.runs.audit import audit
from tests.files import jsonl
from tests.integrations.documents import texts
from tests.io.test_samples import ROWS as SAMPLES
from tests.io.test_samples import samples, write_tar

RECIPE = likewise.Recipe.minhash(0.55)
ROWS = [
    {"id": f"d{number}", "text": text, "tags": [number, 1], "part": "ab"[number % 2], "parts": [text[:9], text[9:]]}
    for number, text in enumerate(texts(600))
]
TABLE = pa.Table.from_pylist(ROWS)
KINDS = {"Lance": "lance", "Delta": "deltalake", "Iceberg": "pyiceberg"}


class Stored:
    """A table that is changed by its own library."""

    def __init__(self, kind, folder):
        self.kind, self.folder = kind, folder
        self.library = pytest.importorskip(KINDS[kind], reason=f"{KINDS[kind]} is not installed")
        if kind == "Iceberg":
            sql = pytest.importorskip("pyiceberg.catalog.sql")
            place = folder.parent / "catalog"
            place.mkdir(parents=True)
            catalog = sql.SqlCatalog("c", uri=f"sqlite:///{place}/c.db", warehouse=place.as_uri())
            catalog.create_namespace("n")
            self.catalog = catalog

    def write(self, rows, mode="append", **options):
        if self.kind == "Lance":
            self.library.write_dataset(rows, str(self.folder), mode=mode if self.folder.exists() else "create")
        elif self.kind == "Delta":
            self.library.write_deltalake(self.folder, rows, mode=mode, **options)
        else:
            if not self.catalog.table_exists("n.t"):
                self.catalog.create_table("n.t", rows.schema, location=self.folder.as_uri())
            getattr(self.catalog.load_table("n.t"), mode)(rows)

    def delete(self, condition):
        self.table().delete(condition)

    def compact(self):
        if self.kind == "Iceberg":
            self.write(self.live(), "overwrite")
        else:
            optimize = self.table().optimize
            optimize.compact_files() if self.kind == "Lance" else optimize.compact()

    def table(self):
        if self.kind == "Iceberg":
            return self.catalog.load_table("n.t")
        return self.library.dataset(str(self.folder)) if self.kind == "Lance" else self.library.DeltaTable(self.folder)

    def live(self):
        return read(self.kind, self.folder) if self.kind != "Iceberg" else self.table().scan().to_arrow()


def read(kind, folder):
    if kind == "Iceberg":
        return pq.read_table(folder)
    library = pytest.importorskip(KINDS[kind])
    return library.dataset(str(folder)).to_table() if kind == "Lance" else library.DeltaTable(folder).to_pyarrow_table()


@pytest.fixture(params=KINDS)
def stored(request, tmp_path):
    return Stored(request.param, tmp_path / "lake" / "docs")


def removed(out):
    table = pq.read_table(out / "removed.parquet")
    return sorted(zip(*(table[name].to_pylist() for name in ("doc_id", "kept_id", "similarity")), strict=True))


def check(stored, tmp_path, name):
    """Check that a table as it is now has the verdicts of its rows as JSON Lines, in the order read; return the ids."""
    file = find_inputs([stored.folder], ReadRules(text_fields=("text",))).files[0]
    ids = [one for job in file.jobs(1 << 20, tmp_path) for piece in job.read() for one in piece.ids.to_list()]
    rows = {row["id"]: row for row in stored.live().to_pylist()}
    assert sorted(ids) == sorted(rows)
    plain = jsonl(tmp_path / f"{name}.jsonl", [rows[one] for one in ids])
    expected = dedup_files(plain, tmp_path / f"{name}-plain", RECIPE)
    summary = dedup_files(stored.folder, tmp_path / name, RECIPE)
    assert removed(tmp_path / name) == removed(tmp_path / f"{name}-plain") != []
    assert summary["num_kept"] == expected["num_kept"]
    assert summary["inputs"][0]["path"] == "docs"
    assert summary["inputs"][0]["table"] == stored.kind
    kept = read(stored.kind, tmp_path / name / "kept" / "docs")
    mine = [json.loads(line) for line in (tmp_path / f"{name}-plain/kept/{name}.jsonl").read_text().splitlines()]
    assert sorted(kept.to_pylist(), key=lambda row: row["id"]) == sorted(mine, key=lambda row: row["id"])
    found = likewise.dedup(stored.table(), RECIPE)
    assert sorted(zip(found.removed["doc_id"].to_pylist(), found.removed["kept_id"].to_pylist(), strict=True)) == [
        row[:2] for row in removed(tmp_path / name)
    ]
    return ids


def test_rows_are_those_that_the_table_has(stored, tmp_path):
    stored.write(TABLE.slice(0, 400))
    assert check(stored, tmp_path, "first") == TABLE["id"].to_pylist()[:400]
    stored.write(TABLE.slice(400))
    assert check(stored, tmp_path, "appended") == TABLE["id"].to_pylist()
    stored.delete("id in ('d1', 'd2', 'd450')")
    assert len(check(stored, tmp_path, "deleted")) == 597
    stored.compact()
    assert len(check(stored, tmp_path, "compacted")) == 597
    stored.write(TABLE.slice(100, 200), "overwrite")
    assert check(stored, tmp_path, "overwritten") == TABLE["id"].to_pylist()[100:300]


def test_runs_over_tables_are_audited_and_used(stored, tmp_path):
    stored.write(TABLE)
    jsonl(stored.folder.parent / "more.jsonl", ROWS[:5])
    out = tmp_path / "out"
    summary = dedup_files(stored.folder.parent, out, RECIPE, run=FileRun(duplicate_ids="allow"))
    assert [file["path"] for file in summary["inputs"]] == ["docs", "more.jsonl"]
    assert audit(out).passed
    assert dedup_files(stored.folder, tmp_path / "none", RECIPE, against=[stored.folder])["num_kept"] == 0
    again = dedup_files(out / "kept", tmp_path / "again", RECIPE)
    assert again["num_kept"] == summary["num_kept"]
    listed = dedup_files(stored.folder, tmp_path / "lists", RECIPE, run=FileRun(text_fields=("parts[]",)))
    assert listed["num_documents"] == len(ROWS)
    dedup_files(stored.folder, tmp_path / "all", RECIPE, write="annotated")
    flags = read(stored.kind, tmp_path / "all" / "annotated" / "docs")
    assert sum(flags["is_kept"].to_pylist()) == dedup_files(stored.folder, tmp_path / "o", RECIPE)["num_kept"]
    stored.delete("id = 'd0'")
    assert not audit(out).passed


def test_what_cannot_be_read_is_told(stored, tmp_path):
    stored.write(TABLE.slice(0, 0))
    assert dedup_files(stored.folder, tmp_path / "empty", RECIPE)["num_documents"] == 0
    stored.write(TABLE)
    for run, message in (
        (FileRun(text_fields=("body",)), r"docs: no column 'body' \(found: 'id', 'text'"),
        (FileRun(text_fields=("tags",)), "docs: column 'tags' has type .*, not text"),
        (
            FileRun(file_format="parquet"),
            f"docs: a {stored.kind} table, read by its library; omit --format and",
        ),
    ):
        with pytest.raises(InvalidInput, match=message):
            dedup_files(stored.folder, tmp_path / "out", RECIPE, run=run)
    for path in stored.folder.rglob("*.parquet" if stored.kind != "Lance" else "*.lance"):
        with pytest.raises(InvalidInput, match=f"this folder belongs to an? {stored.kind} table, and its files also"):
            dedup_files(path, tmp_path / "out", RECIPE)
        path.write_bytes(b"damaged")
    with pytest.raises(InvalidInput, match=f"docs: the library of {stored.kind} tables reports: "):
        dedup_files(stored.folder, tmp_path / "out", RECIPE)


@pytest.mark.parametrize("kind", KINDS)
def test_an_absent_library_names_the_extra(kind, tmp_path, monkeypatch):
    for name in [*KINDS.values(), "pyiceberg.table"]:
        monkeypatch.setitem(sys.modules, name, None)
    mark = {"Lance": "_versions/1.manifest", "Delta": "_delta_log/0.json", "Iceberg": "metadata/v1.metadata.json"}[kind]
    (tmp_path / "docs" / mark).parent.mkdir(parents=True)
    (tmp_path / "docs" / mark).write_bytes(b"{}")
    with pytest.raises(LikewiseError, match=rf'the {kind} table docs requires .* "likewise\[{kind.lower()}\]"'):
        dedup_files(tmp_path / "docs", tmp_path / "out", RECIPE)


def test_partitions_of_delta_are_kept(tmp_path):
    stored = Stored("Delta", tmp_path / "docs")
    stored.write(TABLE, partition_by=["part"])
    ids = check(stored, tmp_path, "out")
    assert len(ids) == len(ROWS)
    assert sorted(path.name for path in (tmp_path / "out/kept/docs").iterdir()) == ["_delta_log", "part=a", "part=b"]


def test_deletion_vectors_of_delta_are_refused_but_in_a_scan(tmp_path):
    stored = Stored("Delta", tmp_path / "docs")
    stored.write(TABLE)
    log = stored.folder / "_delta_log"
    (add,) = [
        action["add"]
        for line in (log / f"{0:020}.json").read_text().splitlines()
        if "add" in (action := json.loads(line))
    ]
    rows = [1, 2]
    bitmap = struct.pack("<IIHHI2H", 12346, 1, 0, len(rows) - 1, 16, *rows)
    data = struct.pack("<iqI", 1681511377, 1, 0) + bitmap
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    words = [value for (value,) in struct.iter_unpack(">I", data + b"\0" * (-len(data) % 4))]
    z85 = "".join(digits[word // 85**place % 85] for word in words for place in (4, 3, 2, 1, 0))
    vector = {"storageType": "i", "pathOrInlineDv": z85, "sizeInBytes": len(data), "cardinality": len(rows)}
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"remove": {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}},
        {"add": {**add, "deletionVector": vector}},
    ]
    (log / f"{1:020}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    with pytest.raises(
        InvalidInput, match=r"uses deletionVectors, which deltalake reads in no fixed order; .* DROP FEATURE"
    ):
        dedup_files(stored.folder, tmp_path / "out", RECIPE)
    with pytest.raises(InvalidInput, match=r"uses deletionVectors, .* or give table.scan\(\) to dedup"):
        likewise.dedup(stored.table(), RECIPE)
    left = [row for number, row in enumerate(ROWS) if number not in rows]
    found = likewise.dedup(stored.table().scan(), RECIPE)
    assert found.kept.tolist() == likewise.dedup(pa.Table.from_pylist(left), RECIPE).kept.tolist()


def test_position_deletes_of_iceberg_are_applied(tmp_path):
    stored = Stored("Iceberg", tmp_path / "docs")
    stored.write(TABLE)
    delete_rows(stored.table(), [1, 2], tmp_path)
    ids = check(stored, tmp_path, "out")
    assert ids == [row["id"] for number, row in enumerate(ROWS) if number not in (1, 2)]


def delete_rows(table, rows, tmp_path):
    """Commit a file of position deletes, which the library reads but does not write."""
    from pyiceberg.manifest import (
        DataFile,
        DataFileContent,
        FileFormat,
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        ManifestWriterV2,
        write_manifest_list,
    )
    from pyiceberg.table.snapshots import Operation, Snapshot, Summary
    from pyiceberg.table.update import AddSnapshotUpdate, AssertTableUUID, SetSnapshotRefUpdate
    from pyiceberg.typedef import Record

    (data,) = [task.file.file_path for task in table.scan().plan_files()]
    place = f"{table.location()}/data/deletes.parquet"
    fields = [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
    ]
    pq.write_table(pa.table([[data] * len(rows), rows], schema=pa.schema(fields)), place.removeprefix("file://"))
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=place,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(rows),
        file_size_in_bytes=1000,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
    )
    file.spec_id = 0

    class Deletes(ManifestWriterV2):
        def content(self):
            return ManifestContent.DELETES

    snapshot_id, sequence, io = 77, table.metadata.last_sequence_number + 1, table.io
    output = io.new_output(f"{table.location()}/metadata/deletes-m0.avro")
    with Deletes(table.spec(), table.schema(), output, snapshot_id, "null") as writer:
        writer.add_entry(
            ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=snapshot_id, data_file=file)
        )
    manifests = [*table.current_snapshot().manifests(io), writer.to_manifest_file()]
    listed = f"{table.location()}/metadata/snap-77.avro"
    parent = table.current_snapshot().snapshot_id
    with write_manifest_list(2, io.new_output(listed), snapshot_id, parent, sequence, "null") as lists:
        lists.add_manifests(manifests)
    snapshot = Snapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=parent,
        sequence_number=sequence,
        manifest_list=listed,
        summary=Summary(Operation.DELETE),
        schema_id=table.schema().schema_id,
    )
    reference = SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=snapshot_id)
    table.catalog.commit_table(
        table, (AssertTableUUID(uuid=table.metadata.table_uuid),), (AddSnapshotUpdate(snapshot=snapshot), reference)
    )


def test_the_current_metadata_of_iceberg_is_known_or_asked_for(tmp_path):
    stored = Stored("Iceberg", tmp_path / "docs")
    stored.write(TABLE.slice(0, 200))
    stored.write(TABLE.slice(200))
    metadata = sorted((stored.folder / "metadata").glob("*.metadata.json"))
    (stored.folder / "metadata" / "version-hint.text").write_text(metadata[1].name.removesuffix(".metadata.json"))
    assert dedup_files(stored.folder, tmp_path / "old", RECIPE)["num_documents"] == 200
    (stored.folder / "metadata" / "version-hint.text").unlink()
    assert dedup_files(stored.folder, tmp_path / "new", RECIPE)["num_documents"] == 600
    metadata[-1].with_name("00002-other.metadata.json").write_bytes(metadata[-1].read_bytes())
    with pytest.raises(InvalidInput, match=r"have the same number, .* give catalog.load_table\(name\) to dedup\(\)"):
        dedup_files(stored.folder, tmp_path / "out", RECIPE)


def test_scans_and_scanners_are_read(stored):
    stored.write(TABLE)
    table = stored.table()
    if stored.kind == "Iceberg":
        part = table.scan(row_filter="part = 'a'")
    else:
        part = (table if stored.kind == "Lance" else table.to_pyarrow_dataset()).scanner(filter=ds.field("part") == "a")
    expected = likewise.dedup(TABLE.filter(ds.field("part") == "a"), RECIPE)
    found = likewise.dedup(part, RECIPE)
    assert found.kept.tolist() == expected.kept.tolist()
    assert found.removed.equals(expected.removed)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_webdataset_reads_the_kept_samples(tmp_path):
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
    write_tar(tmp_path / "in.tar", samples(SAMPLES))
    dedup_files(tmp_path / "in.tar", tmp_path / "out", RECIPE)
    read = [
        list(webdataset.WebDataset(str(tmp_path / name), shardshuffle=False)) for name in ("in.tar", "out/kept/in.tar")
    ]
    assert [(one["__key__"], one["txt"], one["seg.png"], one["json"]) for one in read[1]] == [
        (one["__key__"], one["txt"], one["seg.png"], one["json"]) for one in read[0][:40]
    ]
