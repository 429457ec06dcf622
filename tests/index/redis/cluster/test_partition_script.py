"""A partition's script on a server replies and stores, call by call, like the model's partition."""

import random
import secrets
import struct

import pytest

from likewise.index.redis.log import Partitions, entries_of
from likewise.index.redis.nodes import Nodes, Script
from tests.index.store import cluster_model as cluster
from tests.index.store.cluster_model import Options, Partition, State

pytestmark = pytest.mark.rounds

SCRIPT = Script.read("partition").source
OPTIONS = Options()
NOTHING = b"0" * 16
FIELDS = ("head", "marks", "journal", "changes")


def packed(strings, size="<H"):
    return b"".join(struct.pack(size, len(one)) + one for one in strings)


def listed(*operations):
    """Return the list of operations, each a position and a nonce."""
    return b"".join(struct.pack("<Q8s", *one) for one in operations)


def entry_of(row, nonce):
    return b"text" + reference(row, nonce)


def reference(row, nonce):
    return struct.pack("<I", row) + nonce[:2]


class Both:
    """A partition on a server and in the model. The model's operations have no effects; `written` has them."""

    def __init__(self, client):
        self.client, self.prefix = client, f"{{{secrets.token_hex(4)}}}:"
        self.script = client.register_script(SCRIPT)
        self.partition = Partition((0,), 0, 0, State(), ())
        self.chain = {0: NOTHING}
        self.base = {}, {}  # entries by key, records by (chunk, row and tag)
        self.written = {}  # (position, nonce) -> added entries, added records, changes
        self.saved = None

    def run(self, *arguments):
        return self.script([self.prefix + name for name in FIELDS], [self.prefix, *arguments])

    def value(self, number):
        return self.chain.get(number, b"another chain...")

    def mark(self, mark):
        return b"%08x%s" % (mark[0], self.value(mark[1]))

    def call(self, script, *arguments, server, statuses):
        before = self.partition
        self.partition, reply = script(before, OPTIONS, 0, *arguments)
        found = self.run(script.__name__, *server)
        assert found[0] == statuses.get(reply[0], reply[0].encode())
        after = self.partition
        # A fold replies with the state before it.
        count, chain, fold, of_log = self.client.hmget(self.prefix + "head", "count", "chain", "fold", "fold_chain")
        assert script is cluster.fold or found[1:4] == [
            b"%08x%s" % (int(count or 0), chain or NOTHING),
            int(fold or 0),
            of_log or NOTHING,
        ]
        assert int(count or 0) == len(after.history) - 1
        assert self.chain.setdefault(after.history[-1], chain or NOTHING) == (chain or NOTHING)
        assert (int(fold or 0), of_log or NOTHING) == (after.fold, self.value(after.chain))
        return found, reply

    def content(self):
        """Return the expected entries and records: the final ones, and those added by operations of the journal."""
        entries = {key: list(found) for key, found in self.base[0].items()}
        records = dict(self.base[1])
        for position, nonce, _ in self.partition.journal:
            added, rows, _ = self.written[position, nonce]
            for key, entry in added:
                entries.setdefault(key, []).append(entry)
            records |= rows
        return {key: sorted(found) for key, found in entries.items() if found}, records

    def settle(self, journal):
        """Make operations final."""
        for position, nonce, _ in sorted(journal):
            added, rows, changes = self.written[position, nonce]
            for key, entry in added:
                self.base[0].setdefault(key, []).append(entry)
            self.base[1].update(rows)
            for kind, name, *what in changes:
                if kind in (b"D", b"A"):
                    others = [entry for entry in self.base[0].get(name, []) if entry != what[0]]
                    self.base[0][name] = others + what * (kind == b"A")
                elif kind == b"S":
                    self.base[1][name, what[0]] = what[1]
                else:
                    self.base[1].pop((name, what[0]), None)

    def compare(self, keys, chunks):
        mark = self.mark(self.partition.here)
        asked = sorted({field for _, rows, _ in self.written.values() for field in rows if field[0] in chunks})
        found = self.run("read", mark, packed(keys), packed(part for field in asked for part in field))
        entries, records = self.content()
        lists = {
            key: sorted(one[at : at + 10] for at in range(0, len(one), 10))
            for key, one in zip(keys, found[7], strict=True)
            if one
        }
        assert lists == entries
        assert all(bool(self.client.exists(self.prefix.encode() + key)) == (key in entries) for key in keys)
        changed = {(at, nonce) for at, nonce, _ in self.partition.journal if self.written[at, nonce][2]}
        assert {*found[5][::2]} - {b""} == {b"%d%s" % (at, self.nonces[at, nonce]) for at, nonce in changed}
        assert {field: record for field, record in zip(asked, found[6], strict=True) if record} == records
        assert sorted(entries_of(found[4])) == sorted(
            (at, self.nonces[at, nonce]) for at, nonce, _ in self.partition.journal
        )

    nonces = None


