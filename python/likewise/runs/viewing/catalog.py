"""Catalog of groups, sorted and searched, read one page at a time in any size."""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from likewise.errors import StoreError
from likewise.runs.viewing.texts import Place
from likewise.stages.text import tokens

# One row per group, by number; members by group and row. The words of a group are its ids and those at the start of its
# kept document, cut as features are, so that scripts without spaces can be searched too. Values of the field that a run
# counts by are JSON; reference documents have none. The headroom of a removal is its similarity minus the required one,
# and 1 for similarity 1; that of a group is the least of its removals. The queue has each removal once, by the first of
# its kinds, then by headroom.
_TABLES = """
CREATE TABLE groups (
  number INTEGER PRIMARY KEY, row INTEGER, doc_id TEXT NOT NULL, source TEXT NOT NULL, file TEXT, offset INTEGER,
  length INTEGER, size INTEGER NOT NULL, lowest REAL NOT NULL, highest REAL NOT NULL, value TEXT,
  headroom REAL NOT NULL
);
CREATE TABLE members (
  number INTEGER NOT NULL, row INTEGER NOT NULL, doc_id TEXT NOT NULL, file TEXT, offset INTEGER, length INTEGER,
  similarity REAL NOT NULL, distance INTEGER, below INTEGER NOT NULL, value TEXT, required REAL, penalty REAL,
  differs TEXT, headroom REAL NOT NULL, PRIMARY KEY (number, row)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(text, content='', detail='none', tokenize="ascii tokenchars '_'");
CREATE TABLE sizes (size INTEGER PRIMARY KEY, num_groups INTEGER NOT NULL);
CREATE TABLE similarities (bin INTEGER PRIMARY KEY, num_removed INTEGER NOT NULL);
CREATE TABLE differences (differs TEXT PRIMARY KEY, num_removed INTEGER NOT NULL);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE queue (place INTEGER PRIMARY KEY, kind TEXT NOT NULL, number INTEGER NOT NULL, row INTEGER NOT NULL);
CREATE TABLE queues (kind TEXT PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL);
"""
_INDEXES = """
CREATE INDEX by_size ON groups (size DESC, number);
CREATE INDEX by_headroom ON groups (headroom, number);
CREATE INDEX group_ids ON groups (doc_id);
CREATE INDEX member_ids ON members (doc_id);
CREATE INDEX by_certainty ON members (headroom, number, row, differs);
"""
SORTS = {"size": ("size", "DESC"), "certainty": ("headroom", "ASC"), "input": ("number", "ASC")}
BINS = 50
# Kinds of removals by what differs, those first that may be wrong.
KINDS = {
    "lead": "first words",
    "numbers": "numbers only",
    "slots": "words in the blanks of a form",
    "section": "a passage of its own",
    "subject": "words that each repeats",
    "end": "last words",
    "crowd": "all but what many documents share",
    "words": "other words",
    "form": "nothing that features show",
}
_PLAIN = str.maketrans({character: "_" for character in map(chr, range(33, 127)) if not character.isalnum()})
_MOST_WORDS = 16
_COUNTED = 10_000
_EXPORTED = 1000


@dataclass(frozen=True)
class GroupRow:
    """A group in a list."""

    # Number of the group, from 1, in input order of the kept documents
    number: int
    # Row of the kept document in the run; None if it is in an index
    row: int | None
    doc_id: str
    # Origin of the kept document
    source: str
    place: Place
    # Number of documents, including the kept one
    size: int
    # Range of similarities to the kept document
    lowest: float
    highest: float
    # Value, as JSON, by which the run counts, in the kept document; None for references, and without a field.
    value: str | None = None
    # Least similarity above the required one
    headroom: float = 0.0


@dataclass(frozen=True)
class Member:
    """A removed document of a group, and its measures with the kept one."""

    number: int
    row: int
    doc_id: str
    place: Place
    similarity: float
    distance: int | None
    is_below: bool
    value: str | None = None
    # Similarity that the pair needed, and how much of it for different names; None if the threshold or an index decided
    required: float | None = None
    penalty: float | None = None
    # In what the document differs; None if names were not compared
    differs: str | None = None


