"""Documents made from one template."""

import time

import pytest

import likewise


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"threshold": 0.55}, {"threshold": 0.8, "measure": "containment"}])
def test_an_exact_join_of_templates_grows_with_the_documents_not_with_their_pairs(options):
    """60% of 200 tokens come from the template: no pair reaches the threshold, and almost none is examined."""
    template = [f"t{i}" for i in range(120)]

    def seconds(num_documents):
        """Return processor seconds, the lesser of two runs: other processes do not count."""
        texts = [" ".join([*template, *(f"x{i}q{j}" for j in range(80))]) for i in range(num_documents)]
        found = []
        for _ in range(2):
            began = time.process_time()
            result = likewise.dedup(texts, likewise.Recipe.shingles(shingle=1, **options), threads=1)
            found.append(time.process_time() - began)
            assert result.kept.all()
        return min(found)

    seconds(500)
    # Pair by pair, four times as many documents would take sixteen times as long.
    assert seconds(16_000) < 8 * seconds(4_000)
