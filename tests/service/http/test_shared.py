"""Services in front of an index on a server: one sequence for all, and what its failures mean for requests."""

import itertools
import threading
import time

import pytest

import likewise
from likewise.errors import LostWrites, StoreError
from tests.command import likewise_command
from tests.service.http.answers import problem

pytestmark = pytest.mark.rounds

pytest.importorskip("fastapi", reason="needs likewise[server]")
pytest.importorskip("httpx2", reason="needs likewise[client]")

RECIPE = likewise.Recipe.simhash(within=3)
PAGES = "/v1/collections/pages"


def text_of(number):
    return " ".join(f"w{number * 31 + k}" for k in range(60))


@pytest.fixture
def url(redis_server):
    """Return the URL of a server with an index."""
    from likewise.redis import RedisIndex

    RedisIndex(redis_server.url, RECIPE, prefix="pages", expected=1000, partitions=2).close()
    return redis_server.url


@pytest.fixture
def app(url):
    """Return a client of a service in this process, in front of the index."""
    from starlette.testclient import TestClient

    from likewise.service import Settings, create_app

    settings = Settings(allowed_hosts=("testserver",), deadline_s=3.0)
    with TestClient(create_app(None, settings, url=url, prefix="pages")) as client:
        yield client


def add(app, doc_id, text, **headers):
    return app.post(f"{PAGES}/add", json={"doc_id": doc_id, "text": text}, headers=headers)


def lose(server):
    """Return a function that returns the server to its present state."""
    saved = {key: server.client.dump(key) for key in server.client.scan_iter()}

    def go_back():
        server.client.flushall()
        for key, value in saved.items():
            server.client.restore(key, 0, value)

    return go_back


def test_services_in_front_of_one_server_give_the_verdicts_of_one_sequence(start, url, tmp_path):
    services = [start(url=url, prefix="pages") for _ in range(3)]
    documents = {f"doc-{i}": text_of(i % 40) for i in range(240)}
    names, verdicts, faults = iter([*documents]), [], []
    lock = threading.Lock()

    def crawl(service):
        try:
            with service.client("pages") as client:
                while True:
                    with lock:
                        some = [*itertools.islice(names, 5)]
                    if not some:
                        return
                    found = [*client.add_batch(some, [documents[name] for name in some])]
                    with lock:
                        verdicts.extend(found)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=crawl, args=(services[i % 3],)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults
    verdicts.sort(key=lambda one: one.seq)
    assert [one.seq for one in verdicts] == [*range(1, 241)]
    with likewise.Index(tmp_path / "alone", RECIPE) as alone:
        expected = alone.add_batch([one.doc_id for one in verdicts], [documents[one.doc_id] for one in verdicts])
        assert [(one.is_new, one.kept_id, one.distance) for one in verdicts] == [
            (one.is_new, one.kept_id, one.distance) for one in expected
        ]
    # Each service has all documents.
    for service in services:
        with service.client("pages") as client:
            assert len(client) == 240
        assert service.stop() == (0, "")


def test_what_needs_a_directory_is_refused_with_a_sentence(app):
    assert add(app, "a", "one fine day").json()["is_new"]
    for method, path in (("PUT", "/v1/collections/other"), ("DELETE", PAGES), ("POST", f"{PAGES}/snapshots")):
        answer = app.request(method, path, json={} if method == "PUT" else None)
        assert "the index is on a server" in problem(answer, "read-only")["detail"]
    assert app.get(f"{PAGES}/snapshots").json() == {"snapshots": []}
    page = app.get("/look/pages/")
    assert page.status_code == 422
    assert "this index is on a server" in page.text
    assert app.post(f"{PAGES}/compact").json() == {"status": "ok"}
    assert app.post(f"{PAGES}/verify", json={"full": True}).json() == {"problems": []}
    shown = app.get(PAGES).json()
    assert (shown["name"], shown["num_documents"], shown["store"]) == ("pages", 1, "sketch")
    # Clients of the service learn no addresses.
    assert "servers" not in shown["stats"]
    assert app.get("/readyz").status_code == 200


