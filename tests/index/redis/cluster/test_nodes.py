"""Connections: scripts that a server forgot, and servers that are unreachable, full, old, or unsafe for an index."""

import os
import secrets
import threading
import time

import pytest
from redis import exceptions

from likewise.errors import ForkedError, InvalidParameter, StoreError
from likewise.index.redis.log import LogServer
from likewise.index.redis.nodes import Nodes, Request, Script, _passes
from tests.index.redis.cluster.servers import Cluster

pytestmark = pytest.mark.rounds

PLAIN = Request(Script.read("log"), (), ())


@pytest.fixture
def connect():
    """Connect, and close the connections after the test."""
    opened = []

    def begin(*arguments, **options):
        opened.append(Nodes(*arguments, **options))
        return opened[-1]

    yield begin
    for nodes in opened:
        nodes.close()


def new_log(nodes):
    log = LogServer(nodes, secrets.token_hex(4).encode())
    assert log.create(2, {"a": "field"})
    return log


def test_a_server_that_forgot_the_scripts_gets_them_again(running, connect):
    log = new_log(connect(running.url))
    running.client.script_flush()
    assert log.ask("begin", b"", b"").log.end == 0


def test_closed_connections_are_opened_again(running, connect):
    nodes = connect(running.url)
    log = new_log(nodes)
    running.client.client_kill_filter(_type="normal", skipme=True)
    assert log.ask("begin", b"", b"").log.end == 0
    assert nodes.num_repeated == 1


def test_a_server_that_is_away_is_waited_for(start, connect):
    server = start("--save", "", "--appendonly", "yes")
    log = new_log(connect(server.url, 1.0, 30.0))
    server.stop()
    back = threading.Timer(0.5, server.start)
    back.start()
    assert log.ask("begin", b"", b"").log.end == 0
    back.join()


def test_a_server_that_stays_away_is_an_error(connect, tmp_path):
    nodes = connect(f"unix://{tmp_path}/nothing", 0.2, 0.3)
    begin = time.monotonic()
    with pytest.raises(StoreError, match="cannot be reached"):
        new_log(nodes)
    assert time.monotonic() - begin >= 0.3
    with pytest.raises(StoreError, match="cannot be reached"):
        nodes.check()


def test_an_index_can_be_opened_during_a_failover(program, connect, tmp_path):
    cluster = Cluster(program, tmp_path / "servers")
    try:
        first, killed = cluster.nodes[0], cluster.nodes[1]
        killed.kill()
        nodes = connect(f"redis://127.0.0.1:{first.port}", 0.5, 30.0)
        nodes.check()
        assert killed.port not in {port for _, port in nodes.addresses}
        assert len(nodes.addresses) == 3
        killed.start()
    finally:
        cluster.close()


@pytest.mark.parametrize("scheme", ["REDIS", "Valkey"])
def test_the_scheme_of_a_url_is_case_insensitive(connect, scheme):
    assert connect(f"{scheme}://localhost:7000/2").name == "localhost:7000 database 2"


def test_a_full_server_is_an_error_at_once(start, connect):
    server = start("--maxmemory", "100mb")
    log = new_log(connect(server.url))
    server.client.config_set("maxmemory", "1")
    with pytest.raises(StoreError, match="full"):
        log.ask("append", b"", b"", b"a writer", 1, b"00000001", 0, 1, b"x", 9, 99, 0, 0, b"0" * 16)
    # Calls that change nothing still work.
    assert log.ask("begin", b"", b"").log.end == 0


def test_a_wrong_password_is_an_error_at_once(start, connect):
    server = start()
    server.client.config_set("requirepass", "secret")
    begin = time.monotonic()
    with pytest.raises(StoreError, match=r"denies access|cannot be reached") as caught:
        new_log(connect(server.url.replace("unix://", "unix://:other@"), 5.0, 60.0))
    assert time.monotonic() - begin < 30
    assert "other" not in str(caught.value)
    new_log(connect(server.url.replace("unix://", "unix://:secret@")))


def test_a_server_without_a_replica_confirms_nothing(running, connect):
    with pytest.raises(StoreError, match=r"no replica of the server at .* confirmed"):
        new_log(connect(running.url, 1.0, 0.3, 1))


