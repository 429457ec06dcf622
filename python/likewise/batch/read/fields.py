"""Fields by name: suggestions for missing ones, and the number of documents without a field that `keep` needs."""

from collections.abc import Collection

from likewise.batch.read.documents import Documents
from likewise.errors import InvalidInput
from likewise.job.reading import names_line, option_of, other_fields

# JSON of a field without a value; "" if the field is absent.
NO_VALUE = frozenset(("", "null", "NaN"))
# Number of reference documents per file in which a field is looked for.
_MOST_LOOKED_AT = 20


def check_documents(documents: Documents) -> None:
    """Raise InvalidInput if there are no documents because no row has the text field, or the id field."""
    bad_rows = [
        (source, bad) for source, of_one in zip(documents.sources, documents.bad_rows, strict=True) for bad in of_one
    ]
    if len(documents) or not bad_rows or not all(option_of(bad) for _, bad in bad_rows):
        return
    source, bad = bad_rows[0]
    none = "the only row is not a document" if len(bad_rows) == 1 else f"none of {len(bad_rows):,} rows is a document"
    raise InvalidInput(f"{none}: {bad.reason}{other_fields(source, bad)}", source.name)


def num_without_field(
    documents: Documents, of_keep: Collection[str], ranked_by: Collection[str] = ()
) -> dict[str, int]:
    """Return the number of documents without a value for each field of `keep`; the other fields are only checked."""
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
    """Raise InvalidInput if a field that an option names is in no document, reference, or empty column."""
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
                listed = listed or (source.name, names_line(names))
    if listed is not None:
        has = f" (found in the first: {listed[1]})" if listed[1] else ""
        whose = ", nor do documents of --against" if documents.num_references else ""
        raise InvalidInput(
            f"no document has the field {name!r} used by {option.replace('--', '')}{has}{whose}; choose another field "
            f"with {option}",
            listed[0],
        )
