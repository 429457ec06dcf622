"""The Polars namespaces: frames, lazy frames, series and expressions give the results of the plain call."""

import warnings

import numpy as np
import pytest

import likewise
from likewise.errors import InvalidInput
from tests.integrations.documents import RECIPE, plain

pl = pytest.importorskip("polars", reason="polars is not installed")

import likewise.integrations.polars  # noqa: E402

A, B, C = "one fine day in may by the sea", "One fine day in May, by the sea!", "another text of which nobody knows"
TEXTS = [A, None, C, B, None]


def test_all_forms_give_the_verdicts_of_the_plain_call():
    texts, expected = plain()
    frame = pl.DataFrame({"number": range(len(texts)), "text": texts})
    kept = np.flatnonzero(expected.kept).tolist()
    groups = expected.groups.to_pylist()
    column = pl.col("text").likewise
    assert frame.likewise.dedup("text", RECIPE)["number"].to_list() == kept
    assert frame.lazy().likewise.dedup("text", RECIPE).collect()["number"].to_list() == kept
    assert frame["text"].likewise.dedup(RECIPE).to_list() == [texts[row] for row in kept]
    # The streaming engine passes morsels of rows, yet the answer is that of the whole column.
    for engine in ("in-memory", "streaming"):
        found = frame.lazy().select("number", group=column.groups(RECIPE)).collect(engine=engine)
        assert found["group"].to_list() == groups
        found = frame.lazy().filter(column.is_kept(RECIPE)).collect(engine=engine)
        assert found["number"].to_list() == kept
    assert frame.likewise.groups("text", RECIPE).to_list() == groups
    assert frame["text"].likewise.groups(RECIPE).to_list() == groups
    assert frame.likewise.labels("text", RECIPE).equals(pl.from_arrow(expected.table()))


def test_a_filter_behind_a_lazy_step_sees_the_rows_that_are_kept():
    lazy = pl.LazyFrame({"number": [1, 2, 3], "text": [A, C, B]}).likewise.dedup("text", RECIPE)
    assert lazy.filter(pl.col("number") > 1).collect()["number"].to_list() == [2]
    assert lazy.select("number").collect()["number"].to_list() == [1, 2]
    assert lazy.slice(1).collect()["number"].to_list() == [2]
    assert lazy.collect_schema() == pl.Schema({"number": pl.Int64, "text": pl.String})


def test_a_query_that_has_not_run_is_refused_without_a_warning():
    lazy = pl.LazyFrame({"id": [1, 2], "body": [A, A]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ask in (likewise.dedup, likewise.pairs, likewise.sketch, lambda frame: likewise.dedup(frame, "body")):
            with pytest.raises(likewise.InvalidInput, match=r"give its result, frame\.collect\(\)"):
                ask(lazy)


def test_expressions_in_groups_are_of_each_group():
    frame = pl.DataFrame({"site": ["x", "x", "y", "y"], "text": [A, B, B, C]})
    kept = frame.with_columns(kept=pl.col("text").likewise.is_kept(RECIPE).over("site"))
    assert kept["kept"].to_list() == [True, False, True, True]


@pytest.mark.parametrize(
    "fields", [{"method": "simhash", "bits": 64}, {"method": "simhash", "bits": 128}, {}, {"threshold": 0.9}]
)
def test_sketches_are_those_of_the_function(fields):
    texts = [A, B, C, ""]
    array = likewise.sketch(texts, **fields).array
    expected = (array.view(np.int64) if array.dtype == np.uint64 else array).tolist()
    series = pl.Series("t", texts)
    assert series.likewise.sketch(**fields).to_list() == expected
    lazy = series.to_frame().lazy().select(pl.col("t").likewise.sketch(**fields))
    assert lazy.collect_schema() == lazy.collect().schema
    assert lazy.collect()["t"].to_list() == expected
    with_nulls = pl.Series("t", [None, A, None, B, C, "", None]).likewise.sketch(**fields)
    assert with_nulls.to_list() == [None, expected[0], None, *expected[1:], None]
    assert pl.Series("t", [None, None], dtype=pl.String).likewise.sketch(**fields).to_list() == [None, None]


def test_fingerprints_from_each_source_are_compared_by_their_bits(tmp_path):
    texts = plain()[0][:200]
    sketches = likewise.sketch(texts, "classic-simhash")
    assert (sketches.array >= 2**63).any()
    sketches.write(tmp_path / "sketches.parquet")
    frame = pl.DataFrame({"text": texts, "array": sketches.array}).with_columns(
        pl.read_parquet(tmp_path / "sketches.parquet")["sketch"].alias("file"),
        called=pl.col("text").likewise.sketch("classic-simhash"),
    )
    assert (frame["file"] == frame["called"]).all()
    turned = pl.col("array") ^ pl.lit(2**63 + 5, pl.UInt64)
    for a in ("file", "called", "array"):
        for b in ("file", "called", "array"):
            assert frame[a].likewise.hamming(frame[b]).to_list() == [0] * len(texts)
            assert frame.select(pl.col(a).likewise.hamming(pl.col(b)))[a].to_list() == [0] * len(texts)
            assert frame.select(pl.col(a).likewise.hamming(b))[a].to_list() == [0] * len(texts)
        assert frame.select(pl.col(a).likewise.hamming(turned))[a].to_list() == [3] * len(texts)


def test_tokens():
    series = pl.Series("t", ["One, TWO!", None, ""])
    assert series.likewise.tokens().to_list() == [["one", "two"], None, []]
    found = series.to_frame().lazy().select(pl.col("t").likewise.tokens())
    assert found.collect_schema()["t"] == pl.List(pl.String)
    assert found.collect()["t"].to_list() == [["one", "two"], None, []]
    assert series.likewise.tokens(likewise.Recipe.minhash(0.8, tokens="char")).to_list()[0][:3] == ["o", "n", "e"]


def test_nulls_follow_their_option():
    frame = pl.DataFrame({"text": TEXTS})
    for call in (frame.likewise.dedup, frame.lazy().likewise.dedup):
        for nulls, kept in (("keep", [A, None, C, None]), ("drop", [A, C])):
            assert call("text", RECIPE, nulls=nulls).lazy().collect()["text"].to_list() == kept
    assert frame["text"].likewise.dedup(RECIPE, nulls="drop").to_list() == [A, C]
    assert frame["text"].likewise.groups(RECIPE, nulls="keep").to_list() == [0, 1, 2, 0, 4]
    for fails in (lambda: frame.likewise.dedup("text"), frame["text"].likewise.dedup):
        with pytest.raises(InvalidInput, match=r"the text is null.*nulls="):
            fails()


def test_ids_and_missing_columns():
    frame = pl.DataFrame({"id": [7, 8, 9], "text": [A, C, B], "object": pl.Series([object()] * 3, dtype=pl.Object)})
    assert frame.likewise.groups("text", RECIPE).to_list() == [7, 8, 7]
    assert frame.likewise.dedup("text", RECIPE, keep="max:id")["id"].to_list() == [8, 9]
    with pytest.raises(InvalidInput, match=r"no column 'words'.*found: 'id', 'text', 'object'.*text_field"):
        frame.likewise.dedup("words")
