"""The tables find every fingerprint within the radius, of every width, and nothing else."""

import numpy as np
import pytest

import likewise
from likewise.errors import InvalidParameter
from likewise.index.redis.layout import layout_of


def planted(bits, within, seed):
    """Return fingerprints and, for each, others at all distances around the radius, errors spread or in one block."""
    rng = np.random.default_rng(seed)
    num_words = -(-bits // 64)
    base = rng.integers(0, 2**64, (12, num_words), dtype=np.uint64)
    if bits % 64:
        base[:, -1] >>= np.uint64(64 - bits % 64)
    flat = [base]
    for distance in range(within + 3):
        near = base.copy()
        for row in near:
            places = rng.choice(bits, distance, replace=False) if rng.random() < 0.7 else np.arange(distance) + 16
            for place in places.tolist():
                row[place // 64] ^= np.uint64(1 << place % 64)
        flat.append(near)
    return np.concatenate(flat)


def sketches(words, recipe):
    array = words[:, 0] if words.shape[1] == 1 else words
    return likewise.Sketches(array, recipe, np.zeros(len(words), bool), np.full(len(words), 1000, np.uint32))


@pytest.mark.parametrize(
    ("bits", "within", "layout"),
    [(64, within, "packed") for within in range(8)]
    + [(32, 7, "packed"), (32, 2, "packed"), (96, 5, "packed"), (128, 7, "packed"), (256, 4, "packed")]
    + [(64, 0, "classic"), (64, 3, "classic"), (128, 2, "classic")],
)
def test_every_neighbor_is_found(open_index, bits, within, layout):
    recipe = likewise.Recipe.simhash(within=within, bits=bits)
    words = planted(bits, within, seed=bits + within)
    index = open_index(recipe, layout=layout)
    # Added to the tables unconditionally, even if they match each other.
    from likewise.index.redis.arrivals import arrivals_of

    layout_ = layout_of(recipe, layout)
    for i in range(len(words)):
        arrivals = arrivals_of(sketches(words[i : i + 1], recipe), recipe, layout_, 1)
        flags, hashes = b"\x03", np.array([i], "<u8").tobytes()
        columns = arrivals.raw.tobytes(), flags, b"\0", b"\xff" * 4, b"\0", bytes(4), hashes, b"\1\0\0\0", b"x"
        state = index._reader.begin()
        proof = (state.steps, state.mark, state.num_rows, state.epoch, i, "")
        assert index._writer._send("commit", b"", *proof, *columns, bytes(4), b"") == (b"ok", i)
    _, hits, _ = index._reader.look(layout_.fingerprint_bytes(words), None)
    distances = np.bitwise_count(words[:, None, :] ^ words[None, :, :]).sum(axis=2)
    query, row = np.nonzero(distances <= within)
    assert hits.query.tolist() == query.tolist()
    assert hits.row.tolist() == row.tolist()
    assert hits.distance.tolist() == distances[query, row].tolist()


def test_radii_that_no_layout_serves_are_refused():
    with pytest.raises(InvalidParameter, match="at most 7"):
        layout_of(likewise.Recipe.simhash(within=8), "packed")
    with pytest.raises(InvalidParameter, match="layout packed at most 7"):
        layout_of(likewise.Recipe.simhash(within=4), "classic")
    with pytest.raises(InvalidParameter, match="at least 64 bits"):
        layout_of(likewise.Recipe.simhash(within=3, bits=32), "classic")
    with pytest.raises(InvalidParameter, match="'packed'"):
        layout_of(likewise.Recipe.simhash(within=3), "wide")


@pytest.mark.parametrize("within", range(8))
def test_radii_of_the_blocks_are_complete(within):
    layout = layout_of(likewise.Recipe.simhash(within=within), "packed")
    radii = [int(np.bitwise_count(masks).max()) if len(masks) else -1 for masks in layout.probes]
    assert sum(radius + 1 for radius in radii) == within + 1


def test_only_documents_of_the_same_value_match(open_index):
    index = open_index(likewise.Recipe.simhash(within=3, only_within="site"))
    text = " ".join(f"word{number}" for number in range(60))
    found = index.add_batch(["a", "b", "c"], [("x", text), ("y", text), ("y", text.upper())])
    assert found.kept_ids == [None, None, "b"]
    assert index.check(("z", text)).is_new
    assert [near.doc_id for near in index.neighbors(("x", text))] == ["a"]
