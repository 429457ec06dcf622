"""Fields that a run adds to each row of its inputs: names, types, and values row by row."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowSchema
from likewise.errors import InvalidParameter

#: The fields of a run that decides duplicates, and their types in tables.
FIELDS = {
    "is_kept": "bool",
    "group": "string",
    "duplicate_of": "string",
    "similarity": "float64",
    "group_size": "int64",
}
_FORMATS = "JSON Lines, CSV, TSV, Parquet and Arrow files"


@dataclass(frozen=True)
class AddedFields:
    """Names and types of added fields."""

    prefix: str
    # Name without prefix -> type in tables, in order
    kinds: Mapping[str, str] = field(default_factory=lambda: FIELDS)

    def __post_init__(self) -> None:
        """Raise InvalidParameter if the prefix has characters other than ASCII letters, digits, ``_`` and ``-``."""
        if not (self.prefix.isascii() and all(one.isalnum() or one in "_-" for one in self.prefix)):
            raise InvalidParameter(
                "write_prefix", f"{self.prefix!r} has characters other than letters, digits, _ and -"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self.prefix + name for name in self.kinds)

    def check(self, names: Sequence[str], file: str) -> None:
        """Raise InvalidParameter if a file already has a field with the name of an added one."""
        for own, name in zip(self.kinds, self.names, strict=True):
            if name in names:
                raise InvalidParameter(
                    "write_prefix",
                    f"{file} already has a field {name!r}, the name of the added field {own!r}; choose another prefix "
                    "with --write-prefix",
                )


class Added(NamedTuple):
    """Fields that are appended to each row."""

    fields: AddedFields
    # Takes a slice of the written rows; returns whether each is a document, and Arrow values, null for bad rows.
    columns: Callable[[slice], tuple[NDArray[np.bool_], list[Any]]]

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return self.fields.names

    def schema(self, schema: ArrowSchema) -> ArrowSchema:
        """Return the schema of a table with these fields appended."""
        import pyarrow as pa

        metadata = dict(schema.metadata or {})
        for name, kind in zip(self.names, self.fields.kinds.values(), strict=True):
            schema = schema.append(pa.field(name, pa.type_for_alias(kind)))
        try:
            about = json.loads(metadata.get(b"huggingface", b"null"))
            about["info"]["features"] |= self.features()
        except (ValueError, TypeError, KeyError):
            return schema
        return schema.with_metadata(metadata | {b"huggingface": json.dumps(about).encode()})

    def features(self) -> dict[str, object]:
        """Return the fields as features of Hugging Face datasets."""
        return {
            name: {"dtype": kind, "_type": "Value"}
            for name, kind in zip(self.names, self.fields.kinds.values(), strict=True)
        }


def check_takes_fields(name: str, *, takes_fields: bool) -> None:
    """Raise InvalidParameter if fields cannot be added to the rows of a file."""
    if not takes_fields:
        raise InvalidParameter(
            "write", f"annotated supports {_FORMATS} only, but {name} has another format; use --write evidence"
        )
