"""Documents that move with their verdicts: from a directory, from servers, or in a Parquet file (FORMAT.md)."""

import base64
import binascii
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from likewise import _native
from likewise.arrays import ArrowSchema
from likewise.errors import InvalidInput, LikewiseError, RecipeMismatch, StoreError
from likewise.index.opening import STORES, TtlFrom, check_recipe, check_ttl, check_ttl_from, recipe_parts
from likewise.io.output.whole import WholeFile
from likewise.io.tables.columns import open_parquet
from likewise.recipe.recipe import Recipe
from likewise.recipe.weights import NAMES, companions_of, fields_of_companions

if TYPE_CHECKING:
    from likewise.index.redis.client import Client

_VERSION = 1

# Rows of servers that one request reads at most.
_ROWS_A_READ = 2000


class Occupied(InvalidInput):
    """The destination of a move has an index. If it is the copy, the move was stopped after its work."""


class About(NamedTuple):
    """What an index is, apart from its documents."""

    recipe: Recipe
    store: str
    ttl_s: int | None
    # Where it is, for messages
    place: str
    # When a write is acknowledged, if it is on servers
    durability: str | None = None
    # From when their age counts
    ttl_from: TtlFrom = "first_seen"


class Source(Protocol):
    """Documents in order of arrival without gaps; removed ones do not move, expired ones only if named as kept."""

    # What the source is, and what a copy of it becomes
    about: About

    def __len__(self) -> int:
        """Return the number of documents that move."""

    @property
    def began(self) -> list[Any]:
        """The standing before the documents that move were counted."""

    def standing(self) -> list[Any]:
        """Return JSON values that identify the source and change whenever its documents or verdicts do."""

    def batches(self) -> Iterator[_native.MovedDocuments]:
        """Yield the documents in parts of bounded size."""


def mark_fields(source: Source, **more: Any) -> dict[str, Any]:
    """Return the mark of a move from a source, as JSON values."""
    return {
        "version": _VERSION,
        "source": source.about.place,
        "standing": source.began,
        "as_of_s": getattr(source, "as_of_s", None),
        "num_documents": len(source),
        "ttl_s": source.about.ttl_s,
        **more,
    }


def check_mark(mark: dict[str, Any], source: Source, place: str, remedy: str) -> None:
    """Raise StoreError unless the mark is of the same documents."""
    now = mark_fields(source)
    if any(mark.get(name) != now[name] for name in ("version", "standing", "ttl_s")):
        raise StoreError(
            f"{place} contains part of a move from {mark.get('source')}, which has changed since, from another "
            f"index, or with another ttl; {remedy}, and repeat the move"
        )


def checked_batches(source: Source) -> Iterator[_native.MovedDocuments]:
    """Yield the documents of a source."""
    num = 0
    for documents in source.batches():
        if not are_next(documents, num):
            raise _changed(source)
        num += len(documents)
        yield documents
    if num != len(source) or source.standing() != source.began:
        raise _changed(source)


def _changed(source: Source) -> StoreError:
    return StoreError(
        f"{source.about.place} changed while it was read; stop its writers, delete what was written, and repeat "
        "the call"
    )


def are_next(documents: _native.MovedDocuments, row: int) -> bool:
    """Return whether documents have consecutive rows from `row` on."""
    num = len(documents)
    return len(documents.rest_from(row)) == num and not len(documents.rest_from(row + num))


def checksum_of(batches: Iterator[_native.MovedDocuments]) -> tuple[int, int]:
    """Return the number of documents, and a checksum over their ids, order, verdicts, sketches and arrival times."""
    num, checksum = 0, 0
    for documents in batches:
        num += len(documents)
        checksum = documents.checksum(checksum)
    return num, checksum


class DirectorySource:
    """The documents of an index in a directory."""

    def __init__(self, native: _native.OnlineIndex, about: About, numbers: _native.RowNumbers | None = None) -> None:
        self.about = about
        self._native = native
        self.began = self.standing()
        self._numbers = native.moving_rows() if numbers is None else numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def standing(self) -> list[Any]:
        """Return JSON values that change whenever the documents or verdicts do."""
        return ["directory", *self._native.standing()]

    def batches(self) -> Iterator[_native.MovedDocuments]:
        """Yield the documents in parts of bounded size."""
        row = 0
        while (found := self._native.moved_from(row, self._numbers)) is not None:
            documents, row = found
            if len(documents):
                yield documents