KEYS = [b"b1", b"b2", b"i7"]
CHUNKS = [b"r0", b"r1"]
NAMES = ["write", "read", "verify", "fold", "purge", "forget", "save", "lose"]
WEIGHTS = [10, 1, 1, 3, 2, 1, 1, 1]


def operation(rng, known, first, nonce):
    """Return added entries, added records, and changes of data that earlier operations added."""
    added = [(rng.choice(KEYS), entry_of(first + i, nonce)) for i in range(2)]
    rows = {(rng.choice(CHUNKS), reference(first + i, nonce)): secrets.token_bytes(5) for i in range(2)}
    changes = []
    for _ in range(rng.randrange(3)):
        old_added, old_rows, _ = known[rng.choice([*known])] if known else (added, rows, ())
        kind = rng.choice([b"D", b"A", b"S", b"X"])
        (chunk, row), (key, entry) = rng.choice([*old_rows]), rng.choice(old_added)
        changes.append(
            {
                **dict.fromkeys([b"D", b"A"], (kind, key, entry)),
                b"S": (kind, chunk, row, secrets.token_bytes(3)),
                b"X": (kind, chunk, row),
            }[kind]
        )
    return added, rows, changes


@pytest.mark.parametrize("seed", range(30))
def test_it_says_and_stores_what_the_model_does(running, seed):
    rng = random.Random(seed)
    both = Both(running.client)
    both.nonces = {}
    marks = [(0, 0)]
    for number, name in enumerate(rng.choices(NAMES, WEIGHTS, k=60), 1):
        partition = both.partition
        position = partition.fold + rng.randrange(-1, 4)
        mark = rng.choice(marks[-4:])
        if name == "write" and position >= 0:
            # Sometimes an earlier operation again, or another operation at the same position.
            nonce = rng.choice([number, *(one for at, one, _ in partition.journal if at == position)])
            raw = both.nonces.setdefault((position, nonce), struct.pack("<Q", nonce * 7919))
            known = both.written.setdefault(
                (position, nonce),
                operation(rng, {at: one for at, one in both.written.items() if at[0] < position}, 2 * position, raw),
            )
            added, rows, changes = known
            server = (
                *(position, raw, 2 * position, 2),
                packed(b"\x0a" + key for key, _ in added),
                b"".join(entry for _, entry in added),
                *(packed(chunk for chunk, _ in rows), packed(row for _, row in rows), packed(rows.values(), "<I")),
                packed((part for kind, what, *rest in changes for part in (kind + what, *rest)), "<I"),
            )
            both.call(cluster.write, position, nonce, (), server=server, statuses={})
            marks.append(both.partition.here)
        elif name == "read":
            both.call(cluster.read, mark, server=(both.mark(mark), b"", b""), statuses={})
        elif name == "verify":
            given = [rng.choice(marks) for _ in range(3)]
            found, reply = both.call(
                cluster.verify, tuple(given), server=[both.mark(one) for one in given], statuses={}
            )
            assert found[4] == [both.mark(one) for one in reply[2]]
        elif name == "fold":
            to = partition.fold + rng.randrange(3)
            chosen = {at: nonce for at, nonce, _ in partition.journal if at < to}
            if rng.random() < 0.2:
                chosen.popitem() if chosen else None
            fields = listed(*((at, both.nonces[at, nonce]) for at, nonce in chosen.items()))
            both.chain.setdefault(-to, b"log's chain %04d" % to)
            below = [entry for entry in partition.journal if entry[0] < to]
            found, reply = both.call(
                *(cluster.fold, mark, to, -to, tuple(chosen.items())),
                server=(both.mark(mark), to, both.value(-to), fields),
                statuses={cluster.BEHIND: b"stale"},
            )
            if reply[0] is cluster.OK:
                purged = dict(zip(found[5][::2], found[5][1::2], strict=True))
                assert all(field.endswith(ids) for field, ids in purged.items())
                assert {*purged.values()} == {raw for (_, one), raw in both.nonces.items() if one in reply[1].lost}
            if both.partition.fold > partition.fold:
                both.settle(below)
                marks.append(both.partition.here)
        elif name == "purge" and partition.journal:
            at, nonce, _ = rng.choice(partition.journal)
            both.call(cluster.purge, at, nonce, server=(at, raw := both.nonces[at, nonce], 1, raw), statuses={})
            marks.append(both.partition.here)
        elif name == "forget":
            some = [(at, nonce) for at, nonce in both.nonces if rng.random() < 0.3]
            fields = [b"%d%s" % (at, both.nonces[at, nonce]) for at, nonce in some]
            both.call(cluster.forget, tuple(nonce for _, nonce in some), server=fields, statuses={})
            marks.append(both.partition.here)
        elif name == "save":
            keys = both.client.keys(both.prefix + "*")
            base = ({key: list(one) for key, one in both.base[0].items()}, dict(both.base[1]))
            both.saved = partition, base, {key: both.client.dump(key) for key in keys}
        elif name == "lose" and both.saved:
            both.partition, base, dumped = both.saved
            both.base = ({key: list(one) for key, one in base[0].items()}, dict(base[1]))
            for key in both.client.keys(both.prefix + "*"):
                both.client.delete(key)
            for key, value in dumped.items():
                both.client.restore(key, 0, value)
        both.compare(KEYS, CHUNKS)


