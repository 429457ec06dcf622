"""Which recipe and threshold fit a collection, from pairs that people labelled."""

from likewise.tune.choice import Measured, measured
from likewise.tune.labels import Label, Labels, read_labels, write_labels
from likewise.tune.proposal import Proposal, Tried
from likewise.tune.questions import Questions
from likewise.tune.tuning import Tuner, open_tuner, tune_files, write_recipe

__all__ = [
    "Label",
    "Labels",
    "Measured",
    "Proposal",
    "Questions",
    "Tried",
    "Tuner",
    "measured",
    "open_tuner",
    "read_labels",
    "tune_files",
    "write_labels",
    "write_recipe",
]
