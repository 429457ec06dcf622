"""Fields by name: suggestions for missing ones, and the number of documents without a field that `keep` needs."""

from collections.abc import Collection, Mapping

from likewise.batch.read.documents import Documents
from likewise.errors import InvalidInput
from likewise.io.source.source import BadRow, Source

# Start of the reason why a row without a named field is bad -> the option that names the field.
_MISSING = {"no field ": "--text-field", "no tokens field ": "--tokens-field", "no id field ": "--id-field"}
# JSON of a field without a value; "" if the field is absent.
NO_VALUE = frozenset(("", "null", "NaN"))
_MOST_FIELDS = 12
# Number of reference documents per file in which a field is looked for.
_MOST_LOOKED_AT = 20


def refusal(source: Source, bad: BadRow, renamed: Mapping[str, str] | None = None) -> InvalidInput:
    """Return the error for a bad row that is not skipped."""
    if source.name is None:
        return InvalidInput(bad.reason, None, bad.line)
    other = _other_fields(source, bad)
    rest = f"{other}, or skip such rows with" if other else "; fix the row, or use"
    message = f"{bad.reason}{rest} --on-error skip"
    for option, name in (renamed or {}).items():
        message = message.replace(option, name)
    return InvalidInput(message, source.name, bad.line + 1)


def is_without_text(bad: BadRow) -> bool:
    """Return whether a row is bad because it lacks the text field."""
    return _option(bad) == "--text-field"


def check_documents(documents: Documents) -> None:
    """Raise InvalidInput if there are no documents because no row has the text field, or the id field."""
    bad_rows = [
        (source, bad) for source, of_one in zip(documents.sources, documents.bad_rows, strict=True) for bad in of_one
    ]
    if len(documents) or not bad_rows or not all(_option(bad) for _, bad in bad_rows):
        return
    source, bad = bad_rows[0]
    none = "the only row is not a document" if len(bad_rows) == 1 else f"none of {len(bad_rows):,} rows is a document"
    raise InvalidInput(f"{none}: {bad.reason}{_other_fields(source, bad)}", source.name)


def num_without_field(
    documents: Documents, of_keep: Collection[str], ranked_by: Collection[str] = ()
) -> dict[str, int]:
    """Return the number of documents without a value, except references, for each field that `keep` needs.

    The other fields are only checked.
    """
    counts = {}
    for name, parts in documents.fields.items():
        row = num_without = num_absent = 0
        is_known = name in ranked_by
        for part in parts:
            values = part.to_list()
            own = max(0, documents.num_references - row)
            is_known = is_known or any(values[:own])
            values = values[own:]
            row += len(part)
            num_without += sum(value in NO_VALUE for value in values)
            num_absent += values.count("")
        if not is_known and num_absent == len(documents) - documents.num_references:
            check_has_field(documents, name, "--keep" if name in of_keep else "--date-field or --count-by")
        if name in of_keep:
            counts[name] = num_without
    return counts


def check_has_field(documents: Documents, name: str, option: str = "--keep") -> None:
    """Raise InvalidInput if a field that an option names, and no document has, is not an empty column either.

    A reference document with the field proves that the name is valid.
    """
    firsts, ends = documents.starts[:-1], documents.starts[1:]
    listed = None
    for number, (source, row, end) in enumerate(zip(documents.sources, firsts, ends, strict=True)):
        # For references with stored sketches, nothing else was read.
        is_reference = number < documents.num_reference_sources
        for one in range(int(row), min(int(end), int(row) + (_MOST_LOOKED_AT if is_reference else 1))):
            names = source.field_names(int(documents.offsets[one]), int(documents.lengths[one]))
            if name in names:
                return
            if not is_reference:
                listed = listed or (source.name, _listed(names))
    if listed is not None:
        has = f" (found in the first: {listed[1]})" if listed[1] else ""
        whose = ", nor do documents of --against" if documents.num_references else ""
        raise InvalidInput(
            f"no document has the field {name!r} used by {option.removeprefix('--')}{has}{whose}; choose another field "
            f"with {option}",
            listed[0],
        )


def _option(bad: BadRow) -> str | None:
    """Return the option that names the field whose absence made a row bad; None for other reasons."""
    return next((option for beginning, option in _MISSING.items() if bad.reason.startswith(beginning)), None)


def _other_fields(source: Source, bad: BadRow) -> str:
    """Return the fields of a row that lacks a named one, and the option to use; "" for other bad rows."""
    option = _option(bad)
    if option is None:
        return ""
    listed = _listed(source.field_names(bad.offset, bad.length))
    rules = getattr(source, "rules", None)
    if rules is not None and bad.reason == f'no field "{rules.only_within}"':
        option = rules.option_of(rules.only_within)
    there_are = f" (found: {listed})" if listed else ""
    return f"{there_are}; choose a field with {option}"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_MOST_FIELDS]) + (", ..." if len(names) > _MOST_FIELDS else "")
