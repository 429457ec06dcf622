"""An index with dicts for the log and the partitions of docs/developers/cluster.md, with the interface of an index.

Nothing fails here, and there is only one writer. The views of decisions vary: the low mark, the folds of partitions,
and the effects of lost operations. Each operation is decided twice, from different views.
"""

import random
import struct
from types import SimpleNamespace

import likewise
from likewise import _native
from likewise.index.api import Verdicts
from likewise.index.ids import paired
from likewise.index.opening import check_recipe, check_store, recipe_parts
from likewise.stages.text import document_batches

ADD, REMOVE = 0, 1


def strings(packed, head="<H"):
    """Return byte strings that are packed after their lengths."""
    found, at, width = [], 0, struct.calcsize(head)
    while at < len(packed):
        (length,) = struct.unpack_from(head, packed, at)
        found.append(packed[at + width : at + width + length])
        at += width + length
    return found


def parts_of(changes):
    """Return (kind, name, arguments) of each change."""
    parts, found = iter(strings(changes, "<I")), []
    for head in parts:
        kind = head[:1]
        found.append((kind, head[1:], [next(parts) for _ in range(2 if kind == b"S" else 1)]))
    return found


class Partition:
    """The stored strings and hashes, and changes that are not final."""

    def __init__(self):
        self.strings, self.hashes, self.changes, self.fold = {}, {}, {}, 0

    def write(self, position, nonce, effects):
        _, _, tables, entries, chunks, fields, records, changes = effects
        at = 0
        for name in strings(tables):
            length = name[0]
            self.strings[name[1:]] = self.strings.get(name[1:], b"") + entries[at : at + length]
            at += length
        assert at == len(entries)
        for chunk, field, record in zip(strings(chunks), strings(fields), strings(records, "<I"), strict=True):
            self.hashes.setdefault(chunk, {})[field] = record
        if changes:
            self.changes[position, nonce] = changes

    def fold_to(self, position):
        """Make changes of operations below a position final."""
        for key in sorted(key for key in self.changes if key[0] < position):
            for kind, name, arguments in parts_of(self.changes.pop(key)):
                if kind in b"AD":
                    (entry,) = arguments
                    length = len(entry)
                    packed = self.strings.get(name, b"")
                    entries = [packed[at : at + length] for at in range(0, len(packed), length)]
                    entries = [other for other in entries if other != entry]
                    self.strings[name] = b"".join([*entries, entry] if kind == b"A" else entries)
                elif kind == b"S":
                    self.hashes[name][arguments[0]] = arguments[1]
                else:
                    del self.hashes[name][arguments[0]]
        self.fold = max(self.fold, position)

    def read(self, names, records, low):
        fields = strings(records)
        pairs = zip(fields[::2], fields[1::2], strict=True)
        return (
            [self.strings.get(name, b"") for name in strings(names)],
            [self._value(self.hashes.get(chunk, {}), field) for chunk, field in pairs],
            [self.changes[key] for key in sorted(self.changes) if key[0] < low],
        )

    @staticmethod
    def _value(stored, field):
        """Return the value of a field, or all fields and values if the field is empty."""
        if field:
            return stored.get(field)
        return b"".join(struct.pack("<I", len(one)) + one for pair in stored.items() for one in pair)


