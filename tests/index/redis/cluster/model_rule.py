"""The model's rule on tiny documents, with the interface that the client expects: what it reads, and what it writes."""

import marshal
import struct

from likewise.errors import StoreError
from tests.index.store import cluster_model as cluster
from tests.index.store.cluster_model import (
    ADD,
    ADD_ID,
    ADD_RECORD,
    ADD_TEXT,
    CHECK,
    DELETE_ID,
    DELETE_TEXT,
    GONE,
    REMOVE,
    SET_RECORD,
    SWEEP,
    TEXTS,
    WITHIN,
    Record,
    State,
)

# A read-only operation that reads everything, with the number of ids.
ALL = 3
ROWS_A_CHUNK = 4
MAX_IDS = 8


def payload_of(kind, docs):
    return bytes([kind]) + marshal.dumps(docs, 2)


def content_of(payload):
    return payload[0], marshal.loads(payload[1:])


def near(text):
    return [other for other in TEXTS if cluster.distance(text, other) <= WITHIN]


def packed(strings, size="<H"):
    return b"".join(struct.pack(size, len(one)) + one for one in strings)


def unpacked(packed, size=4):
    found, at = [], 0
    while at < len(packed):
        length = int.from_bytes(packed[at : at + size], "little")
        found.append(packed[at + size : at + size + length])
        at += size + length
    return found


def reference(row, tag):
    return struct.pack("<I2s", row, tag)


