"""Custom tokens with custom real weights on a server: verdicts computed by hand."""

from tests.index.classic import RECIPE, check_verdicts


def test_a_hundred_worked_verdicts(open_index):
    check_verdicts(open_index(RECIPE))