class ServerSource:
    """The documents of an index on servers."""

    def __init__(
        self,
        client: "Client",
        about: About,
        identity: bytes,
        *,
        as_of_s: int | None = None,
        numbers: _native.RowNumbers | None = None,
    ) -> None:
        self.about = about
        self._ask, self._log, self._rule, self._identity = client.ask, client.log, client.rule, identity
        start = self._settled()
        self.began = self._standing_of(start)
        self._num_rows: int = start.row
        self.as_of_s: int = start.second if as_of_s is None else as_of_s
        self._numbers = self._moving_rows() if numbers is None else numbers

    def kept(self, documents: _native.MovedDocuments) -> _native.MovedDocuments:
        """Return documents as the servers store them."""
        return self._rule.without_texts(documents)

    def _settled(self) -> Any:
        """Return the log when all operations have verdicts. A pending one has no rows yet."""
        while True:
            # An answer first finishes the pending operations.
            self._ask(self._rule.records(0, 0))
            log = self._log()
            if all(operation.verdict is not None for operation in log.operations):
                return log

    def _moving_rows(self) -> _native.RowNumbers:
        numbers = _native.RowNumbers(0)
        oldest_s = 0 if self.about.ttl_s is None else max(0, self.as_of_s - self.about.ttl_s)
        for documents in self._parts():
            numbers.add(documents, oldest_s)
        numbers.count()
        return numbers

    def _parts(self) -> Iterator[_native.MovedDocuments]:
        row = 0
        while row < self._num_rows:
            documents, row = self._ask(self._rule.records(row, min(_ROWS_A_READ, self._num_rows - row)))
            yield documents

    def __len__(self) -> int:
        return len(self._numbers)

    def standing(self) -> list[Any]:
        """Return JSON values that change whenever the documents or verdicts do."""
        return self._standing_of(self._log())

    def _standing_of(self, log: Any) -> list[Any]:
        return ["server", self._identity.decode(), log.end, log.chains[-1].decode()]

    def batches(self) -> Iterator[_native.MovedDocuments]:
        """Yield the documents in parts of bounded size."""
        for documents in self._parts():
            moving = self._numbers.renumbered(documents)
            if len(moving):
                yield moving


VERSION = 1
SUFFIX = ".parquet"
_KIND = "likewise index"
_KEY = b"likewise"
# Rows that are read at once, at most, and their bytes by the average of a row group.
_ROWS_A_BATCH = 2000
_BYTES_A_BATCH = 8 << 20
# A row group ends at one of these.
_ROWS_A_GROUP = 1 << 16
_BYTES_A_GROUP = 32 << 20


