"""Arrays passed to and from the native module: accepted inputs, outputs, and the mistakes that errors name."""

import numpy as np
import pytest

from likewise import _native
from likewise.errors import InvalidParameter


def leaders_states():
    return _native.Leaders(3).states


def test_an_array_is_a_read_only_view():
    array = leaders_states()
    view = np.asarray(array)
    assert view.dtype == np.uint8
    assert view.tolist() == [0, 0, 0]
    assert not view.flags.writeable
    assert not view.flags.owndata
    assert np.shares_memory(view, np.asarray(array))
    assert len(array) == 3
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.setflags(write=True)
    with pytest.raises(TypeError, match="read-only"):
        memoryview(array)[0] = 1
    assert bytes(memoryview(array)) == b"\0\0\0"
    del array
    assert view.tolist() == [0, 0, 0]


def test_every_type_comes_out_with_its_dtype():
    texts = _native.Texts.from_list(["a b", ""])
    rules = _native.FeatureRules("word", 1)
    offsets, features, weights = _native.features(texts, rules)
    assert np.asarray(offsets).dtype == np.int64
    assert np.asarray(features).dtype == np.uint64
    assert np.asarray(weights).dtype == np.uint32
    assert np.asarray(offsets).tolist() == [0, 2, 2]
    assert np.asarray(_native.Leaders(1).best_similarity).dtype == np.float64
    empty = np.asarray(_native.Leaders(0).states)
    assert empty.shape == (0,)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (np.zeros((2, 2), np.uint32), "2 dimensions"),
        (np.zeros(4, np.uint32)[::2], "strided"),
        (np.zeros(2, np.float32), "dtype float32"),
        (np.zeros(2, np.uint64), "dtype uint64"),
        (np.zeros(2, ">u4"), "dtype >u4"),
        (np.array(0, np.uint32), "0-D"),
        ([0, 1], "list"),
        (None, "NoneType"),
    ],
    ids=["2-D", "strided", "float", "wide", "big-endian", "0-D", "list", "None"],
)
def test_a_wrong_array_is_named(rows, found):
    other = np.zeros(2, np.uint32)
    with pytest.raises(InvalidParameter, match=found) as caught:
        _native.components(5, rows, other)
    assert caught.value.name == "later"


def test_read_only_and_empty_arrays_go_in():
    later = np.array([1, 2], np.uint32)
    later.setflags(write=False)
    earlier = np.frombuffer(b"\0\0\0\0\1\0\0\0", np.uint32)
    assert np.asarray(_native.components(4, later, earlier)).tolist() == [0, 0, 0, 3]
    nothing = np.zeros(0, np.uint32)
    assert np.asarray(_native.components(2, nothing, nothing)).tolist() == [0, 1]
    nothing.setflags(write=False)
    assert np.asarray(_native.components(2, nothing, nothing)).tolist() == [0, 1]


def test_rows_that_do_not_exist_are_refused():
    a = np.array([0, 7], np.uint32)
    with pytest.raises(InvalidParameter, match="later: 7 is not below 7"):
        _native.components(7, a, a)
    with pytest.raises(InvalidParameter, match="length"):
        _native.components(8, a, a[:1].copy())
    words = np.zeros(3, np.uint64)
    with pytest.raises(InvalidParameter, match="a: 7 is not below 3"):
        _native.distances(words, 64, a, a)
    with pytest.raises(InvalidParameter, match="words"):
        _native.distances(words, 128, a, a)
    with pytest.raises(InvalidParameter, match="bits"):
        _native.distances(words, 48, a, a)
    with pytest.raises(InvalidParameter, match="isa"):
        _native.use_isa("sse")
