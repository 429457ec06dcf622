"""The clients have the interface of an index, and give its answers."""

import asyncio
import gc
import itertools
import weakref

import pytest

import likewise
from likewise.errors import InvalidInput, InvalidParameter, StoreError
from likewise.service.client import base
from tests.index.store.conformance import check_conformance
from tests.recipes import RECIPES

pytest.importorskip("fastapi", reason="needs likewise[server]")
pytest.importorskip("httpx2", reason="needs likewise[client]")

_NUMBER = itertools.count()
SERVED = {
    "served-within": likewise.Recipe.simhash(within=3, shingle=1, short_threshold=0.5),
    "served-bands": likewise.Recipe.minhash(threshold=0.5, shingle=1),
}


@pytest.fixture(params=["directory", "server"])
def opener(request, monkeypatch):
    """Return a backend of the conformance suite, over services of directories and of indexes on a server."""
    for name, recipe in SERVED.items():
        monkeypatch.setitem(RECIPES, name, recipe)
    return request.getfixturevalue(f"opener_of_{request.param}")


@pytest.fixture
def opener_of_server(start, redis_server):
    """Return a backend: the folder names the service, each with an index of its own."""
    services = {}

    def open_index(path, recipe):
        from likewise.redis import RedisIndex

        if path not in services:
            prefix = f"conforming-{next(_NUMBER)}"
            RedisIndex(redis_server.url, recipe, prefix=prefix, expected=2000, partitions=3).close()
            services[path] = prefix, start(url=redis_server.url, prefix=prefix)
        prefix, service = services[path]
        return service.client(prefix)

    return open_index


@pytest.fixture
def opener_of_directory(running):
    """Return a backend: the folder names the collection."""
    names = {}

    def open_index(path, recipe):
        client = running.client("")
        if path not in names:
            names[path] = f"conforming-{next(_NUMBER)}"
            client.create_collection(names[path], recipe)
        client.close()
        return running.client(names[path])

    return open_index


def test_it_conforms(opener):
    check_conformance(opener, "served-within", max_examples=2)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SERVED)
def test_it_conforms_for_long(opener, name):
    check_conformance(opener, name, max_examples=40, steps=60)


def test_a_closed_client_says_so(running):
    client = running.client("pages")
    client.close()
    client.close()
    with pytest.raises(StoreError, match="closed"):
        client.check("one fine day")


def test_a_client_returns_stored_texts(running):
    name = f"texts-{next(_NUMBER)}"
    with running.client(name) as client:
        client.create_collection(name, likewise.Recipe.simhash(within=3), store="text")
        client.add("a", "One fine day")
        assert client.text("a") == "One fine day"
        assert client.text("nobody") is None


@pytest.fixture
def pages(running):
    with running.client(f"pages-{next(_NUMBER)}") as client:
        client.create_collection(client._name, likewise.Recipe.simhash(within=3))
        yield client


def test_errors_are_those_of_an_index(pages):
    pages.add("a", "one fine day")
    with pytest.raises(InvalidInput, match='"a" already exists with a different text') as caught:
        pages.add_batch(["b", "a"], ["x", "another fine day"])
    assert caught.value.row == 1
    assert pages.get("b") is None
    with pytest.raises(InvalidInput, match="nobody"):
        pages.group("nobody")
    with pytest.raises(InvalidInput, match="nobody"):
        pages.remove("nobody")
    with pytest.raises(InvalidInput, match="2 ids for 3 documents"):
        pages.add_batch(["c", "d"], ["x", "y", "z"])
    with pytest.raises(InvalidInput, match="2 ids for 1 document"):
        pages.add_batch(["c", "d"], ["x"])
    with pytest.raises(InvalidInput, match="bytes given"):
        pages.check(b"bytes")
    with pytest.raises(InvalidParameter, match=r"^k: "):
        pages.neighbors("x", k=0)


def test_errors_name_the_row_of_the_batch_and_lists_are_counted_first(pages):
    many = [str(i) for i in range(1500)]
    pages.add("1200", "one fine day")
    with pytest.raises(InvalidInput, match="1,500 ids for 1,499 documents"):
        pages.add_batch(many, many[1:])
    assert len(pages) == 1
    with pytest.raises(InvalidInput, match='"1200" already exists') as caught:
        pages.add_batch(many, many)
    assert caught.value.row == 1200

    async def asked():
        async with likewise.AsyncClient(pages._url, collection=pages._name) as client:
            await client.check_and_add_batch(many, many)

    with pytest.raises(InvalidInput) as caught:
        asyncio.run(asked())
    assert caught.value.row == 1200


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_one_asynchronous_client_serves_one_loop_after_the_other(pages):
    pages.add("a", "one fine day")
    client = likewise.AsyncClient(pages._url, collection=pages._name)
    for _ in range(3):
        assert asyncio.run(client.check("one fine day")).kept_id == "a"
    asyncio.run(client.close())
    with pytest.raises(StoreError, match="closed"):
        asyncio.run(client.check("one fine day"))
    # Warnings about connections that an ended loop left open are raised on collection: here, not in a later test.
    del client
    gc.collect()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_loops_that_take_turns_keep_their_connections_until_they_end(pages, monkeypatch):
    pages.add("a", "one fine day")
    begun = []
    begin = base.begin
    monkeypatch.setattr(base, "begin", lambda *address: begun.append(address) or begin(*address))
    client = likewise.AsyncClient(pages._url, collection=pages._name)
    loops = [asyncio.new_event_loop() for _ in range(2)]
    for loop in loops * 3:
        assert loop.run_until_complete(client.check("one fine day")).kept_id == "a"
    assert len(begun) == 2
    # The TLS context, which takes longest.
    assert begun[0][-1] is begun[1][-1]
    ended = weakref.ref(loops[0])
    loops.pop(0).close()
    del loop
    asyncio.run(client.check("one fine day"))
    gc.collect()
    assert ended() is None
    loops[0].run_until_complete(client.close())
    loops[0].close()
    del client
    gc.collect()


