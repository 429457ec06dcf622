"""Binary files as bytes: builds of the same module are found, other modules are not."""

import csv
import tarfile

import pytest

import likewise
from tests.conftest import LABELED

FOLDER = LABELED / "bin-wheels"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "threshold"), [({"tokens": "bytes"}, 0.2), ({"tokens": "chunks", "chunk_bytes": 256}, 0.05)]
)
def test_builds_of_one_module(options, threshold):
    if not FOLDER.is_dir():
        pytest.skip("labeled set bin-wheels is not at ../shared/data")
    with tarfile.open(FOLDER / "files.tar.xz") as archive:
        members = [member for member in archive if member.isfile()]
        files = {member.name.rpartition("/")[2]: archive.extractfile(member).read() for member in members}
    with (FOLDER / "pairs.tsv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    labels = {frozenset((row["id1"], row["id2"])): int(row["label"]) for row in rows}
    found = likewise.pairs(list(files.values()), likewise.Recipe.shingles(threshold, **options))
    names = list(files)
    places = zip(found["row_a"].to_pylist(), found["row_b"].to_pylist(), strict=True)
    hits = [labels.get(frozenset((names[a], names[b])), 0) for a, b in places]
    num_right, num_wrong = hits.count(1), hits.count(0)
    num_positives = list(labels.values()).count(1)
    assert 2 * num_right / (num_right + num_wrong + num_positives) >= 0.99
