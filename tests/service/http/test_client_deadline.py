"""A call returns within its timeout, whatever the service does."""

import asyncio
import contextlib
import socket

import pytest

import likewise
from likewise.errors import InvalidParameter

pytest.importorskip("httpx2", reason="needs likewise[client]")

import httpx2

from likewise.service.client import ServiceError
from likewise.service.client.base import ClientBase
from likewise.service.client.calls import LIST, Attempts, Call


class Clock:
    """A clock that advances only when set."""

    now = 100.0

    def __call__(self):
        return self.now


def call_of(operation, *args, **options):
    """Return the call that an operation of a client makes."""
    client = likewise.Client("http://nowhere", collection="c")
    return next(vars(ClientBase)[operation].steps(client, *args, **options))


def attempts(call, clock, **options):
    return Attempts(call, "http://nowhere", options.pop("retries", 5), options.pop("timeout_s", 30.0), clock)


def test_a_hung_service_holds_a_call_for_its_time_and_no_longer():
    for call in (LIST, call_of("remove", "a")):
        clock = Clock()
        tried = attempts(call, clock)
        connect_s, read_s, write_s, pool_s = tried.request()["timeout"]
        assert connect_s == 5.0
        assert read_s == write_s == pool_s
        # Nothing arrives until the read timeout.
        clock.now += read_s
        with pytest.raises(ServiceError, match="did not respond within 30 s"):
            tried.after_failure(httpx2.ReadTimeout("x"), is_sent=True)
        assert clock.now == 130.0


def test_connections_that_do_not_come_about_are_tried_again_within_the_time():
    clock = Clock()
    tried = attempts(LIST, clock, retries=100, timeout_s=20.0)
    num = 0

    def attempt():
        clock.now += tried.request()["timeout"][0]
        clock.now += tried.after_failure(httpx2.ConnectTimeout("x"), is_sent=False)

    with contextlib.suppress(ServiceError):
        while num < 100:
            num += 1
            attempt()
    assert clock.now <= 120.0
    assert 3 <= num <= 5


def test_a_service_at_its_limit_is_asked_again_within_the_time():
    clock = Clock()
    tried = attempts(LIST, clock, retries=100, timeout_s=20.0)
    body = b'{"type": "overloaded"}'
    num = 0
    while (wait_s := tried.after_answer(503, body, {"retry-after": "4"})) is not None:
        assert wait_s >= 4.0
        clock.now += wait_s
        num += 1
    assert clock.now < 120.0
    assert num in (3, 4)
    assert attempts(LIST, clock, retries=0).after_answer(503, body, {}) is None
    assert attempts(LIST, clock).after_answer(503, b'{"type": "store"}', {}) is None
    # A call that exceeded its deadline may have been completed; repeating a check would only cost the same again.
    late = b'{"type": "deadline"}'
    assert attempts(call_of("remove", "a"), clock).after_answer(504, late, {}) is not None
    assert attempts(LIST, clock).after_answer(504, late, {}) is None


def test_what_cannot_be_repeated_is_sent_again_only_if_it_never_left():
    call = call_of("create_collection", "c")
    with pytest.raises(ServiceError, match="unreachable"):
        attempts(call, Clock()).after_failure(httpx2.ReadError("cut"), is_sent=True)
    assert attempts(call, Clock()).after_failure(httpx2.ConnectError("refused"), is_sent=False) > 0


def test_long_calls_have_a_limit_only_to_connect():
    clock = Clock()
    tried = attempts(call_of("verify", full=True), clock)
    assert tried.request()["timeout"] == (5.0, None, None, None)
    clock.now += 1e6
    tried.check_time()


def test_an_answer_that_drips_ends_too():
    clock = Clock()
    tried = attempts(Call("GET", "/", None, lambda answer: answer), clock)

    clock.now += 30.0
    tried.check_time()
    clock.now += 1.0
    with pytest.raises(TimeoutError):
        tried.check_time()


@pytest.fixture
def hung():
    """Yield the address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_clients_of_a_hung_service(hung, monkeypatch):
    request = Attempts.request

    def patient(self):
        """Wait without limit for the connection: asyncio leaves an abandoned attempt to the garbage collector."""
        asked = request(self)
        return asked | {"timeout": (None, *asked["timeout"][1:])}

    monkeypatch.setattr(Attempts, "request", patient)
    with (
        likewise.Client(hung, collection="c", timeout_s=0.2) as client,
        pytest.raises(ServiceError, match=r"did not respond within 0\.2 s"),
    ):
        client.check("x")

    async def converse():
        async with likewise.AsyncClient(hung, collection="c", timeout_s=0.2) as client:
            with pytest.raises(ServiceError, match=r"did not respond within 0\.2 s"):
                await client.check("x")

    asyncio.run(converse())


@pytest.mark.parametrize("kind", [likewise.Client, likewise.AsyncClient])
def test_retries_are_checked(kind):
    with pytest.raises(InvalidParameter, match="retries"):
        kind("http://nowhere", retries=-1)