def test_equal_tags_in_one_row_do_not_meet(running):
    both = Both(running.client)
    empty = (b"", b"", b"", b"", b"", b"")
    assert both.run("write", 3, b"ab000001", 5, 2, *empty)[0] == b"ok"
    assert both.run("write", 4, b"ab000002", 7, 2, *empty)[0] == b"ok"
    found = both.run("write", 3, b"ab000003", 6, 1, *empty)
    assert (found[0], found[4]) == (b"clash", b"3ab000001")


def test_changes_become_final_in_order_of_positions(running):
    both = Both(running.client)

    def write(position, nonce, record):
        changes = packed([b"Sr0", b"7", record], "<I")
        return both.run("write", position, nonce, 0, 0, b"", b"", b"", b"", b"", changes)[0]

    assert write(2, b"cd000002", b"second") == b"ok"
    assert write(1, b"ab000001", b"first") == b"ok"
    found = both.run("fold", b"00000000" + NOTHING, 3, NOTHING, listed((1, b"ab000001"), (2, b"cd000002")))
    assert found[0] == b"ok"
    assert running.client.hget(both.prefix + "r0", "7") == b"second"


def test_the_last_change_of_an_entry_decides(running):
    both = Both(running.client)
    running.client.set(both.prefix + "b1", b"entry1entry2entry3")
    parts = [b"Db1", b"entry1", b"Ab1", b"entry4", b"Db1", b"entry3", b"Ab1", b"entry3", b"Ab1", b"entry5"]
    changes = packed([*parts, b"Db1", b"entry5", b"Ab1", b"entry4", b"Ab2", b"entry6", b"Db2", b"entry6"], "<I")
    assert both.run("write", 0, b"ab000001", 0, 0, b"", b"", b"", b"", b"", changes)[0] == b"ok"
    assert both.run("fold", both.run("verify")[1], 1, NOTHING, listed((0, b"ab000001")))[0] == b"ok"
    assert running.client.get(both.prefix + "b1") == b"entry2entry4entry3"
    assert not running.client.exists(both.prefix + "b2")


