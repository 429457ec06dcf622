"""The interface of the decision. Only the rule interprets the bytes of operations, entries and records."""

from typing import Any, Protocol, TypeAlias

# Position, nonce, kind, row, number of rows, second, payload, verdict.
Decided: TypeAlias = tuple[int, bytes, int, int, int, int, bytes, bytes]
# Partition; then arguments of `write`: first row, number of rows, tables, entries, chunks, fields, records, changes.
Effects: TypeAlias = tuple[int, int, int, bytes, bytes, bytes, bytes, bytes, bytes]


class Decision(Protocol):
    """One decision, which requests data in rounds until nothing is missing."""

    def wanted(self) -> list[tuple[int, bytes, bytes]]:
        """Return the tables and records to read from each partition, or an empty list if nothing is missing."""

    def take(
        self, partition: int, found: list[bytes | None], records: list[bytes | None], changes: list[bytes]
    ) -> None:
        """Take the data of one partition, with the changes of operations below W in order of position."""

    def searched(self) -> tuple[int, int]:
        """Return how many documents were searched, and how many candidates were read for them."""

    def verdict(self) -> bytes:
        """Return the verdict."""


class Rule(Protocol):
    """The rule of the online index, the same for all clients."""

    def decide(
        self,
        payload: bytes,
        row: int,
        second: int,
        nonce: bytes,
        tail: list[Decided],
        low_row: int,
        below: bytes,
    ) -> Decision:
        """Begin a decision."""

    def effects(self, payload: bytes, row: int, second: int, nonce: bytes, verdict: bytes) -> list[Effects]:
        """Return the effects of a decided operation, by partition."""

    def answer(self, payload: bytes, row: int, verdict: bytes) -> Any:
        """Return the answer to the caller."""

    def rejected(self, reason: str) -> bytes:
        """Return the verdict on an operation on which no decision is possible. Its answer is a StoreError."""

    def num_rows(self, payload: bytes) -> int:
        """Return the largest number of rows that an operation can take."""

    def sweep(self, first_row: int, num_rows: int) -> bytes | None:
        """Return the operation that deletes rows that expired long ago, or None if documents do not expire.

        Its answer is the first row that it did not delete, and the number of documents.
        """

    def counts(self, verdict: bytes) -> tuple[int, int, int, int]:
        """Return how many documents a verdict adds, how many of them are new, how many it removes, how far it swept.

        The last is the row below which documents that expired long ago are deleted, or 0.
        """

    def ids(self, payload: bytes) -> list[str]:
        """Return the ids that an operation adds or removes."""

    def lost_ids(self, records: list[bytes]) -> list[str]:
        """Return the ids in records."""