@pytest.mark.parametrize("kind", [likewise.Client, likewise.AsyncClient])
def test_what_no_request_can_say_is_refused_at_once(kind):
    # A key read from a file ends with a line end; the error does not show the key.
    for key in ("lw_secret\n", "lw_secret\r\nx: y", "lw_sécret", "lw secret", ""):
        with pytest.raises(InvalidParameter, match="visible ASCII") as caught:
            kind("http://127.0.0.1:8765", key)
        assert "secret" not in str(caught.value)
    for timeout_s in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InvalidParameter, match="timeout_s"):
            kind("http://127.0.0.1:8765", timeout_s=timeout_s)


def test_large_batches_are_cut_into_requests(pages):
    texts = [f"text number {i} of its own kind {i * i}" for i in range(2500)]
    verdicts = pages.check_and_add_batch((f"id-{i}" for i in range(2500)), iter(texts))
    assert len(verdicts) == 2500
    assert verdicts.seq.tolist() == list(range(1, 2501))
    again = pages.check_and_add_batch([f"id-{i}" for i in range(2500)], texts)
    assert not again.added.any()
    assert again.kept_ids == verdicts.kept_ids
    assert len(pages) == 2500
    assert len(pages.check_batch([])) == 0
    assert len(pages.add_batch([], [])) == 0


def test_arrow_data_is_taken(pages):
    import polars
    import pyarrow

    texts = ["one fine day", "One fine day!", "another"]
    found = pages.check_and_add_batch(pyarrow.array([7, 8, 9]), pyarrow.array(texts))
    assert found.kept_ids == [None, "7", None]
    assert pages.check_batch(polars.Series(texts)).kept_ids == ["7", "7", "9"]
    assert pages.check_batch(pyarrow.chunked_array([texts])).kept_ids == ["7", "7", "9"]
    with pytest.raises(InvalidInput, match="expected a list of documents or ids, got str"):
        pages.check_batch("one fine day")
    with pytest.raises(InvalidInput, match="row 1: NoneType given; a service accepts texts and lists of tokens"):
        pages.check_batch(["x", None])


def test_a_large_group_comes_in_pages(pages):
    pages.add_batch([f"id-{i}" for i in range(1500)], ["one and the same text"] * 1500)
    group = pages.group("id-77")
    assert group.leader_id == "id-0"
    assert group.member_ids == tuple(f"id-{i}" for i in range(1, 1500))


def test_the_asynchronous_client_answers_alike(running):
    name = f"pages-{next(_NUMBER)}"

    async def converse():
        async with likewise.AsyncClient(running.url, collection=name) as client:
            await client.create_collection(name, likewise.Recipe.minhash(threshold=0.5))
            found = await asyncio.gather(*(client.check_and_add(f"id-{i}", "one and the same text") for i in range(30)))
            assert sum(verdict.is_new for verdict in found) == 1
            assert sorted(verdict.seq for verdict in found) == list(range(1, 31))
            batch = await client.check_batch(["one and the same text", "another"])
            assert batch.is_new.tolist() == [False, True]
            with pytest.raises(InvalidInput):
                await client.check_and_add("id-1", "another text")
            assert await client.count() == 30
            assert (await client.recipe()).threshold == 0.5
            group = await client.group("id-3")
            assert len(group.member_ids) == 29
            removal = await client.remove(group.leader_id)
            assert len(removal.promoted) == 1
            assert (await client.get("id-3")).doc_id == "id-3"
            assert [one.similarity for one in await client.neighbors("one and the same text", among="kept")] == [1.0]
            assert await client.verify() == []
            assert name in await client.collections()
            await client.delete_collection(name)

    asyncio.run(converse())


def test_clients_name_the_collection_or_take_the_only_one(start):
    service = start()
    with service.client() as client:
        with pytest.raises(InvalidParameter, match="choose a collection"):
            client.check("x")
        client.create_collection("only")
        assert client.check("x").is_new
        assert client.recipe == likewise.Recipe.preset("online", overflow="levels").resolve()
    with pytest.raises(InvalidParameter, match="url"):
        likewise.Client("ftp://somewhere")


def test_clients_try_again(monkeypatch):
    """429, 503 and broken connections are retried, unless the call cannot be repeated."""
    import httpx2

    from likewise.service.client import ServiceError
    from likewise.service.client import base as module

    seen = []

    def answer(request):
        seen.append(request.url.path)
        if len(seen) < 3:
            return httpx2.Response(503, headers={"retry-after": "0"}, json={"type": "overloaded", "detail": "later"})
        if request.url.path.endswith("compact"):
            raise httpx2.ReadError("gone")
        return httpx2.Response(200, json={"documents": [None]})

    transport = httpx2.MockTransport(answer)
    real = httpx2.Client
    monkeypatch.setattr(httpx2, "Client", lambda **options: real(**options, transport=transport))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    assert module.is_transport_error(httpx2.ReadTimeout("x"))
    with likewise.Client("http://nowhere", collection="c") as client:
        assert client.get("x") is None
        assert len(seen) == 3
        with pytest.raises(ServiceError, match="unreachable"):
            client.compact()
        assert len(seen) == 4
    with likewise.Client("http://nowhere", collection="c", retries=1) as client:
        seen.clear()
        with pytest.raises(ServiceError, match="overloaded"):
            client.get("x")
        assert len(seen) == 2
