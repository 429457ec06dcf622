"""Certificate of an audit: checks and results as JSON, with a seal that detects changes."""

import errno
import hashlib
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from likewise import _native
from likewise.errors import InvalidInput
from likewise.io.inputs import Inputs
from likewise.io.output.directory import ERRORS, EVIDENCE, KEPT, SUMMARY
from likewise.io.output.whole import WholeFile, write_whole

# Version of the fields and their meaning.
_VERSION = 1
# A thousand missed pairs and a line per file need far less.
_MOST_BYTES = 1 << 30


def file_facts(path: Path, name: str) -> dict[str, Any]:
    """Return name, size and SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return {"path": name, "num_bytes": file.tell(), "sha256": digest.hexdigest()}


def input_facts(inputs: Inputs) -> list[dict[str, Any]]:
    """Return name, size and SHA-256 of each input."""
    return [file_facts(file.path, file.name) for file in inputs.files]


def output_facts(path: Path | None) -> list[dict[str, Any]]:
    """Return name, size and SHA-256 of each output file that records the run's result; empty in memory."""
    return [] if path is None else [file_facts(path / name, name) for name in _output_names(path)]


def _output_names(path: Path) -> Iterator[str]:
    for name in (SUMMARY, EVIDENCE, ERRORS):
        if (path / name).is_file():
            yield name
    found = [file.relative_to(path) for file in (path / KEPT).rglob("*") if file.is_file()]
    yield from (name.as_posix() for name in sorted(found, key=os.fsencode))


def sealed(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a certificate: versions, time, the fields, and a digest of all of them, which detects changes."""
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    fields = {"certificate": _VERSION, "version": _native.__version__, "made_at": made_at, **fields}
    return {**fields, "seal": _seal(fields)}


def is_sealed(certificate: dict[str, Any]) -> bool:
    """Return whether a certificate is unchanged."""
    return certificate.get("seal") == _seal({name: value for name, value in certificate.items() if name != "seal"})


def _seal(fields: dict[str, Any]) -> str:
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def check_target(path: Path) -> None:
    """Raise an error before the work begins if a certificate cannot be written to this path."""
    if path.exists():
        # Do not read devices: some never end.
        WholeFile(path)
        try:
            with path.open("rb") as file:
                fields = json.loads(file.read(_MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict) or "seal" not in fields:
            raise InvalidInput("this file is not an audit certificate; choose another file with -o", str(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path.parent))


def write_certificate(certificate: dict[str, Any], path: Path) -> None:
    """Write a certificate; the file appears under its name only when complete."""
    write_whole(path, json.dumps(certificate, indent=2, ensure_ascii=False) + "\n")


def read_certificate(path: Path) -> dict[str, Any]:
    """Read the certificate of an audit.

    Raises
    ------
    InvalidInput
        If the file is not a certificate, or was changed.
    """
    try:
        certificate = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"not an audit certificate: {error}", str(path)) from error
    if not isinstance(certificate, dict) or not is_sealed(certificate):
        raise InvalidInput("not an audit certificate, or it was changed", str(path))
    return certificate
