"""JSON Lines: read in pieces, read again by offset, written back byte for byte."""

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArrowColumn
from likewise.io.lines.lines import LineFile, piece_of
from likewise.io.source.added import Added
from likewise.io.source.source import Cut, Piece, ReadRules
from likewise.io.source.spool import write_all

# Escapes of ASCII letters, digits, _ and -, which names may contain although they need none.
_ESCAPED = re.compile(rb"\\u00[2-7]")

_READ_BYTES = 1 << 20


@dataclass(eq=False)
class JsonlFile(LineFile):
    """A file with one JSON object per line."""

    takes_tokens: ClassVar[bool] = True

    @cached_property
    def native_rules(self) -> _native.JsonlRules:
        """The reading rules for the native reader."""
        rules = self.rules
        return _native.JsonlRules(
            list(rules.text_fields),
            rules.id_name(("id",)),
            rules.requires_id,
            list(rules.fields),
            rules.max_document_bytes,
            takes_tokens=rules.tokens is not None,
            are_weighted=rules.tokens is not None and rules.tokens.is_weighted,
            weight_scale=None if rules.tokens is None else rules.tokens.scale,
            text_without_tokens=[] if rules.tokens is None else list(rules.text_without_tokens),
            roles=list(rules.roles.names),
            are_roles_counted=rules.roles.are_counted,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the native rules, which the other process creates again."""
        return {name: value for name, value in vars(self).items() if name != "native_rules"}

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return the fields of the object on a line, nested ones with dots; empty if the line is not an object."""
        if not self.is_plain:
            return []
        with self.plain_path.open("rb") as file:
            file.seek(offset)
            try:
                row = json.loads(file.read(length))
            except (ValueError, RecursionError):
                return []
        return _names(row) if isinstance(row, dict) else []

    def _lines_added(
        self, lines: list[bytes], is_document: list[bool], added: Added, columns: list[Any]
    ) -> Iterator[bytes]:
        names = re.compile(f'"(?:{"|".join(added.names)})"'.encode())
        whole = b"".join(lines)
        # Names inside texts have escaped quotes, so few rows must be parsed.
        may_clash = names.search(whole) or _ESCAPED.search(whole)
        template = ", ".join(f'"{name}": %s' for name in added.names)
        rows = zip(*map(_json_values, columns), strict=True)
        for line, has_fields, values in zip(lines, is_document, rows, strict=True):
            if not has_fields:
                yield line
                continue
            if may_clash and (names.search(line) or _ESCAPED.search(line)):
                added.fields.check(list(json.loads(line.decode("utf-8-sig", "replace"))), self.name)
            yield b"%b, %b}" % (line.rstrip()[:-1], (template % values).encode())

    def _lines_cut(
        self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32], cut: Cut, threads: int
    ) -> tuple[_native.Array, _native.Array]:
        path = str(self.plain_path)
        return _native.rewrite_jsonl_rows(path, offsets, lengths, self.native_rules, cut, threads=threads)[:2]

    def _read(self, offset: int, length: int) -> Iterator[Piece]:
        return iter([piece_of(_native.read_jsonl_piece(str(self.plain_path), offset, length, self.native_rules))])

    def read_texts(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> _native.Texts:
        """Read the texts of these lines again."""
        return _native.read_jsonl_texts(str(self.plain_path), offsets, lengths, self.native_rules)


def _names(row: dict[str, Any]) -> list[str]:
    names = []
    for name, value in row.items():
        names.append(name)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            name, value = f"{name}[]", value[0]
        if isinstance(value, dict):
            names += [f"{name}.{inner}" for inner in value]
    return names


def _json_values(column: ArrowColumn) -> list[str]:
    """Return the values of a column of bool, int64, float64 or string as JSON."""
    import pyarrow.types as are

    values = column.to_pylist()
    if are.is_boolean(column.type):
        return [{None: "null", True: "true", False: "false"}[value] for value in values]
    spell = encode_basestring if are.is_string(column.type) or are.is_large_string(column.type) else repr
    return ["null" if value is None else spell(value) for value in values]


def widen_pipe(stream: BinaryIO) -> None:
    """Enlarge the buffer of a pipe to one read, so that lines of a fast writer arrive in large blocks (Linux only)."""
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        import fcntl

        fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, _READ_BYTES)


@dataclass(frozen=True)
class JsonlStream:
    """Lines of a pipe or a terminal, in pieces as they arrive."""

    # The stream, read once to its end
    stream: BinaryIO
    name: str = "stdin"
    rules: ReadRules = field(default_factory=ReadRules)

    def pieces(self, work: Path) -> Iterator[Piece]:
        """Yield documents as they arrive; line numbers continue from piece to piece."""
        place = work / "lines.jsonl"
        reader = JsonlFile(place, self.name, 0, self.rules)
        num_lines = 0
        widen_pipe(self.stream)
        # Overwritten, never truncated: some file systems flush truncated files, which takes longer than all else.
        with place.open("wb", buffering=0) as file:
            for lines in self._whole_lines():
                file.seek(0)
                write_all(file, memoryview(lines))
                piece = piece_of(_native.read_jsonl_piece(str(place), 0, len(lines), reader.native_rules))
                bad_rows = [bad._replace(line=bad.line + num_lines) for bad in piece.bad_rows]
                yield piece._replace(lines=piece.lines + num_lines, bad_rows=bad_rows)
                num_lines += piece.num_lines

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return an empty list: earlier lines cannot be read again."""
        return []

    def _whole_lines(self) -> Iterator[bytes]:
        # A pipe returns what is available; a plain file, or a stream without `read1`, as much as is requested.
        read = getattr(self.stream, "read1", self.stream.read)
        parts: list[bytes] = []
        while data := read(_READ_BYTES):
            end = data.rfind(b"\n") + 1
            if end:
                yield b"".join([*parts, data[:end]])
                parts = []
            parts.append(data[end:])
        if rest := b"".join(parts):
            yield rest