def write_parquet(path: Path, source: Source) -> int:
    """Write the documents of a source to a file, complete or absent, read it again, and return their number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = source.about
    schema = _schema(about)
    whole = WholeFile(path)
    try:
        num, checksum = 0, 0
        with whole.named_errors(), pq.ParquetWriter(whole.unfinished.absolute(), schema, compression="zstd") as writer:
            group: list[Any] = []
            for documents in checked_batches(source):
                num += len(documents)
                checksum = documents.checksum(checksum)
                group.append(pa.record_batch(documents))
                is_full = sum(len(batch) for batch in group) >= _ROWS_A_GROUP
                if is_full or sum(batch.nbytes for batch in group) >= _BYTES_A_GROUP:
                    writer.write_table(pa.Table.from_batches(group, schema))
                    group = []
            if group:
                writer.write_table(pa.Table.from_batches(group, schema))
            writer.add_key_value_metadata(_metadata(about, num, checksum))
        try:
            checksum_of(ParquetSource(whole.unfinished).batches())
        except InvalidInput as error:
            raise StoreError(f"{path} could not be read again: {error}; check the disk, and repeat the call") from error
        with whole.named_errors():
            whole.finish()
    finally:
        whole.discard()
    return num


def _parts(about: About) -> dict[str, Any]:
    return recipe_parts(about.recipe, about.store, {})


def _schema(about: About) -> ArrowSchema:
    import pyarrow as pa

    return pa.record_batch(_native.MovedDocuments.none(_parts(about))).schema


def _metadata(about: About, num: int, checksum: int) -> dict[bytes, bytes]:
    fields = {
        "kind": _KIND,
        "version": VERSION,
        "recipe": about.recipe.to_dict(),
        "recipe_id": about.recipe.recipe_id,
        "store": about.store,
        "ttl_s": about.ttl_s,
        **({} if about.ttl_from == "first_seen" else {"ttl_from": about.ttl_from}),
        "num_documents": num,
        "checksum": f"{checksum:016x}",
        "made_by": f"likewise {_native.__version__}",
    }
    companions = {_companion(name): base64.b64encode(content) for name, content in companions_of(about.recipe).items()}
    return {_KEY: json.dumps(fields, ensure_ascii=False).encode(), **companions}


def _companion(name: str) -> bytes:
    return _KEY + b":" + name.encode()


class ParquetSource:
    """The documents of a file that :func:`write_parquet` wrote."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self._path = path
        # A missing column is a KeyError.
        self._errors = (pa.ArrowException, OSError, EOFError, KeyError)
        try:
            self._file = open_parquet(path)
            metadata = self._file.schema_arrow.metadata or {}
            metadata |= self._file.metadata.metadata or {}
        except FileNotFoundError:
            raise
        except self._errors as error:
            raise InvalidInput(f"not a Parquet file, or damaged: {error}", str(path)) from error
        try:
            fields = json.loads(metadata[_KEY])
            is_ours = fields["kind"] == _KIND
        except (KeyError, ValueError, TypeError):
            is_ours = False
        if not is_ours:
            raise InvalidInput(
                "not an exported index; write one with `likewise index export -o FILE.parquet`", str(path)
            )
        if fields["version"] != VERSION:
            raise StoreError(f"{path} has version {fields['version']} of the format; this version reads {VERSION}")
        try:
            self.about = self._about(fields, metadata)
            self._num, self._checksum = int(fields["num_documents"]), int(fields["checksum"], 16)
        except (KeyError, ValueError, TypeError, LikewiseError) as error:
            raise InvalidInput(f"its metadata are damaged: {error}", str(path)) from error

    def _about(self, fields: dict[str, Any], metadata: dict[bytes, bytes]) -> About:
        kept = {}
        for name in NAMES:
            if (encoded := metadata.get(_companion(name))) is not None:
                try:
                    kept[name] = base64.b64decode(encoded, validate=True)
                except binascii.Error as error:
                    raise InvalidInput(f"the {name} of the recipe are not base64") from error
        recipe = check_recipe(Recipe.from_json(json.dumps(fields["recipe"])).replace(**fields_of_companions(kept)))
        if recipe.recipe_id != fields["recipe_id"]:
            raise RecipeMismatch(
                "the recipe is not the one of the file", {"recipe_id": (recipe.recipe_id, fields["recipe_id"])}
            )
        if fields["store"] not in STORES:
            raise InvalidInput(f"unknown store {fields['store']!r}")
        ttl_s = check_ttl(fields["ttl_s"])
        ttl_from = check_ttl_from(fields.get("ttl_from", "first_seen"), ttl_s)
        return About(recipe, fields["store"], ttl_s, str(self._path), ttl_from=ttl_from)

    def __len__(self) -> int:
        return self._num

    def _rows_a_batch(self) -> int:
        metadata = self._file.metadata
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        largest = max((group.total_byte_size / max(1, group.num_rows) for group in groups), default=0)
        return max(1, min(_ROWS_A_BATCH, int(_BYTES_A_BATCH // max(1, largest))))

    @property
    def began(self) -> list[Any]:
        """The standing, which does not change."""
        return self.standing()

    def standing(self) -> list[Any]:
        """Return JSON values that change whenever the documents or verdicts do."""
        return ["parquet", self._num, f"{self._checksum:016x}"]

    def batches(self) -> Iterator[_native.MovedDocuments]:
        """Yield the documents in parts of bounded size."""
        num, checksum = 0, 0
        schema, parts = _schema(self.about), _parts(self.about)
        try:
            for batch in self._file.iter_batches(self._rows_a_batch(), columns=schema.names):
                documents = _native.MovedDocuments.from_arrow(batch.select(schema.names).cast(schema), parts)
                if (last := documents.last_kept_row()) is not None and last >= self._num:
                    raise InvalidInput("kept_seq is not that of a document")
                if not are_next(documents, num):
                    raise InvalidInput("seq has gaps or is not ascending")
                num += len(documents)
                checksum = documents.checksum(checksum)
                yield documents
        except (*self._errors, InvalidInput) as error:
            raise InvalidInput(f"the file is damaged: {error}; export the index again", str(self._path)) from error
        if (num, checksum) != (self._num, self._checksum):
            raise InvalidInput(
                "the file is damaged: its documents are not those that were exported; export the index again",
                str(self._path),
            )