def test_a_conflict_is_the_error_of_its_request(app):
    add(app, "a", "one fine day")
    problem(add(app, "a", "another fine day"), "conflicting-document", "doc_id")
    batch = {"documents": [{"doc_id": "b", "text": "x"}, {"doc_id": "a", "text": "y"}]}
    problem(app.post(f"{PAGES}/add/batch", json=batch), "conflicting-document", "documents.1.doc_id")
    problem(app.post(f"{PAGES}/get", json={"doc_id": "b"}), "unknown-document", "doc_id")


def test_metrics_of_an_index_on_a_server(app):
    from likewise.service.metrics import SHARED_GAUGES

    # Until the log moves on, later documents are compared with its operations, not with tables.
    for name in "abcdefghijkl":
        add(app, name, text_of(1))
    found = dict(line.rsplit(" ", 1) for line in app.get("/metrics").text.splitlines() if line[0] != "#")
    of_pages = {name.removesuffix('{collection="pages"}'): value for name, value in found.items() if "pages" in name}
    assert set(of_pages) == {f"likewise_{name}" for name in (*SHARED_GAUGES, "unreachable")}
    assert float(of_pages["likewise_documents"]) == 12
    assert float(of_pages["likewise_log_operations"]) == 12
    assert float(of_pages["likewise_candidates_per_document"]) > 0
    assert float(of_pages["likewise_unreachable"]) == 0


def test_a_server_that_is_down_is_an_error_of_the_collection_until_it_is_back(app, redis_server, capfd):
    add(app, "a", "one fine day")
    redis_server.stop(kill=True)
    for path, body in (("add", {"doc_id": "b", "text": "x"}), ("check", {"text": "x"}), ("get", {"doc_id": "a"})):
        answer = app.post(f"{PAGES}/{path}", json=body)
        assert problem(answer, "store")["detail"] == "the server cannot be reached"
    assert 'likewise_unreachable{collection="pages"} 1.0' in app.get("/metrics").text
    assert "pages cannot be used: the server cannot be reached" in app.get("/v1/collections").json()["broken"]["pages"]
    redis_server.start()
    # It has no file, so the index is gone.
    answer = add(app, "b", "x")
    assert "deleted or replaced" in problem(answer, "store")["detail"]
    events = capfd.readouterr().err
    assert events.count('"event": "unavailable"') == 1
    assert str(redis_server.socket) in events


def test_lost_writes_are_told_to_a_request_that_writes(app, redis_server):
    add(app, "a", "one fine day")
    go_back = lose(redis_server)
    add(app, "b", "another day entirely", **{"idempotency-key": "second"})
    app.post(f"{PAGES}/remove", json={"doc_id": "a"})
    go_back()
    # Reads and metrics find the loss, and leave it for a request that writes.
    assert app.post(f"{PAGES}/check", json={"text": "another day entirely"}).json()["is_new"]
    app.get("/metrics")
    shape = app.post(f"{PAGES}/add", json={"doc_id": "c", "text": "x"})
    assert shape.status_code == 409
    shape = shape.json()
    assert shape["type"] == "lost-writes"
    assert shape["lost"].pop("since_s") > 0
    assert shape["lost"] == {"doc_ids": ["b"], "removed_ids": ["a"], "is_complete": True}
    problem(app.post(f"{PAGES}/get", json={"doc_id": "c"}), "unknown-document")
    # It is told once, and answers to lost requests are forgotten.
    again = add(app, "b", "another day entirely", **{"idempotency-key": "second"})
    assert again.json()["added"]
    assert app.post(f"{PAGES}/get", json={"doc_id": "b"}).status_code == 200


