"""The summary of a finished run, read and checked: all fields must be present and have the right type."""

import json
import math
from pathlib import Path
from typing import Any

from likewise.errors import InvalidInput
from likewise.io.output.directory import SUMMARY
from likewise.recipe.valley import MEASURES, REASONS

_TEXT, _COUNT, _NUMBER = (str,), (int,), (int, float)
_MAYBE_TEXT, _MAYBE_COUNT, _MAYBE_NUMBER = (str, type(None)), (int, type(None)), (int, float, type(None))

# Fields of every run.
_FIELDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("verification", "recipe_id", "version"), _TEXT),
    **dict.fromkeys(("num_documents", "num_kept", "num_removed", "num_bad_rows", "num_blank_lines"), _COUNT),
    **dict.fromkeys(("recipe", "options", "timings"), (dict,)),
    **dict.fromkeys(("num_capped", "num_crowded"), _COUNT),
    "inputs": (list,),
    "recall": _MAYBE_NUMBER,
}
# Fields of runs over whole documents.
_FIELDS_OF_DOCUMENTS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("num_empty", "num_short", "num_measured"), _COUNT),
    **dict.fromkeys(("num_candidates", "num_below_threshold"), _MAYBE_COUNT),
    "sketch_id": _TEXT,
    "input_directory": _MAYBE_TEXT,
}
_FIELDS_OF_INPUTS: dict[str, tuple[type, ...]] = {
    "path": _TEXT,
    **dict.fromkeys(("num_bytes", "num_documents", "num_kept", "num_bad_rows"), _COUNT),
}
_OPTIONS: dict[str, tuple[type, ...]] = {
    "text_field": (list,),
    **dict.fromkeys(("id_field", "format", "delimiter", "quote"), _MAYBE_TEXT),
    **dict.fromkeys(("on_error", "write"), _TEXT),
    "max_document": _COUNT,
}
_TIMINGS: dict[str, tuple[type, ...]] = {"total_s": _NUMBER, "wall_s": (dict,)}
# Fields of runs that chose their threshold.
_CHOICE: dict[str, tuple[type, ...]] = {
    "threshold": _NUMBER,
    **dict.fromkeys(("num_documents", "num_sampled", "num_documents_below", "num_documents_above"), _COUNT),
    **dict.fromkeys(("measure", "weights"), _TEXT),
    "reason": _MAYBE_TEXT,
    "density": (list,),
    "halves": (list,),
    "is_stable": (bool,),
}

# Fields that only summaries of other commands have, and the commands.
_OTHER_COMMANDS = {
    "splits": "leaks",
    "num_contaminated": "decontaminate",
    "num_given": "copies",
    "num_sites": "boilerplate",
}


def read_other(run: Path) -> tuple[str, dict[str, Any]] | None:
    """Return the command that made the output and its summary; None if it was a deduplication."""
    summary = _loaded(run)
    for key, command in _OTHER_COMMANDS.items():
        if isinstance(summary, dict) and key in summary:
            return command, summary
    return None


def _loaded(run: Path) -> Any:
    try:
        return json.loads((run / SUMMARY).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InvalidInput("no finished run here (no summary.json)", str(run)) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"cannot read the summary: {error}", str(run / SUMMARY)) from error


def read_summary(run: Path) -> dict[str, Any]:
    """Return the summary of a finished run."""
    summary = _loaded(run)
    if (other := read_other(run)) is not None:
        raise InvalidInput(f"this is the output of likewise {other[0]}, not of a deduplication", str(run))
    wrong = "recipe_id" if not isinstance(summary, dict) else _wrong(summary)
    if wrong is not None:
        raise InvalidInput(
            f"not a Likewise summary, or damaged: {wrong} is missing or has the wrong type; run again",
            str(run / SUMMARY),
        )
    return dict(summary)


def check_single_rows(summary: dict[str, Any], path: Path) -> None:
    """Raise InvalidInput if a run joined rows into documents, which no later run can use."""
    field = summary.get("options", {}).get("document_by")
    if field is not None:
        raise InvalidInput(
            f"this run joined rows (--document-by {field}), and is no reference for other runs; give its inputs or "
            "kept files, with one row for each document",
            str(path),
        )


def is_over_parts(summary: dict[str, Any]) -> bool:
    """Return whether this is the summary of a run of ``likewise repeats``."""
    return bool(summary.get("options", {}).get("unit"))


def is_report_only(run: Path) -> bool:
    """Return whether a finished run has no groups of documents to show."""
    return read_other(run) is not None or is_over_parts(read_summary(run))


def _wrong(summary: dict[str, Any]) -> str | None:
    """Return the name of a field that is missing or has the wrong type, or None."""
    wrong = _wrong_of(summary, _FIELDS, "")
    if wrong is not None:
        return wrong
    if not is_over_parts(summary):
        wrong = _wrong_of(summary, _FIELDS_OF_DOCUMENTS, "")
    for entry in summary["inputs"]:
        wrong = wrong or _wrong_of(entry, _FIELDS_OF_INPUTS, " of an input")
    wrong = wrong or _wrong_of(summary["options"], _OPTIONS, " in the options")
    wrong = wrong or _wrong_of(summary["timings"], _TIMINGS, " in the timings")
    if wrong is None and not all(isinstance(name, str) for name in summary["options"]["text_field"]):
        wrong = "text_field in the options"
    if wrong is None and not all(_is_of(seconds, _NUMBER) for seconds in summary["timings"]["wall_s"].values()):
        wrong = "wall_s in the timings"
    if wrong is None and "chosen_threshold" in summary:
        wrong = _wrong_of_choice(summary["chosen_threshold"])
    return wrong


def _wrong_of_choice(choice: Any) -> str | None:
    where = " in chosen_threshold"
    wrong = _wrong_of(choice, _CHOICE, where)
    if wrong is not None:
        return wrong
    if choice["measure"] not in MEASURES:
        return f"measure{where}"
    if choice["reason"] not in (None, *REASONS):
        return f"reason{where}"
    # Only a valley has a clarity.
    wrong = _wrong_of(choice, {"clarity": _NUMBER if choice["reason"] is None else (type(None),)}, where)
    if wrong is None and not _is_pair(choice["halves"]):
        wrong = f"halves{where}"
    if wrong is not None:
        return wrong
    return None if choice["density"] and all(map(_is_pair, choice["density"])) else f"density{where}"


def _is_pair(values: object) -> bool:
    """Return whether this is a list of two numbers."""
    return isinstance(values, list) and len(values) == 2 and all(_is_of(value, _NUMBER) for value in values)


def _wrong_of(values: object, fields: dict[str, tuple[type, ...]], where: str) -> str | None:
    for name, types in fields.items():
        if not isinstance(values, dict) or name not in values or not _is_of(values[name], types):
            return f"{name}{where}"
    return None


def _is_of(value: object, types: tuple[type, ...]) -> bool:
    """Return whether a value has one of the types and, if a float, is finite."""
    return isinstance(value, types) and not (isinstance(value, float) and not math.isfinite(value))