class ModelRule:
    """The rule with `num` partitions."""

    def __init__(self, num, ttl=None):
        self.num, self.model = num, cluster.Rule(ttl)

    def part(self, name):
        return (b"itmr".index(name[:1]) + int(name[1:])) % self.num

    @staticmethod
    def chunk(row):
        return b"r%d" % (row // ROWS_A_CHUNK)

    def decide(self, payload, arrival, tail, low_row, below):
        return Decision(self, payload, *arrival, tail, low_row, below)

    def rejected(self, reason):
        return marshal.dumps((("rejected", reason), (), {}, {}), 2)

    def sweep(self, first_row, num_rows):
        return None if self.model.ttl is None else payload_of(SWEEP, (first_row,))

    def num_rows(self, payload):
        kind, docs = content_of(payload)
        return len(docs) if kind == ADD else 0

    def ids(self, payload):
        kind, docs = content_of(payload)
        if kind == SWEEP:
            return []
        return [str(doc_id) for doc_id, _ in docs] if kind == ADD else [str(docs[0])]

    def lost_ids(self, records):
        return [str(marshal.loads(record)[0]) for record in records]

    def counts(self, verdict):
        effects = marshal.loads(verdict)[1]
        added = [value for what, _, value in effects if what == ADD_RECORD]
        gone = sum(what == GONE for what, *_ in effects)
        return len(added), sum(value[3] is None for value in added), gone, 0

    def answer(self, payload, row, verdict):
        answer = marshal.loads(verdict)[0]
        if answer[:1] == ("rejected",):
            raise StoreError(answer[1])
        kind, docs = content_of(payload)
        return (docs[0] + len(answer), len(answer)) if kind == SWEEP else answer

    def effects(self, payload, arrival, verdict):
        row, _, nonce = arrival
        _, effects, tags, records = marshal.loads(verdict)
        num = sum(what == ADD_RECORD for what, *_ in effects)
        tags = {**tags, **dict.fromkeys(range(row, row + num), nonce[:2])}
        parts = {}

        def of(name):
            return parts.setdefault(self.part(name), ([], [], [], [], [], []))

        def add(name, at):
            if row <= at < row + num:
                of(name)[0].append(b"\6" + name)
                of(name)[1].append(reference(at, tags[at]))
            else:
                of(name)[5].extend((b"A" + name, reference(at, tags[at])))

        for what, key, value in effects:
            if what == ADD_RECORD:
                leader = value[3]
                chunk = self.chunk(key)
                for i, one in enumerate((chunk, reference(key, tags[key]), record_of(value, tags))):
                    of(chunk)[2 + i].append(one)
                if leader is not None:
                    add(b"m%d" % leader, key)
            elif what == SET_RECORD:
                leader = value[0]
                chunk = self.chunk(key)
                of(chunk)[5].extend((b"S" + chunk, reference(key, tags[key]), record_of(records[key], tags)))
                if leader is not None:
                    add(b"m%d" % leader, key)
            elif what == GONE:
                chunk = self.chunk(key)
                of(chunk)[5].extend((b"X" + chunk, reference(key, tags[key])))
            elif what in (ADD_ID, ADD_TEXT):
                add((b"i%d" if what == ADD_ID else b"t%d") % key, value)
            else:
                name = (b"i%d" if what == DELETE_ID else b"t%d") % key
                of(name)[5].extend((b"D" + name, reference(value, tags[value])))
        return [
            (
                part,
                row,
                num,
                packed(names),
                b"".join(entries),
                packed(chunks),
                packed(fields),
                packed(of_part, "<I"),
                packed(changes, "<I"),
            )
            for part, (names, entries, chunks, fields, of_part, changes) in sorted(parts.items())
        ]


def record_of(record, tags):
    doc_id, text, second, leader, distance, stands = record
    return marshal.dumps((doc_id, text, second, leader, distance, stands, tags.get(leader, b"")), 2)


class Decision:
    def __init__(self, rule, payload, row, second, nonce, tail, low_row, below):
        self.rule, self.payload, self.row, self.second, self.nonce = rule, payload, row, second, nonce
        self.kind, self.docs = content_of(payload)
        self.low_row = low_row
        self.tags, self.effects = {}, []
        self.ranges = [struct.unpack_from("<8sII", below, at) for at in range(0, len(below), 16)]
        for _, of_nonce, _, first, num, _, _, verdict in tail:
            _, effects, tags, _ = marshal.loads(verdict)
            self.effects += effects
            self.tags |= {**tags, **dict.fromkeys(range(first, first + num), of_nonce[:2])}
        self.tables, self.records, self.asked = {}, {}, {}

    def state(self):
        state = State()
        for name, references in self.tables.items():
            kind, key = name[:1], int(name[1:])
            rows = sorted(struct.unpack_from("<I", one)[0] for one in references)
            if kind == b"i" and rows:
                state.ids[key] = rows[-1]
            elif kind == b"t" and rows:
                state.texts[key] = tuple(dict.fromkeys(rows))
        for one, record in self.records.items():
            if record is not None:
                state.records[struct.unpack_from("<I", one)[0]] = Record(*record[:6])
        state.apply([(what, key, Record(*value) if what == ADD_RECORD else value) for what, key, value in self.effects])
        return state

    def needed(self, state):
        """Return names of tables, and rows of records."""
        if self.kind in (ALL, SWEEP):
            ids, most = self.docs if self.kind == ALL else (MAX_IDS, self.low_row)
            names = [*(b"i%d" % i for i in range(ids)), *(b"t%d" % text for text in TEXTS)]
            rows = {*state.ids.values(), *(row for rows in state.texts.values() for row in rows)}
            names += [b"m%d" % row for row in range(min(most, self.low_row))]
            rows |= {struct.unpack_from("<I", one)[0] for found in self.tables.values() for one in found}
            return names, rows
        if self.kind == REMOVE:
            at = state.ids.get(self.docs[0])
            names, rows = [b"i%d" % self.docs[0]], set() if at is None else {at}
            if at is not None and at in state.records and state.records[at].leader is None:
                names.append(b"m%d" % at)
                rows |= {struct.unpack_from("<I", one)[0] for one in self.tables.get(b"m%d" % at, ())}
                rows |= {key for what, key, _ in self.effects if what == SET_RECORD}
                for record in state.records.values():
                    if record.leader == at:
                        names += [b"t%d" % other for other in near(record.text)]
                rows |= {row for rows in state.texts.values() for row in rows}
            return names, rows
        texts = self.docs if self.kind == CHECK else [text for _, text in self.docs]
        names = [b"t%d" % other for text in texts for other in near(text)]
        if self.kind == ADD:
            names += [b"i%d" % doc_id for doc_id, _ in self.docs]
        rows = {row for rows in state.texts.values() for row in rows} | {*state.ids.values()}
        rows |= {state.records[row].leader for row in rows if row in state.records} - {None}
        return names, rows

    def wanted(self):
        state = self.state()
        names, rows = self.needed(state)
        asked = {}
        for name in dict.fromkeys(names):
            if name not in self.tables:
                asked.setdefault(self.rule.part(name), ([], []))[0].append(name)
        for row in sorted(rows):
            one = reference(row, self.tags[row])
            if one not in self.records and row < self.low_row:
                chunk = self.rule.chunk(row)
                asked.setdefault(self.rule.part(chunk), ([], []))[1].append((chunk, one))
        self.asked = asked
        return [
            (part, packed(names), packed(string for pair in sorted(fields) for string in pair))
            for part, (names, fields) in sorted(asked.items())
        ]

    def counts(self, one):
        """Return whether an entry counts: it is below the low mark, and of the operation in the log for its row."""
        row, tag = struct.unpack("<I2s", one)
        if row >= self.low_row:
            return False
        return all(tag == nonce[:2] for nonce, first, num in self.ranges if first <= row < first + num)

    def take(self, part, found, records, changes):
        names, fields = self.asked[part]
        tables = {
            name: [strings[at : at + 6] for at in range(0, len(strings or b""), 6)]
            for name, strings in zip(names, found, strict=True)
        }
        values = {
            one: marshal.loads(record) if record else None
            for (_, one), record in zip(sorted(fields), records, strict=True)
        }
        for change in changes:
            parts = unpacked(change)
            while parts:
                kind, name = parts[0][:1], parts[0][1:]
                one = parts[1]
                if kind == b"S":
                    if one in values and values[one] is not None:
                        values[one] = marshal.loads(parts[2])
                    del parts[:3]
                    continue
                del parts[:2]
                if kind == b"X":
                    if one in values:
                        values[one] = None
                elif name in tables:
                    tables[name] = [other for other in tables[name] if other != one] + [one] * (kind == b"A")
        for name, references in tables.items():
            self.tables[name] = [one for one in references if self.counts(one)]
            self.tags |= {row: tag for row, tag in map(struct.Struct("<I2s").unpack, self.tables[name])}
        for one, record in values.items():
            self.records[one] = record if self.counts(one) else None
            if record is not None and record[3] is not None:
                self.tags.setdefault(record[3], record[6])

    def searched(self):
        return 0, 0

    def verdict(self):
        state = self.state()
        if self.kind == CHECK:
            look = self.rule.model.look(state, self.docs[0], self.rule.model.since(self.second))
            return marshal.dumps((look[:2], (), {}, {}), 2)
        if self.kind == ALL:
            records = {row: tuple(record) for row, record in state.records.items()}
            return marshal.dumps(((records, state.ids, state.texts), (), {}, {}), 2)
        answer, effects = self.rule.model.decide(state, self.kind, self.docs, self.second, self.row)
        rows = {value for what, _, value in effects if what in (ADD_ID, DELETE_ID, ADD_TEXT, DELETE_TEXT)}
        rows |= {key for what, key, _ in effects if what in (SET_RECORD, GONE)}
        rows |= {value[3] for what, _, value in effects if what == ADD_RECORD}
        rows |= {value[0] for what, _, value in effects if what == SET_RECORD}
        tags = {row: self.tags[row] for row in sorted(rows - {None}) if row in self.tags}
        records = {key: tuple(state.records[key]) for what, key, _ in effects if what == SET_RECORD}
        plain = tuple((what, key, tuple(value) if what == ADD_RECORD else value) for what, key, value in effects)
        return marshal.dumps((answer, plain, tags, records), 2)

    def answer(self):
        return self.rule.answer(self.payload, self.row, self.verdict())
