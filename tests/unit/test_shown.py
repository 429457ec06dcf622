"""A result is shown in one line, however many documents it has."""

import likewise

NUM = 3000


def test_results_are_shown_in_a_line(tmp_path):
    texts = [f"document {i % 2000}" for i in range(NUM)]
    sketches = likewise.sketch(texts, likewise.Recipe.simhash(bits=64))
    assert repr(sketches) == f"<Sketches: simhash, 3000 uint64, sketch_id {sketches.recipe.sketch_id}>"
    assert (
        repr(likewise.dedup(texts))
        == "<Deduplication of 3,000 documents: 2,000 kept, 1,000 removed; jaccard >= 0.5, few pairs>"
    )
    with likewise.Index(tmp_path / "seen.lw") as index:
        verdicts = index.add_batch(range(NUM), texts)
        assert repr(verdicts) == "<Verdicts on 3,000 documents by jaccard: 2,000 new, 1,000 not>"
        assert repr(index.check_batch([])) == "<Verdicts on 0 documents by jaccard: 0 new, 0 not>"


def test_one_sketch_is_asked_as_one_text(tmp_path):
    recipe = likewise.Recipe.simhash(within=3)
    sketches = likewise.sketch(["word " * 3 + " ".join(map(str, range(100)))], recipe)
    with likewise.Index(tmp_path / "seen.lw", recipe) as index:
        assert index.check_and_add("a", sketches).is_new
        assert index.check(sketches).kept_id == "a"
