"""How a service ends: on request it finishes what was begun; killed, it loses nothing that was answered."""

import http.client
import io
import json
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

import likewise
from likewise.service import run
from likewise.service.problems import log
from tests.command import likewise_command
from tests.service.http.sockets import JSON, answer, ask, connect, head
from tests.waiting import LIMIT_S, wait_until

PAGES = "/v1/collections/pages"


def add_until_the_end(service, thread, told, chance):
    """Add documents one by one and in batches over one connection; record the answers until there are none."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=LIMIT_S)
    number = 0
    try:
        while True:
            documents = [
                {
                    "doc_id": f"{thread}-{time.time_ns()}-{number + i}",
                    "text": f"page {chance.randrange(200)} of the crawl",
                }
                for i in range(chance.choice([1, 1, 1, 20]))
            ]
            number += len(documents)
            is_single = len(documents) == 1
            body = documents[0] if is_single else {"documents": documents}
            path = f"{PAGES}/check-and-add" + ("" if is_single else "/batch")
            connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
            response = connection.getresponse()
            content = json.loads(response.read())
            if response.status != 200:
                assert content["type"] == "draining", content
                return
            told += [content] if is_single else content["verdicts"]
    except (http.client.HTTPException, OSError, ValueError):
        return
    finally:
        connection.close()


def crowd(service, num_threads, chance):
    """Return threads that add documents, and the answers they got."""
    told = []
    threads = [
        threading.Thread(target=add_until_the_end, args=(service, i, told, random.Random(chance.random())))
        for i in range(num_threads)
    ]
    for thread in threads:
        thread.start()
    return threads, told


def check_all_there(path, told):
    """Check that every answer is true of the index."""
    with likewise.Index(path) as index:
        assert index.verify(full=True) == []
        assert len({verdict["seq"] for verdict in told}) == len(told)
        for verdict in told:
            document = index.get(verdict["doc_id"])
            assert document is not None, verdict
            assert document[:7] == tuple(verdict[name] for name in document._fields[:7])


def kill_rounds(start, tmp_path, num_rounds):
    chance = random.Random(7)
    folder = tmp_path / "served"
    told = []
    for number in range(num_rounds):
        service = start(folder, has_request_log=False)
        if number == 0:
            assert ask(service, "PUT", PAGES, {"recipe": {"method": "simhash", "within": 3}})[0] == 201
        threads, new = crowd(service, 4, chance)
        # At any moment of a request.
        num_answers = chance.randint(1, 300)
        assert wait_until(lambda num_answers=num_answers, new=new: len(new) >= num_answers)
        service.kill()
        for thread in threads:
            thread.join()
        told += new
        check_all_there(folder / "pages", told)
    assert told


def test_what_was_answered_survives_a_kill(start, tmp_path):
    kill_rounds(start, tmp_path, 1)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_what_was_answered_survives_fifty_kills(start, tmp_path):
    kill_rounds(start, tmp_path, 50)


def test_asked_to_end_it_finishes_and_syncs(start, tmp_path):
    service = start(durability="interval:3600s", drain_s=LIMIT_S)
    assert ask(service, "PUT", PAGES, {})[0] == 201
    slow = connect(service)
    body = b'{"doc_id": "slow", "text": "begun before the end"}'
    slow.sendall(head(service, "POST", f"{PAGES}/add", JSON.strip(), f"content-length: {len(body)}") + body[:20])
    threads, told = crowd(service, 3, random.Random(3))
    assert wait_until(lambda: told)
    service.process.send_signal(signal.SIGTERM)
    assert wait_until(lambda: any(line["event"] == "draining" for line in service.log))
    slow.sendall(body[20:])
    status, content = answer(slow)
    for thread in threads:
        thread.join()
    assert service.stop() == (0, "")
    assert status == 200, content
    events = [line["event"] for line in service.log]
    assert events[-1] == "ended"
    assert "draining" in events
    assert told
    check_all_there(tmp_path / "served" / "pages", [*told, json.loads(content)])


def test_the_command(tmp_path, monkeypatch):
    """Keys are made; other addresses are rejected without keys; the port is shown; Ctrl-C ends it; stdout is empty."""
    monkeypatch.delenv("LIKEWISE_API_KEY", raising=False)
    refused = likewise_command("serve", tmp_path / "c", "--create", "--host", "0.0.0.0")
    assert refused.status == 2, refused.err
    assert "is reachable from other machines" in refused.err
    keys = tmp_path / "keys.txt"
    made = likewise_command("serve", "--keys", keys, "--new-key", "crawler:write")
    secret = made.out.decode().strip()
    assert (made.status, len(secret)) == (0, 46)
    assert keys.stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("LIKEWISE_API_KEY", "the-key-of-the-administrator")
    serve = [sys.executable, "-m", "likewise", "serve"]
    with subprocess.Popen(
        [*serve, str(tmp_path / "c"), "--create", "--keys", str(keys), "--port", "0", "--host", "0.0.0.0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            port = int(json.loads(process.stderr.readline())["url"].rpartition(":")[2])
            url = f"http://127.0.0.1:{port}"
            with likewise.Client(url, "the-key-of-the-administrator") as client:
                client.create_collection("pages")
            with likewise.Client(url, secret) as client:
                assert client.add("a", "one fine day").is_new
            process.send_signal(signal.SIGINT)
            output, log = process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
    assert (process.returncode, output) == (0, "")
    assert secret not in log
    assert "one fine day" not in log


class InterruptedWrites(io.RawIOBase):
    """A file on each write to which the process is asked to end."""

    def writable(self):
        return True

    def write(self, content):
        signal.raise_signal(signal.SIGTERM)
        return len(content)


def test_a_service_that_is_asked_to_end_while_it_writes_its_log_ends(tmp_path, monkeypatch):
    service = run.Service(tmp_path, run.Settings())
    server = run._Server(run.uvicorn.Config(None), service)
    standard_error = io.TextIOWrapper(io.BufferedWriter(InterruptedWrites()), line_buffering=True)
    monkeypatch.setattr(sys, "stderr", standard_error)
    before = signal.signal(signal.SIGTERM, server.handle_exit)
    try:
        log("listening")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert server.should_exit
    assert service.is_draining
