"""Connections: scripts that a server forgot, servers that are away, full, older, or not to be trusted with an index."""

import os
import secrets
import threading
import time

import pytest

from likewise.errors import ForkedError, InvalidParameter, StoreError
from likewise.index.redis.cluster.log import LogServer
from likewise.index.redis.cluster.nodes import Nodes


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


def test_a_full_server_is_an_error_at_once(start, connect):
    server = start("--maxmemory", "100mb")
    log = new_log(connect(server.url))
    server.client.config_set("maxmemory", "1")
    with pytest.raises(StoreError, match="full"):
        log.ask("append", b"", b"", b"a writer", 1, b"00000001", 0, 1, b"x", 9, 99, b"")
    # What changes nothing is replied.
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
    with pytest.raises(StoreError, match="no replica confirmed"):
        new_log(connect(running.url, 0.2, 0.3, 1))


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