@pytest.mark.parametrize("first", ["add", "remove"])
def test_a_stored_answer_to_a_lost_write_is_not_given_again(app, redis_server, first):
    add(app, "a", "one fine day")
    go_back = lose(redis_server)
    requests = {
        "add": lambda: add(app, "b", "another day entirely", **{"idempotency-key": "second"}),
        "remove": lambda: app.post(f"{PAGES}/remove", json={"doc_id": "a"}, headers={"idempotency-key": "third"}),
    }
    answers = {name: request().json() for name, request in requests.items()}
    # While nothing is lost, it is.
    assert {name: request().json() for name, request in requests.items()} == answers
    go_back()
    shape = requests[first]()
    assert shape.status_code == 409
    assert shape.json()["lost"]["doc_ids"] == ["b"]
    assert shape.json()["lost"]["removed_ids"] == ["a"]
    # Executed again.
    assert requests["add"]().json()["added"]
    assert requests["remove"]().json() == answers["remove"]
    assert app.post(f"{PAGES}/get", json={"doc_id": "b"}).status_code == 200
    problem(app.post(f"{PAGES}/get", json={"doc_id": "a"}), "unknown-document")


def test_a_stored_answer_is_not_given_again_while_no_server_replies(app, redis_server):
    add(app, "a", "one fine day", **{"idempotency-key": "first"})
    redis_server.stop(kill=True)
    problem(add(app, "a", "one fine day", **{"idempotency-key": "first"}), "store")


def test_a_loss_is_shown_while_no_request_writes(app, redis_server):
    go_back = lose(redis_server)
    add(app, "b", "another day entirely")
    assert app.get(PAGES).json()["stats"]["num_untold_losses"] == 0
    go_back()
    assert app.post(f"{PAGES}/check", json={"text": "another day entirely"}).json()["is_new"]
    assert app.get(PAGES).json()["stats"]["num_untold_losses"] == 1
    assert 'likewise_untold_losses{collection="pages"} 1.0' in app.get("/metrics").text
    assert add(app, "b", "another day entirely").status_code == 409
    assert app.get(PAGES).json()["stats"]["num_untold_losses"] == 0


def test_a_client_raises_lost_writes(start, redis_server, url):
    service = start(url=url, prefix="pages")
    with service.client("pages") as client:
        client.add("a", "one fine day")
        go_back = lose(redis_server)
        client.add("b", "another day entirely")
        go_back()
        with pytest.raises(LostWrites, match=r"the server restarted .*\(add again\): 'b'") as caught:
            client.add("c", "x")
        assert (caught.value.doc_ids, caught.value.is_complete) == (["b"], True)
        assert client.add("b", "another day entirely").added
    service.stop()


def test_a_loss_stays_until_a_request_was_told_in_time(app):
    """A request whose deadline passed was not told."""
    from likewise.service.collections.shared import SharedIndex

    collection = app.app.state.service.collections["pages"]
    shared = collection.index
    assert isinstance(shared, SharedIndex)
    add, lost = shared.index.check_and_add_batch, [LostWrites("x", ["lost"], [], 5, True)]

    def slow(ids, texts):
        if lost:
            time.sleep(4)
            raise lost.pop()
        return add(ids, texts)

    shared.index.check_and_add_batch = slow
    problem(app.post(f"{PAGES}/add", json={"doc_id": "a", "text": "x"}), "deadline")
    time.sleep(2)
    answer = app.post(f"{PAGES}/add", json={"doc_id": "a", "text": "x"})
    assert answer.json()["lost"]["doc_ids"] == ["lost"]
    assert app.post(f"{PAGES}/add", json={"doc_id": "a", "text": "x"}).json()["added"]


def test_a_request_was_told_only_what_its_answer_said():
    from likewise.service.collections.shared import SharedIndex

    losses = [LostWrites("x", [name], [name], second, name == "c") for second, name in ((9, "a"), (5, "b"), (7, "c"))]

    class Losing:
        """An index of which each call loses a document."""

        def get(self, doc_id):
            if losses:
                raise losses.pop(0)

    shared = SharedIndex(Losing(), "pages")
    with pytest.raises(LostWrites) as first:
        shared._write(shared.index.get, "x")
    # In between, a read finds more.
    assert shared.get("x") is None
    assert (first.value.doc_ids, first.value.since_s) == (["a"], 9)
    shared.told(first.value)
    with pytest.raises(LostWrites) as second:
        shared._write(shared.index.get, "x")
    assert (second.value.doc_ids, second.value.since_s, second.value.is_complete) == (["a", "b", "c"], 5, False)
    assert second.value.removed_ids == ["a", "b", "c"]
    shared.told(second.value)
    assert shared._write(shared.index.get, "x") is None