def test_records_of_an_operation_are_looked_at_before_it_is_purged(running):
    both = Both(running.client)
    fields = [reference(row, b"ab") for row in (4, 5)]
    written = (
        *(packed([b"\x06b1"] * 2), b"".join(fields)),
        *(packed([b"r0", b"s0"]), packed(fields), packed([b"record", b"set"], "<I"), b""),
    )
    assert both.run("write", 3, b"ab000001", 4, 2, *written)[0] == b"ok"
    mark = both.run("verify")[1]
    assert both.run("purge", 3, b"ab000001", 0)[4] == [b"record"]
    assert both.run("verify")[1] == mark
    assert running.client.exists(both.prefix + "b1", both.prefix + "r0", both.prefix + "s0") == 3
    asked = packed([b"r0", fields[0], b"r0", fields[1], b"s0", b"", b"s1", b"", b"s0", fields[1]])
    found = both.run("read", mark, b"", asked)[6]
    assert found == [b"record", b"", packed([fields[1], b"set"], "<I"), b"", b"set"]
    assert both.run("purge", 3, b"ab000001", 1, b"")[0] == b"ok"
    assert running.client.exists(both.prefix + "b1", both.prefix + "r0", both.prefix + "s0") == 0
    assert both.run("purge", 3, b"ab000001", 0)[4] == []


def test_what_was_begun_is_finished_while_memory_is_full(start):
    server = start("--maxmemory", "100mb")
    both = Both(server.client)
    empty = (b"", b"", b"", b"", b"", packed([b"Ab1", b"entry1"], "<I"))
    assert both.run("write", 0, b"ab000001", 0, 0, *empty)[0] == b"ok"
    server.client.config_set("maxmemory", "1")
    with pytest.raises(Exception, match="maxmemory"):
        both.run("write", 1, b"ab000002", 0, 0, *empty)
    assert both.run("verify")[0] == b"ok"
    assert both.run("write", 0, b"ab000001", 0, 0, *empty)[0] == b"ok"
    assert both.run("fold", both.run("verify")[1], 1, NOTHING, listed((0, b"ab000001")))[0] == b"ok"
    assert server.client.get(both.prefix + "b1") == b"entry1"


@pytest.mark.parametrize("is_full", [False, True])
def test_many_strings_are_read_like_few_also_while_memory_is_full(start, is_full):
    server = start("--maxmemory", "100mb")
    both = Both(server.client)
    both.prefix = "{many.0}."
    names, entries = [b"b%d" % i for i in range(200)], [b"%06d" % i for i in range(200)]
    written = packed(b"\x06" + name for name in names), b"".join(entries)
    assert both.run("write", 0, b"ab000001", 0, 200, *written, b"", b"", b"", b"")[0] == b"ok"
    mark = both.run("verify")[1]
    nodes = Nodes(server.url)
    partitions = Partitions(nodes, b"many", 1)
    asked = [*names, b"absent"]
    if is_full:
        server.client.config_set("maxmemory", "1")
    (many,) = partitions.call([partitions.read(0, mark, packed(asked), b"")])
    few = partitions.call([partitions.read(0, mark, packed([name]), b"") for name in asked])
    nodes.close()
    assert (many.status, many.mark) == (b"ok", mark)
    assert many.more[3] == [one.more[3][0] for one in few] == [*entries, None]
    # Redis rejects a transaction of reads while memory is full; Valkey 8 and 9 answer it.
    assert nodes.num_repeated in {0, int(is_full)}


