"""Maintenance of an index on servers: facts, checks, export."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from likewise import _native
from likewise.errors import StoreError, counted
from likewise.index.redis.client import Client
from likewise.index.redis.description import Description
from likewise.index.redis.log import Entry, Log, LogServer, Loss, Partitions, entries_of, marks_of
from likewise.index.redis.nodes import Nodes
from likewise.recipe.methods import MinHash

# Row, id, second of arrival; sketch and number of features; id of the kept document, and similarity and distance.
Listed = tuple[tuple[int, str, int], tuple[bytes, int], tuple[str | None, tuple[float, int | None] | None]]
# Rows that one request lists. An audit reads all tables of its rows, so it has fewer.
_ROWS_A_LIST = 4096
_ROWS_AN_AUDIT = 256
# Documents of a lost operation that are looked up, and that are shown.
_IDS_LOOKED_UP = 20
_SHOWN_IDS = 3
_REBUILD = "rebuild the index"
# Seconds between two reads before this is reported.
_PAUSE_S = 0.2
_LACKS = {
    "t": "the table of fingerprints has no entry for {}",
    "i": "the table of ids has no entry for {}",
    "c": "the table of equal documents has no entry for {}",
    "0": "the table of bands has no entry for {}",
    "1": "the second table of bands has no entry for {}",
    "2": "the third table of bands has no entry for {}",
    "g": "the duplicates of its kept document do not include {}",
    "s": "the features of {} are missing",
    "": "the document {} is a duplicate of one that is not kept",
}


class Opened(NamedTuple):
    """The parts of an index on servers, as one client opened it."""

    nodes: Nodes
    prefix: bytes
    client: Client
    log: LogServer
    rule: _native.ClusterRule
    description: Description


def listed(client: Client, rule: _native.ClusterRule) -> Iterator[Listed]:
    """Yield the documents in order of arrival, of all rows that the log has when the iteration begins."""
    log = client.log()
    for row in range(0, log.row, _ROWS_A_LIST):
        yield from client.ask(rule.listing(row, min(_ROWS_A_LIST, log.row - row)))
    now = client.log()
    if now.end < log.end or now.chain(log.end) not in (None, log.chains[-1]):
        raise StoreError("the servers restarted from older data during the read; repeat the call")


def export(client: Client, rule: _native.ClusterRule, measure: str, path: Path) -> int:
    """Write the documents as JSON Lines, as an index in a directory does, and return their number."""
    num = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for (row, doc_id, second), (sketch, num_features), (kept_id, evidence) in listed(client, rule):
            line: dict[str, Any] = {
                "doc_id": doc_id,
                "seq": row + 1,
                "arrival_s": second,
                "sketch": sketch.hex(),
                "num_features": num_features,
                "is_new": kept_id is None,
            }
            if evidence is not None:
                similarity, distance = evidence
                # Whole numbers without a fraction, as an index in a directory writes them.
                shown = int(similarity) if similarity.is_integer() else similarity
                line |= {"kept_id": kept_id, "measure": measure, "similarity": shown}
                line |= {} if distance is None else {"distance": distance}
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
            num += 1
    return num


def num_documents(of: Opened) -> int:
    """Return the number of documents that are neither removed nor expired."""
    if of.description.ttl_s is not None:
        # Expired documents are only skipped, so they are not counted anywhere.
        return sum(1 for _ in listed(of.client, of.rule))
    of.client.log()
    added, gone = _counts(of.log.fields())
    return added - gone


def _counts(fields: dict[bytes, bytes]) -> tuple[int, int]:
    """Return how many documents were added and removed by stored verdicts."""
    return int(fields.get(b"added", 0)), int(fields.get(b"gone", 0))


def load(of: Opened) -> dict[str, Any]:
    """Return the length of the log, what is unconfirmed, and what this client read, repeated and repaired."""
    client, description = of.client, of.description
    log = client.log()
    fields = of.log.fields()
    added, gone = _counts(fields)
    return {
        # Only reading all documents shows which have expired.
        "num_documents": None if description.ttl_s is not None else added - gone,
        # What this client read, and by the model of the plan for the expected number of documents.
        "candidates_per_document": client.num_candidates / client.num_searched if client.num_searched else None,
        "planned_candidates_per_document": of.rule.plan_facts()["candidates"],
        "log_operations": log.end - log.low,
        "log_bytes": int(fields[b"bytes"]),
        "log_limit_operations": description.options.bound,
        "log_limit_bytes": description.options.bound_bytes,
        "num_unconfirmed": log.end - log.mark,
        "num_losses": len(client.losses()),
        "num_requests_repeated": of.nodes.num_repeated,
        "num_operations_helped": client.num_helped,
        "num_partitions_repaired": client.num_repaired,
    }


def _lag_limits(log: Log, partitions: Partitions) -> dict[str, int | None]:
    """Return how far a replica may lag that takes over, in operations and seconds; None for any lag."""
    folds = [reply.fold for reply in partitions.call([partitions.verify(part, []) for part in range(partitions.num)])]
    limits = {
        "partition": min(folds) - log.low if log.low else None,
        "log": log.end - max(folds) if max(folds) else None,
    }
    facts: dict[str, int | None] = {}
    for name, num in limits.items():
        first = None if num is None else log.at(log.end - num)
        facts[f"{name}_lag_limit_operations"] = num
        facts[f"{name}_lag_limit_s"] = None if first is None else log.second - first.second
    return facts


def stats(of: Opened) -> dict[str, Any]:
    """Return facts about an index, the work of this client, and the servers."""
    description = of.description
    partitions = Partitions(of.nodes, of.prefix, description.partitions)
    log = of.client.log()
    fields = {name.decode(): value for name, value in of.log.fields().items()}
    infos = of.nodes.infos()
    plan = of.rule.plan_facts()
    recipe, has_ttl = description.recipe, description.ttl_s is not None
    facts: dict[str, Any] = {
        **load(of),
        "num_documents": num_documents(of),
        # The count includes expired documents.
        "num_kept": None if has_ttl else int(fields.get("new", 0)),
        "num_rows": log.row,
        "recipe_id": recipe.recipe_id,
        "recipe": recipe.to_dict(),
        "recall": recipe.stated_recall,
        "ttl_s": description.ttl_s,
        "expected": description.expected,
        "partitions": description.partitions,
        "durability": description.durability,
        **_lag_limits(log, partitions),
        "num_tables": int(plan["tables"]),
        "num_probes": int(plan["probes"]),
        "table_bytes_per_document": plan["table_bytes"],
        "made_by": description.made_by,
        "servers": [
            {
                "server": place,
                "server_version": info.get("valkey_version", info.get("redis_version")),
                "memory_bytes": int(info.get("used_memory", 0)),
                "memory_limit_bytes": int(info.get("maxmemory", 0)) or None,
                "appends_to_file": info.get("aof_enabled") == "1",
                "num_replicas": int(info.get("connected_slaves", 0)),
            }
            for place, info in infos
        ],
    }
    if isinstance(recipe.sketch, MinHash):
        # The number of documents in full buckets is not counted.
        facts["recall_full_buckets"] = recipe.recall_with(1, 1)
    return facts


class Verification:
    """A check of an index, which reads the log again instead of relying on what the client keeps of it."""

    def __init__(self, of: Opened) -> None:
        self._server = LogServer(of.nodes, of.prefix)
        self._partitions = Partitions(of.nodes, of.prefix, of.description.partitions)
        self._client, self._rule = of.client, of.rule
        self._nodes, self._doubt_s = of.nodes, of.description.options.doubt_s
        self._has_ttl = of.description.ttl_s is not None

    def findings(self, *, full: bool) -> list[str]:
        """Return one message for each problem; if `full`, also of the tables."""
        # Reports what this client lost.
        self._client.log()
        try:
            log = self._read()
        except StoreError as error:
            return [str(error)]
        found = list(self._of_partitions(log))
        until = time.monotonic() + self._doubt_s
        while found:
            # Meanwhile, another client may have restored lost writes, or a node replied that another one has replaced.
            found = list(self._of_partitions(self._read()))
            if not any(_REBUILD in text for text in found) or time.monotonic() > until:
                break
            time.sleep(_PAUSE_S)
            self._nodes.look_again()
        of_documents = self._of_documents() if full and not found else ()
        return [*found, *self._of_losses(), *of_documents]

    def _read(self) -> Log:
        self._server.doubt()
        return self._server.ask("begin", b"", b"").log

    def _of_partitions(self, log: Log) -> Iterator[str]:
        """Yield the partitions whose history does not contain the marks of the log, and unknown effects."""
        replies = self._partitions.call([self._partitions.verify(part, of) for part, of in enumerate(self._marks(log))])
        # Meanwhile, clients may have replaced marks, and folded operations that came later.
        now = self._read()
        current = self._marks(now)
        unknown: list[tuple[int, Entry]] = []
        for part, reply in enumerate(replies):
            missing = [mark for mark in reply.more[0] if mark in current[part]]
            if missing:
                repair = (
                    f"they cannot be restored; {_REBUILD}"
                    if reply.fold < log.low
                    else "the next addition restores them"
                )
                yield f"partition {part} lost {counted(len(missing), 'write')} of the log; {repair}"
            elif reply.fold > now.end or now.chain(reply.fold) not in (None, reply.chain):
                yield f"partition {part} has final data of operations that the log does not have; {_REBUILD}"
            journal = self._partitions.call([self._partitions.read(part, reply.mark, b"", b"")])[0]
            # Another client may have purged or folded it in between.
            packed = journal.more[0] if journal.more else b""
            unknown += [(part, entry) for entry in entries_of(packed) if not now.has(*entry)]
        if unknown:
            # They may have been appended after the log was read.
            now = self._read()
            lost = {entry for _, entry in unknown if entry.position >= now.low and not now.has(*entry)}
            if lost:
                yield (
                    f"{counted(len(lost), 'operation')} of a partition, and not of the log: a failover lost them, and "
                    "the next folding reports their documents"
                )

    def _marks(self, log: Log) -> list[list[bytes]]:
        """Return the marks of each partition that it must have: the confirmed one, and those of writes since."""
        marks = [[mark] for mark in log.confirmed]
        for operation in log.operations[log.mark - log.low :]:
            for part, mark in marks_of(operation.marks or b"").items():
                marks[part].append(mark)
        return marks

    def _of_losses(self) -> Iterator[str]:
        """Yield the lost operations whose documents are not in the index again."""
        for loss in self._client.losses():
            missing = [doc_id for doc_id in loss.doc_ids[:_IDS_LOOKED_UP] if self._is_absent(doc_id)]
            if missing:
                yield _loss_text(loss, missing)

    def _is_absent(self, doc_id: str) -> bool:
        return self._client.ask(self._rule.get(doc_id)) is None

    def _of_documents(self) -> Iterator[str]:
        """Yield what documents lack in the tables, and wrong counts."""
        # The first answer finishes the pending operations.
        self._client.ask(self._rule.audit(0, 0))
        before = self._read()
        counts = _counts(self._server.fields())
        num = 0
        for row in range(0, before.row, _ROWS_AN_AUDIT):
            of_rows, findings = self._client.ask(self._rule.audit(row, _ROWS_AN_AUDIT))
            num += of_rows
            for doc_id, name in findings:
                # The kept document of an expired one may have been deleted.
                if not name and self._has_ttl and self._is_absent(doc_id):
                    continue
                yield _LACKS[name[:1].decode("ascii", "replace")].format(repr(doc_id))
        after = self._read()
        # Counts are of one moment only if no operation came in between, and none got its verdict.
        now = _counts(self._server.fields())
        if (before.mark, before.chains[-1], counts) != (after.mark, after.chains[-1], now):
            return
        if self._has_ttl:
            # Records of expired documents may have been deleted.
            return
        expected = counts[0] - counts[1]
        for operation in after.operations[after.mark - after.low :]:
            if operation.verdict is None:
                return
            added, _, gone, _ = self._rule.counts(operation.verdict)
            expected -= added - gone
        if num != expected:
            yield (
                f"{counted(expected, 'document was', 'documents were')} added and not removed, but "
                f"{counted(num, 'has', 'have')} a record"
            )


def _loss_text(loss: Loss, missing: list[str]) -> str:
    """Return a description of a lost operation with some of its missing documents."""
    shown = ", ".join(map(repr, missing[:_SHOWN_IDS])) + (", ..." if len(missing) > _SHOWN_IDS else "")
    return (
        f"a failover lost operation {loss.position} with {counted(len(loss.doc_ids), 'document')}, of which some are "
        f"missing: {shown}; add them again"
    )
