"""Lexicons: files of terms and their weights."""

import io
import re
from pathlib import Path

from likewise.errors import InvalidInput, counted

MAX_WEIGHT = 15


def read_lexicon(path: Path) -> tuple[list[tuple[str, int]], list[int]]:
    """Read terms and weights."""
    terms: list[tuple[str, int]] = []
    lines: list[int] = []
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"not a weight table or lexicon: byte {error.start} is not UTF-8", str(path)) from error
    if path.suffix.lower() == ".csv":
        import csv

        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        try:
            rows = [(reader.line_num, row) for row in reader]
        except csv.Error as error:
            raise InvalidInput(f"not a CSV file: {error}", str(path), reader.line_num) from error
    else:
        rows = [(number, line.rstrip("\r").split("\t")) for number, line in enumerate(text.split("\n"), 1)]
    for number, row in rows:
        if not any(cell.strip() for cell in row) or (not terms and row == ["term", "weight"]):
            continue
        if len(row) != 2:
            raise InvalidInput(
                f"{counted(len(row), 'field')} found; a line has a term and its weight", str(path), number
            )
        weight = re.fullmatch(r"\s*0*([0-9]{1,2})\s*", row[1])
        if weight is None or int(weight[1]) > MAX_WEIGHT:
            shown = repr(row[1] if len(row[1]) <= 40 else row[1][:40] + "...")
            raise InvalidInput(f"the weight {shown} is not an integer from 0 to {MAX_WEIGHT}", str(path), number)
        terms.append((row[0], int(weight[1])))
        lines.append(number)
    if not terms:
        raise InvalidInput("the lexicon is empty; a line has a term, a tab and a weight", str(path))
    return terms, lines