class Views:
    """An index stored in dicts.

    Parameters
    ----------
    recipe : Recipe
    partitions, expected : int
        As for a cluster.
    ttl : int, optional
    seed : int
        Seed of the random views.
    """

    # An index on a server does not support erasure.
    place = "dicts"

    def __init__(self, recipe, *, partitions=5, expected=2000, ttl=None, seed=0):
        self.recipe = check_recipe(recipe)
        parts = recipe_parts(self.recipe, check_store(None, self.recipe), {})
        plan = _native.ClusterRule.plan_for(parts, expected)
        self.rule = _native.ClusterRule(parts, self.recipe.feature_rules, plan, partitions=partitions, ttl_seconds=ttl)
        self.partitions = [Partition() for _ in range(partitions)]
        self.chance = random.Random(seed)
        self.log, self.low, self.row, self.second = [], 0, 0, 0
        self.written, self.there, self.num_rounds = 0, set(), 0

    # The protocol.

    def _decide(self, payload, nonce):
        """Return the decision on an operation at the end of the log."""
        low = self.low
        low_row = self.log[low][3] if low < len(self.log) else self.row
        below = b"".join(nonce + struct.pack("<II", row, num) for _, nonce, _, row, num, *_ in self.log[:low])
        tail = self.log[low:]
        decision = self.rule.decide(payload, (self.row, self.second, nonce), tail, low_row, below)
        self.num_rounds = 0
        while wanted := decision.wanted():
            assert len({partition for partition, *_ in wanted}) == len(wanted)
            self.num_rounds += 1
            for partition, names, records in wanted:
                decision.take(partition, *self.partitions[partition].read(names, records, low))
        return decision

    def _ask(self, payload):
        return self._decide(payload, bytes(8)).answer()

    def _do(self, kind, payload):
        """Append an operation, decide it from two views, store and write it."""
        nonce = self.chance.randbytes(8)
        self._leave_lost(payload)
        verdict = self._decide(payload, nonce).verdict()
        answer = self.rule.answer(payload, self.row, verdict)
        self._move()
        assert self._decide(payload, nonce).verdict() == verdict
        num, _, gone, _ = self.rule.counts(verdict)
        position = len(self.log)
        self.log.append((position, nonce, kind, self.row, num, self.second, payload, verdict))
        self.row += num
        assert (gone > 0) == (kind == REMOVE and answer is not None)
        self._move()
        return answer

    def _move(self):
        """Write decided operations, move the low mark, and fold, each up to a random position."""
        chance = self.chance
        for position in range(self.written, chance.randint(self.written, len(self.log))):
            _, nonce, _, row, _, second, payload, verdict = self.log[position]
            effects = self.rule.effects(payload, (row, second, nonce), verdict)
            assert effects == self.rule.effects(payload, (row, second, nonce), verdict)
            for partition, *of_partition in effects:
                self.partitions[partition].write(position, nonce, of_partition)
            self.written = position + 1
        self.low = chance.randint(self.low, self.written)
        for partition in self.partitions:
            partition.fold_to(chance.randint(partition.fold, max(partition.fold, self.low)))

    def _leave_lost(self, payload):
        """Sometimes write effects of an operation that the log has lost, whose rows are used again."""
        if payload[0] != ADD or self.chance.random() < 0.7:
            return
        nonce = self.chance.randbytes(8)
        verdict = self._decide(payload, nonce).verdict()
        for partition, *of_partition in self.rule.effects(payload, (self.row, self.second, nonce), verdict):
            # Records with different nonces have different fields, so that neither hides the other.
            self.partitions[partition].write(len(self.log), nonce, of_partition)

    # The interface of an index.

    def _verdicts(self, columns, names):
        names = None if names is None else list(names)
        return Verdicts.of_columns(columns, self.recipe.measure, names)

    def check_and_add_batch(self, ids, texts):
        parts = []
        for names, batch in paired(ids, document_batches(texts, self.recipe)):
            columns = self._do_add(names, batch)
            parts.append(self._verdicts(columns, names))
        verdicts = parts[0] if len(parts) == 1 else Verdicts.concatenate(parts)
        for verdict in verdicts:
            if verdict.added:
                self.there.add(verdict.doc_id)
        return verdicts

    def _do_add(self, names, batch):
        try:
            return self._do(ADD, self.rule.add(names, batch))
        except likewise.errors.InvalidInput:
            # The log contains the operation nevertheless.
            self._move()
            raise

    def check_and_add(self, doc_id, text):
        return self.check_and_add_batch([doc_id], [text])[0]

    add, add_batch = check_and_add, check_and_add_batch

    def check_batch(self, texts):
        parts = [
            self._verdicts(self._ask(self.rule.check(batch)), None) for batch in document_batches(texts, self.recipe)
        ]
        return parts[0] if len(parts) == 1 else Verdicts.concatenate(parts)

    def check(self, text):
        return self.check_batch([text])[0]

    def get(self, doc_id):
        found = self._ask(self.rule.get(doc_id))
        if found is None:
            return None
        row, kept_id, similarity, distance, _ = found
        is_new = kept_id is None
        similarity = None if is_new else similarity
        return SimpleNamespace(
            doc_id=doc_id, is_new=is_new, kept_id=kept_id, similarity=similarity, distance=distance, seq=row + 1
        )

    def _known(self, found, doc_id):
        if found is None:
            raise likewise.errors.InvalidInput(f"no document with id {doc_id!r}")
        return found

    def group(self, doc_id):
        leader, is_gone, members = self._known(self._ask(self.rule.group(doc_id)), doc_id)
        return SimpleNamespace(leader_id=leader, is_leader_gone=is_gone, member_ids=members)

    def remove(self, doc_id):
        found = self._known(self._do(REMOVE, self.rule.remove(doc_id)), doc_id)
        self.there.discard(doc_id)
        was_kept, promoted, moved = found
        return SimpleNamespace(doc_id=doc_id, was_kept=was_kept, promoted=promoted, moved=moved)

    def erase(self, ids):
        raise likewise.errors.StoreError("RDB and AOF files keep it")

    def neighbors(self, text, k=10, min_similarity=0.0, among="candidates"):
        assert among == "candidates"
        (batch,) = document_batches([text], self.recipe)
        (found,) = self._ask(self.rule.neighbors(batch, k, min_similarity))
        return [SimpleNamespace(doc_id=i, similarity=s, distance=d, matches=m) for i, s, d, m in found]

    def ids(self):
        step = self.chance.choice([1, 50, 100])
        for first in range(0, self.row, step):
            for (row, doc_id, second), *_ in self._ask(self.rule.listing(first, step)):
                assert first <= row < first + step
                assert second <= self.second
                yield doc_id
            num, findings = self._ask(self.rule.audit(first, step))
            assert findings == []
            assert num <= step

    def __contains__(self, doc_id):
        return self.get(doc_id) is not None

    def __len__(self):
        return len(self.there)

    def close(self):
        pass