@dataclass(frozen=True)
class GroupFilter:
    """Filter and order of a list of groups."""

    # Words at the start of the kept document, or an id; all words must occur
    words: str = ""
    # File that contains a document of the group; all files if empty
    file: str = ""
    # Range (inclusive) that contains the similarity of a removed document of the group
    least: float | None = None
    most: float | None = None
    # Range (inclusive) of the number of documents of a group
    smallest: int | None = None
    largest: int | None = None
    # Value, as JSON, of the field that the run counts by, for a removed document and for the kept one; no condition
    # if empty. One removed document must satisfy `value`, `differs` and the similarities.
    value: str = ""
    kept_value: str = ""
    # A kind of difference of a removed document; no condition if empty
    differs: str = ""
    # Largest first; least certain first; input order
    sort: str = "size"

    @property
    def names_removed(self) -> bool:
        """Whether the filter selects some removed documents of a group and not others."""
        return bool(self.value or self.differs) or self.least is not None or self.most is not None


@dataclass(frozen=True)
class Listing:
    """A page of groups."""

    # At most as many as requested
    groups: list[GroupRow]
    # Cursors of the previous and next page
    before: str | None
    after: str | None
    # Total number of groups, counted up to 10,000 if a filter applies
    num_found: int
    # Number of groups on earlier pages
    num_before: int


_ALL = GroupFilter()