def test_a_service_in_front_of_a_cluster_goes_on_when_a_master_dies(start, tmp_path):
    from tests.index.redis.conftest import SERVERS

    if not SERVERS:
        pytest.skip("no redis-server or valkey-server is installed")
    pytest.importorskip("redis", reason="needs likewise[redis]")
    from likewise.redis import RedisIndex
    from tests.index.redis.cluster.servers import Cluster

    cluster = Cluster(SERVERS[0], tmp_path / "servers")

    def replace(node):
        node.kill()
        cluster.fail_over(node)
        # Writes wait until its successor has a replica.
        node.start()

    try:
        options = {"expected": 1000, "partitions": 3, "durability": "replicated"}
        RedisIndex(cluster.url, RECIPE, prefix="pages", **options).close()
        service = start(url=cluster.url, prefix="pages", deadline_s=100.0)
        with service.client("pages") as client, likewise.Index(tmp_path / "alone", RECIPE) as alone:
            for number in range(20):
                if number == 10:
                    replaced = threading.Thread(target=replace, args=(cluster.owner(b"pages"),))
                    replaced.start()
                names = [f"doc-{number}-{i}" for i in range(5)]
                texts = [text_of((7 * number + i) % 40) for i in range(5)]
                assert client.add_batch(names, texts).kept_ids == alone.add_batch(names, texts).kept_ids
        replaced.join()
        assert service.stop() == (0, "")
    finally:
        cluster.close()


def test_options_that_do_not_apply_are_refused(url, tmp_path):
    for options, said in (
        (("--url", url, "--create"), "error: --create: does not apply to --url"),
        (("--prefix", "pages", tmp_path), "error: --prefix: requires --url"),
        (("--url", url, tmp_path), "Got both --url and PATH"),
        (("--url", url, "--prefix", "pages", "--durability", "interval:1s"), "error: --durability: an index on a"),
        (("--url", url, "--prefix", "pages", "--max-batch", "2001"), "error: --max-batch: an index on a server adds"),
        (("--url", url, "--prefix", "nothing"), "no index with this prefix"),
        (("--url", "redis://127.0.0.1:1"), "cannot be reached"),
    ):
        ran = likewise_command("serve", *options, "--port", "0")
        assert (ran.status in (1, 2), ran.out) == (True, b""), ran.err
        assert said in ran.err
        assert "Traceback" not in ran.err


def test_a_read_only_service_reads(start, url):
    from likewise.redis import RedisIndex

    with RedisIndex(url, prefix="pages") as index:
        index.add("a", "one fine day")
    service = start(url=url, prefix="pages", is_read_only=True)
    with service.client("pages") as client:
        assert client.check("one fine day").kept_id == "a"
        with pytest.raises(Exception, match="read-only"):
            client.add("b", "x")
    assert service.stop() == (0, "")


def test_messages_without_addresses():
    from likewise.service.problems import without_address

    for text in (
        "the server at 10.0.0.1:6379 database 0 cannot be reached: Error 111 connecting to 10.0.0.1:6379.",
        "no replica of the server at 10.0.0.1:6379 confirmed a write in time",
        "the server at unix:///tmp/socket is full (maxmemory)",
        "the index on 10.0.0.1:6379 database 0 was deleted or replaced; open it again",
    ):
        shown = without_address(text)
        assert "10.0.0.1" not in shown
        assert "database" not in shown
        assert "socket" not in shown
        assert shown.startswith(("the server ", "the index was ", "no replica of the server "))
    assert without_address(str(StoreError("the index is closed"))) == "the index is closed"