def test_a_server_that_drops_keys_is_rejected(start, connect):
    server = start("--maxmemory-policy", "allkeys-lru")
    nodes = connect(server.url)
    with pytest.raises(StoreError, match="allkeys-lru"):
        nodes.check()
    server.client.config_set("maxmemory-policy", "volatile-lru")
    nodes.check()


@pytest.mark.parametrize("url", ["localhost:6379", "http://localhost", "redis://localhost/first", 7])
def test_what_is_no_address_is_rejected(url):
    with pytest.raises(InvalidParameter, match="url"):
        Nodes(url)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_does_not_share_connections(running, connect):
    nodes = connect(running.url)
    log = new_log(nodes)
    child = os.fork()
    if not child:
        try:
            log.ask("begin", b"", b"")
        except ForkedError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("url", ["redis://user:pa/ss@host/0", "redis://:123/secret@host/0", "redis://:123/ss@host"])
def test_an_invalid_url_is_not_shown(url):
    with pytest.raises(InvalidParameter, match="url") as caught:
        Nodes(url)
    assert not any(part in str(caught.value) for part in ("pa", "ss", "secret", "123"))


@pytest.mark.parametrize(
    "text",
    [
        "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
        "Error running script (call to f_1): @user_script:5: -READONLY You can't write against a read only replica.",
        "Error running script (call to f_1): @user_script:5: -NOREPLICAS Not enough good replicas to write.",
        "CLUSTERDOWN The cluster is down",
    ],
)
def test_errors_of_a_failover_pass(text):
    assert _passes(exceptions.ResponseError(text))


@pytest.mark.parametrize("text", ["WRONGTYPE Operation against a key", "BUSYKEY Target key name already exists."])
def test_other_errors_do_not_pass(text):
    assert not _passes(exceptions.ResponseError(text))


def test_a_write_on_a_master_that_is_demoted_is_repeated(start, connect):
    server = start()
    nodes = connect(server.url, 20.0, 1.0, 1)
    demote = threading.Timer(0.3, server.client.replicaof, ("127.0.0.1", "1"))
    demote.start()
    with pytest.raises(StoreError, match="replica"):
        new_log(nodes)
    demote.join()
    assert nodes.num_repeated > 0


class Fails:
    """A connection whose reads raise an error."""

    def __init__(self, error):
        self.error = error

    def read_response(self):
        raise self.error

    def disconnect(self):
        pass


OLD, NEW, OTHER = ("old", 1), ("new", 2), ("other", 3)


@pytest.fixture
def two_maps():
    """A node with an old map, and one with a new map that names another master."""
    nodes = Nodes("redis://old:1")
    nodes._known = [OLD, NEW]
    maps = {OLD: [[0, 16383, [b"old", 1]], []], NEW: [[0, 16383, [b"new", 2], [b"other", 3]]]}
    nodes.command = lambda address, *arguments: [one for one in maps[address] if one]
    nodes._find_slots()
    assert nodes.addresses == [OLD]
    nodes._known = [OLD, NEW]
    return nodes


@pytest.mark.parametrize("error", [exceptions.ResponseError("CLUSTERDOWN"), exceptions.ConnectionError("closed")])
def test_a_node_that_fails_is_not_asked_for_the_slots_again(two_maps, error):
    two_maps._hear([PLAIN], [None], (OLD, Fails(error), [0], False))
    two_maps._find_slots()
    assert two_maps.addresses == [NEW]


def test_a_moved_slot_is_asked_for_where_the_error_says(two_maps):
    two_maps._hear([PLAIN], [None], (OLD, Fails(exceptions.MovedError("7 other:3")), [0], False))
    assert two_maps._slots[6:9] == [OLD, OTHER, OLD]


def test_requests_to_a_server_that_keeps_no_scripts_end():
    nodes = Nodes("redis://old:1", patience_s=0.1)
    nodes._find_slots = lambda: None
    nodes._round = lambda *_: exceptions.NoScriptError("NOSCRIPT")
    with pytest.raises(StoreError, match="NOSCRIPT"):
        nodes.call([PLAIN])