class Catalog:
    """Read-only file of groups; thread-safe."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def fact(self, name: str) -> str | None:
        """Return a fact stored with the groups."""
        found = self._all("SELECT value FROM facts WHERE name = ?", (name,))
        return str(found[0][0]) if found else None

    def num_groups(self) -> int:
        """Return the number of groups."""
        return int(self._all("SELECT coalesce(sum(num_groups), 0) FROM sizes")[0][0])

    def sizes(self) -> list[tuple[int, int]]:
        """Return (size, number of groups of this size), ascending."""
        return self._all("SELECT size, num_groups FROM sizes ORDER BY size")

    def similarities(self) -> list[int]:
        """Return the number of removed documents in each of 50 equal intervals of similarity from 0 to 1."""
        counts = [0] * BINS
        for number, count in self._all("SELECT bin, num_removed FROM similarities"):
            counts[number] = count
        return counts

    def list_groups(self, wanted: GroupFilter = _ALL, *, cursor: str = "", limit: int = 50) -> Listing:
        """Return a page of groups."""
        column = SORTS.get(wanted.sort, SORTS["size"])[0]
        is_back, after = _cursor(cursor)
        rows = self._beyond(wanted, after, limit + 1, is_back=is_back)
        has_more = len(rows) > limit
        rows = rows[:limit]
        if is_back:
            rows.reverse()
        has_before, has_after = (has_more, True) if is_back else (after is not None, has_more)
        first, last = (rows[0], rows[-1]) if rows else (None, None)
        return Listing(
            rows,
            f"<{_key(first, column)}" if first and has_before else None,
            _key(last, column) if last and has_after else None,
            self._num_found(wanted),
            self._num_before(wanted, first) if first and has_before else 0,
        )

    def groups_beside(self, wanted: GroupFilter, group: GroupRow) -> tuple[int | None, int | None]:
        """Return the numbers of the previous and next group in a list."""
        after = _place_of(group, SORTS.get(wanted.sort, SORTS["size"])[0])
        before, behind = (self._beyond(wanted, after, 1, is_back=is_back) for is_back in (True, False))
        return (before[0].number if before else None), (behind[0].number if behind else None)

    def rows_of(self, wanted: GroupFilter) -> Iterator[tuple[GroupRow, Member]]:
        """Yield the removed documents of a list with their groups, in the order of the groups."""
        after = None
        while groups := self._beyond(wanted, after, _EXPORTED, is_back=False):
            for group in groups:
                last = -1
                while members := self.members(group.number, wanted, after=last, limit=_EXPORTED):
                    for member in members:
                        yield group, member
                    last = members[-1].row
            after = _place_of(groups[-1], SORTS.get(wanted.sort, SORTS["size"])[0])

    def group(self, number: int) -> GroupRow | None:
        """Return a group by its number."""
        rows = self._all(f"SELECT {_GROUP_COLUMNS} FROM groups WHERE number = ?", (number,))
        return _group(rows[0]) if rows else None

    def members(self, number: int, wanted: GroupFilter = _ALL, *, after: int = -1, limit: int = 200) -> list[Member]:
        """Return the removed documents of a group that match a filter, in input order, after row `after`."""
        more, values = _member_conditions(wanted)
        return [
            _member(row)
            for row in self._all(
                f"SELECT {_MEMBER_COLUMNS} FROM members WHERE number = ? AND row > ?{more} ORDER BY row LIMIT ?",
                (number, after, *values, limit),
            )
        ]

    def member(self, number: int, row: int) -> Member | None:
        """Return a removed document by its group and row."""
        rows = self._all(
            f"SELECT {_MEMBER_COLUMNS} FROM members WHERE number = ? AND row = ?",
            (number, row),
        )
        return _member(rows[0]) if rows else None

    def beside(self, number: int, row: int, wanted: GroupFilter = _ALL) -> tuple[int | None, int | None]:
        """Return the rows of the previous and next member of a group that match a filter."""
        more, values = _member_conditions(wanted)
        given = (number, row, *values)
        before = self._all(f"SELECT max(row) FROM members WHERE number = ? AND row < ?{more}", given)
        behind = self._all(f"SELECT min(row) FROM members WHERE number = ? AND row > ?{more}", given)
        return before[0][0], behind[0][0]

    def find_id(self, doc_id: str) -> int | None:
        """Return the number of the group that contains a document; None if there is none."""
        for table in ("groups", "members"):
            rows = self._all(f"SELECT number FROM {table} WHERE doc_id = ? LIMIT 1", (doc_id,))
            if rows:
                return int(rows[0][0])
        return None

    def kinds(self) -> dict[str, int]:
        """Return the number of removals of each kind of difference; empty if names were not compared."""
        counts = dict(self._all("SELECT differs, num_removed FROM differences"))
        found = {
            kind: sum(num for differs, num in counts.items() if kind in (differs or "words").split(","))
            for kind in KINDS
        }
        return {kind: num for kind, num in found.items() if num}

    def least_certain(self, limit: int) -> list[tuple[str, int, list[tuple[GroupRow, Member]]]]:
        """Return each kind with its number of removals and the least certain ones; without names one kind, ""."""
        kinds = self.kinds() or {"": sum(self.similarities())}
        return [(kind, num, self.doubtful(kind, limit=limit)) for kind, num in kinds.items() if num]

    def doubtful(self, kind: str = "", *, after: int = 0, limit: int = 50) -> list[tuple[GroupRow, Member]]:
        """Return removed documents of a kind with their groups, least certain first, skipping the first `after`."""
        more, values = _member_conditions(GroupFilter(differs=kind))
        rows = self._all(
            f"SELECT {_MEMBER_COLUMNS} FROM members WHERE 1{more} ORDER BY headroom, number, row LIMIT ? OFFSET ?",
            (*values, limit, after),
        )
        found = []
        for member in map(_member, rows):
            group = self.group(member.number)
            if group is not None:
                found.append((group, member))
        return found

    def queues(self) -> dict[str, range]:
        """Return the places of each kind in the review queue, from 1; "" is the kind if names were not compared."""
        rows = self._all("SELECT kind, first, last FROM queues ORDER BY first")
        return {kind: range(first, last + 1) for kind, first, last in rows}

    def queued(self, places: range) -> list[tuple[int, str, str]]:
        """Return the place, the id and the kept id of the removals at places of the review queue."""
        return self._all(
            "SELECT place, members.doc_id, groups.doc_id FROM queue JOIN members USING (number, row) "
            "JOIN groups USING (number) WHERE place BETWEEN ? AND ? ORDER BY place",
            (places.start, places.stop - 1),
        )

    def removal(self, place: int) -> tuple[GroupRow, Member]:
        """Return the removal at a place of the review queue, with its group."""
        ((number, row),) = self._all("SELECT number, row FROM queue WHERE place = ?", (place,))
        group, member = self.group(number), self.member(number, row)
        assert group is not None
        assert member is not None
        return group, member

    def find_pair(self, a: str, b: str) -> tuple[int, int] | None:
        """Return the group and the row of a removal by the two ids in any order; None if it is none."""
        for pair in ((a, b), (b, a)):
            rows = self._all(
                "SELECT number, members.row FROM members JOIN groups USING (number) "
                "WHERE members.doc_id = ? AND groups.doc_id = ? LIMIT 1",
                pair,
            )
            if rows:
                number, row = rows[0]
                return number, row
        return None

    def text(self, row: int) -> str | None:
        """Return a text stored with the groups, as for an index; None if there is none."""
        try:
            rows = self._all("SELECT text FROM texts WHERE row = ?", (row,))
        except sqlite3.OperationalError:
            return None
        return str(rows[0][0]) if rows else None

    def _beyond(
        self, wanted: GroupFilter, after: tuple[float, int] | None, limit: int, *, is_back: bool
    ) -> list[GroupRow]:
        """Return the groups of a list after a place; with `is_back`, those before it, nearest first."""
        where, values = _conditions(wanted)
        column, direction = SORTS.get(wanted.sort, SORTS["size"])
        if is_back:
            direction = "DESC" if direction == "ASC" else "ASC"
        number_order, sign = ("DESC", "<") if is_back else ("ASC", ">")
        if after is not None and column == "number":
            where.append(f"number {sign} ?")
            values.append(after[1])
        elif after is not None:
            comparison = ">" if direction == "ASC" else "<"
            where.append(f"({column} {comparison} ? OR ({column} = ? AND number {sign} ?))")
            values += [after[0], after[0], after[1]]
        # Column names and directions come from the table above, never from the request.
        query = (
            f"SELECT {_GROUP_COLUMNS} FROM groups {'WHERE ' + ' AND '.join(where) if where else ''} "
            f"ORDER BY {column} {direction}, number {number_order} LIMIT ?"
        )
        return [_group(row) for row in self._all(query, (*values, limit))]

    def _num_found(self, wanted: GroupFilter) -> int:
        where, values = _conditions(wanted)
        if not where:
            return self.num_groups()
        query = f"SELECT count(*) FROM (SELECT 1 FROM groups WHERE {' AND '.join(where)} LIMIT {_COUNTED})"
        return int(self._all(query, values)[0][0])

    def _num_before(self, wanted: GroupFilter, group: GroupRow) -> int:
        where, values = _conditions(wanted)
        column, direction = SORTS.get(wanted.sort, SORTS["size"])
        value, number = _place_of(group, column)
        where.append(f"({column} {'<' if direction == 'ASC' else '>'} ? OR ({column} = ? AND number < ?))")
        return int(
            self._all(f"SELECT count(*) FROM groups WHERE {' AND '.join(where)}", (*values, value, value, number))[0][0]
        )

    def _all(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            return self._database.execute(query, values).fetchall()


_GROUP_COLUMNS = "number, row, doc_id, source, file, offset, length, size, lowest, highest, value, headroom"
_MEMBER_COLUMNS = (
    "number, row, doc_id, file, offset, length, similarity, distance, below, value, required, penalty, differs"
)


def _conditions(wanted: GroupFilter) -> tuple[list[str], list[Any]]:
    where: list[str] = []
    values: list[Any] = []
    if words := wanted.words.strip():
        found = "SELECT number FROM groups WHERE doc_id = ? UNION SELECT number FROM members WHERE doc_id = ?"
        values += [words, words]
        # Quoted, so that no word is an operator.
        if query := " ".join(f'"{word}"' for word in _words(words)[:_MOST_WORDS]):
            found += " UNION SELECT rowid FROM words WHERE words MATCH ?"
            values.append(query)
        where.append(f"number IN ({found})")
    if wanted.file:
        where.append(
            "(file = ? OR EXISTS (SELECT 1 FROM members WHERE members.number = groups.number AND members.file = ?))"
        )
        values += [wanted.file, wanted.file]
    if wanted.least is not None or wanted.most is not None:
        # The bounds of the group avoid most lookups of members.
        where.append("highest >= ? AND lowest <= ?")
        values += _bounds(wanted)
    if wanted.names_removed:
        more, of_members = _member_conditions(wanted)
        where.append(f"EXISTS (SELECT 1 FROM members WHERE members.number = groups.number{more})")
        values += of_members
    if wanted.kept_value:
        where.append("value = ?")
        values.append(wanted.kept_value)
    for bound, sign in ((wanted.smallest, ">="), (wanted.largest, "<=")):
        if bound is not None:
            where.append(f"size {sign} ?")
            values.append(bound)
    return where, values


def _member_conditions(wanted: GroupFilter) -> tuple[str, list[Any]]:
    """Return the SQL conditions of a filter on removed documents, and their values."""
    more, values = "", []
    if wanted.least is not None or wanted.most is not None:
        more += " AND members.similarity BETWEEN ? AND ?"
        values += _bounds(wanted)
    if wanted.value:
        more += " AND members.value = ?"
        values.append(wanted.value)
    if wanted.differs == "words":
        more += " AND members.differs = ''"
    elif wanted.differs:
        more += " AND instr(',' || members.differs || ',', ?)"
        values.append(f",{wanted.differs},")
    return more, values


def _bounds(wanted: GroupFilter) -> list[Any]:
    return [wanted.least or 0.0, 1.0 if wanted.most is None else wanted.most]


class CatalogWriter:
    """Writer of a catalog, as a context; the file gets its final name only when complete."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unfinished = path.with_name(f"{path.name}.unfinished")

    def __enter__(self) -> Self:
        self._unfinished.unlink(missing_ok=True)
        self._database = sqlite3.connect(self._unfinished, isolation_level=None)
        try:
            # Derived data can be built again, so durability is not needed.
            self._database.executescript(
                "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA page_size=8192;" + _TABLES
            )
            self._database.execute("BEGIN")
        except sqlite3.Error as error:
            # For example, the SQLite of this Python has no full-text search.
            self.__exit__(type(error), error, None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()
        self._unfinished.unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error):
            raise StoreError(f"{self._path}: the groups could not be sorted: {error}") from error

    def add_groups(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add groups: columns in the order of the table."""
        self._database.executemany("INSERT INTO groups VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", rows)

    def add_members(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add members: columns in the order of the table; those of a group together, ascending."""
        self._database.executemany("INSERT INTO members VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)", rows)

    def add_words(self, rows: Iterable[tuple[int, str]]) -> None:
        """Add the searchable text of groups: number, and start of the text."""
        self._database.executemany(
            "INSERT INTO words (rowid, text) VALUES (?, ?)",
            ((number, " ".join(_words(text))) for number, text in rows),
        )

    def add_texts(self, rows: Iterable[tuple[int, str]]) -> None:
        """Add whole texts by row, if they are not stored elsewhere."""
        self._database.execute("CREATE TABLE IF NOT EXISTS texts (row INTEGER PRIMARY KEY, text TEXT NOT NULL)")
        self._database.executemany("INSERT INTO texts VALUES (?, ?)", rows)

    def finish(self, facts: dict[str, str]) -> None:
        """Write totals and indexes, and rename the file to its final name."""
        database = self._database
        database.execute("INSERT INTO sizes SELECT size, count(*) FROM groups GROUP BY size")
        database.execute(
            f"INSERT INTO similarities SELECT min({BINS - 1}, max(0, cast(similarity * {BINS} AS INTEGER))) AS bin, "
            "count(*) FROM members GROUP BY bin"
        )
        database.execute(
            "INSERT INTO differences SELECT differs, count(*) FROM members WHERE differs IS NOT NULL GROUP BY differs"
        )
        # A removal without other kinds differs in words.
        ranks = " ".join(
            f"WHEN instr(',' || coalesce(nullif(differs, ''), 'words') || ',', ',{kind},') THEN {rank}"
            for rank, kind in enumerate(KINDS)
        )
        names = " ".join(f"WHEN {rank} THEN '{kind}'" for rank, kind in enumerate(KINDS))
        database.execute(
            f"INSERT INTO queue SELECT row_number() OVER (ORDER BY rank, headroom, number, row), "
            f"CASE rank {names} ELSE '' END, number, row FROM "
            f"(SELECT *, CASE WHEN differs IS NOT NULL THEN CASE {ranks} END END AS rank FROM members)"
        )
        database.execute("INSERT INTO queues SELECT kind, min(place), max(place) FROM queue GROUP BY kind")
        database.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
        database.execute("COMMIT")
        database.executescript(_INDEXES)
        database.close()
        self._unfinished.replace(self._path)


def _group(row: tuple[Any, ...]) -> GroupRow:
    number, own, doc_id, source, file, offset, length, *rest = row
    return GroupRow(number, own, doc_id, source, Place(file, offset or 0, length), *rest)


def _member(row: tuple[Any, ...]) -> Member:
    number, own, doc_id, file, offset, length, similarity, distance, below, *rest = row
    return Member(number, own, doc_id, Place(file, offset or 0, length), similarity, distance, bool(below), *rest)


def _words(text: str) -> list[str]:
    """Return tokens; ASCII characters that the search would split at or interpret are replaced."""
    return [word.translate(_PLAIN) for word in tokens(text)]


def _place_of(row: GroupRow, column: str) -> tuple[float, int]:
    """Return the place of a group in a list sorted by a column."""
    return {"size": float(row.size), "headroom": row.headroom, "number": float(row.number)}[column], row.number


def _key(row: GroupRow, column: str) -> str:
    value, number = _place_of(row, column)
    return f"{value!r}:{number}"


def _cursor(cursor: str) -> tuple[bool, tuple[float, int] | None]:
    is_back = cursor.startswith("<")
    value, _, number = cursor.removeprefix("<").partition(":")
    try:
        after = float(value), int(number)
    except ValueError:
        return False, None
    return is_back, after if -(2**62) < after[1] < 2**62 else None