def test_an_operation_with_many_names_is_purged_completely(running):
    """It has more names than 2 bytes can count: 2,000 documents with 35 bands."""
    both = Both(running.client)
    num, field = 70_000, reference(4, b"ab")
    names = packed([b"\x06b1"] * (num - 1) + [b"\x06b2"])
    written = (names, field * num, packed([b"r0"]), packed([field]), packed([b"record"], "<I"), b"")
    assert both.run("write", 3, b"ab000001", 4, 1, *written)[0] == b"ok"
    assert both.run("purge", 3, b"ab000001", 0)[4] == [b"record"]
    assert both.run("purge", 3, b"ab000001", 1, b"")[0] == b"ok"
    assert running.client.exists(both.prefix + "b1", both.prefix + "b2", both.prefix + "r0") == 0


def test_marks_are_kept_for_as_many_writes_as_a_log_can_hold(running):
    both = Both(running.client)
    empty = (b"", b"", b"", b"", b"", b"")
    # A fold is a write that leaves no journal.
    first = both.run("write", 0, b"ab000001", 0, 0, *empty)[1]
    mark = first
    for to in range(1, 4200):
        both.run("fold", mark, to, NOTHING, listed((0, b"ab000001")))
    assert both.run("verify", first)[4] == []


def test_a_fold_returns_the_previous_one_also_when_it_is_repeated(running):
    both = Both(running.client)
    mark = both.run("verify")[1]
    assert both.run("fold", mark, 5, b"a" * 16, b"")[4] == 0
    assert both.run("fold", mark, 9, b"b" * 16, b"")[2:] == [5, b"a" * 16, 5, []]
    for to in (9, 7):
        assert both.run("fold", mark, to, b"b" * 16, b"")[2:] == [9, b"b" * 16, 5, []]


def test_records_that_an_operation_removes_are_returned_before_it_is_purged(running):
    both = Both(running.client)
    field = reference(4, b"ab")
    added = (b"", b"", packed([b"r0"]), packed([field]), packed([b"record"], "<I"), b"")
    changes = packed([b"Ss0", field, b"set", b"Xr0", field, b"Xs0", field, b"Xr0", reference(9, b"ab")], "<I")
    assert both.run("write", 1, b"ab000001", 4, 1, *added)[0] == b"ok"
    assert both.run("write", 2, b"cd000001", 5, 0, b"", b"", b"", b"", b"", changes)[0] == b"ok"
    assert both.run("purge", 2, b"cd000001", 0)[4] == [b"record"]
    assert both.run("purge", 2, b"cd000001", 1, b"")[0] == b"ok"
    assert running.client.hget(both.prefix + "r0", field) == b"record"


def test_an_entry_without_bytes_is_an_error(running):
    both = Both(running.client)
    running.client.set(both.prefix + "b1", b"ten bytes.")
    changes = packed([b"Db1", b""], "<I")
    assert both.run("write", 0, b"ab000001", 0, 0, b"", b"", b"", b"", b"", changes)[0] == b"ok"
    with pytest.raises(Exception, match="too short"):
        both.run("fold", both.run("verify")[1], 1, NOTHING, listed((0, b"ab000001")))


def test_the_journal_keeps_nothing_of_what_is_final_or_purged(running):
    both = Both(running.client)
    empty = (b"", b"", b"", b"", b"", b"")
    # The tag of the second is equal to bytes of the position of the first.
    for at, nonce in enumerate((b"ab000001", bytes(2) + b"000001", b"ef000001")):
        assert both.run("write", at, nonce, 0, 1, *empty)[0] == b"ok"
    assert both.run("fold", both.run("verify")[1], 1, NOTHING, listed((0, b"ab000001")))[0] == b"ok"
    assert both.run("purge", 2, b"ef000001", 1, b"")[0] == b"ok"
    left = [keys for key in running.client.scan_iter(both.prefix + "*journal") for keys in running.client.hkeys(key)]
    assert sorted(left) == [b"", b"1" + bytes(2) + b"000001"]
