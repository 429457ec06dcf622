"""Choice of a recipe and threshold for a collection from labeled pairs."""

from likewise.tuning.choice import Measured, Proposal, Tried, measured
from likewise.tuning.labels import Label, Labels, as_labels, read_labels, write_labels
from likewise.tuning.questions import Questions
from likewise.tuning.tuning import Tuner, open_tuner, tune, tune_files, write_recipe

__all__ = [
    "Label",
    "Labels",
    "Measured",
    "Proposal",
    "Questions",
    "Tried",
    "Tuner",
    "as_labels",
    "measured",
    "open_tuner",
    "read_labels",
    "tune",
    "tune_files",
    "write_labels",
    "write_recipe",
]
