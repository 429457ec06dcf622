"""Columns of every layout, and datasets of PyArrow, give the verdicts of plain columns."""

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import likewise
from likewise.batch.files import dedup_files
from tests.golden.texts import made_up

TEXTS = [made_up(30, number) for number in (1, 1, 2, 3, 3, 4)]
HALVES = [[text[:40], text[40:]] for text in TEXTS]
EXPECTED = likewise.dedup(["\n".join(one) for one in HALVES], likewise.Recipe.minhash(0.9))
LAYOUTS = {
    "list": pa.list_(pa.string()),
    "large list": pa.large_list(pa.string()),
    "fixed list": pa.list_(pa.string(), 2),
    "list view": pa.list_view(pa.string()),
    "large list view": pa.large_list_view(pa.string()),
    "views in a list view": pa.list_view(pa.string_view()),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lists_of_texts(layout, tmp_path):
    column = pa.array([*HALVES, *HALVES], LAYOUTS[layout])
    for table in (pa.table({"t": column}).slice(6), pa.table({"t": pa.chunked_array([column[:2], column[2:6]])})):
        for name in ("t", "t[]"):
            found = likewise.dedup(table, likewise.Recipe.minhash(0.9), text_field=name)
            assert found.removed.equals(EXPECTED.removed), name
    for alone in (column[6:], pa.chunked_array([column[:2], column[2:6]])):
        assert likewise.dedup(alone, likewise.Recipe.minhash(0.9)).removed.equals(EXPECTED.removed)
    with pa.ipc.new_file(tmp_path / "in.arrow", table.schema) as file:
        file.write_table(table)
    summary = dedup_files(tmp_path / "in.arrow", tmp_path / "out", likewise.Recipe.minhash(0.9), text_field="t[]")
    assert summary["num_kept"] == EXPECTED.kept.sum()


def test_run_end_encoded_texts_and_ids(tmp_path):
    texts, runs = ["\n".join(one) for one in HALVES], [2, 3, 5, 6]
    column = pa.RunEndEncodedArray.from_arrays(runs, [texts[0], texts[2], texts[3], texts[5]])
    table = pa.table({"text": column, "id": [f"d{number}" for number in range(6)]})
    for part in (table, pa.concat_tables([table.slice(0, 3), table.slice(3)])):
        assert likewise.dedup(part, likewise.Recipe.minhash(0.9)).kept.tolist() == EXPECTED.kept.tolist()
        assert likewise.dedup(part["text"], likewise.Recipe.minhash(0.9)).kept.tolist() == EXPECTED.kept.tolist()
    with pa.ipc.new_file(tmp_path / "in.arrow", table.schema) as file:
        file.write_table(table)
    dedup_files(tmp_path / "in.arrow", tmp_path / "out", likewise.Recipe.minhash(0.9))
    kept = pa.ipc.open_file(tmp_path / "out" / "kept" / "in.arrow").read_all()
    assert kept.schema == table.schema
    assert kept["id"].to_pylist() == [f"d{row}" for row, is_kept in enumerate(EXPECTED.kept) if is_kept]


def test_datasets_and_scanners_of_pyarrow(tmp_path):
    table = pa.table({"body": ["\n".join(one) for one in HALVES], "n": range(6)})
    for number in range(3):
        ds.write_dataset(table.slice(2 * number, 2), tmp_path / "set" / f"{number}", format="parquet")
    dataset = ds.dataset(tmp_path / "set")
    for data in (dataset, dataset.scanner(batch_size=1), dataset.scanner(columns=["body"])):
        found = likewise.dedup(data, likewise.Recipe.minhash(0.9), text_field="body")
        assert found.removed.equals(EXPECTED.removed)
        assert found.kept.tolist() == EXPECTED.kept.tolist()
    assert likewise.dedup(dataset, "body").kept.tolist() == EXPECTED.kept.tolist()
    with pytest.raises(likewise.InvalidInput, match="no column 'text' in the stream; found: 'body', 'n'"):
        likewise.dedup(dataset)
    few = likewise.dedup(dataset.scanner(filter=ds.field("n") > 2), likewise.Recipe.minhash(0.9), text_field="body")
    assert few.kept.tolist() == [True, False, True]
