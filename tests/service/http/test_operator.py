"""An operator changes the directory of one collection while it is in use.

The collection then answers with errors, or keeps answering correctly; others do not notice. Nothing acknowledged is
lost except what the operator removed, and nothing is acknowledged that no directory contains.
"""

import contextlib
import http.client
import itertools
import json
import os
import random
import shutil
import subprocess
import threading

import pytest

import likewise
from tests.service.http.sockets import ask
from tests.waiting import wait_until

pytestmark = pytest.mark.rounds

RECIPE = likewise.Recipe.simhash(within=3)
NUM_FIRST = 300
# Requests that each thread makes before and after the operator acts.
NUM_REQUESTS = 12
# Errors that a collection may return once its directory has changed.
TOLD = {"store", "poisoned"}


def text_of(doc_id):
    chance = random.Random(doc_id)
    return " ".join(f"{chance.randrange(10**6)}" for _ in range(30))


class Load:
    """Threads that add, check and get documents of one collection, and the answers they got."""

    def __init__(self, service, collection, first_ids, num_threads=2):
        self.collection = collection
        self.acknowledged = list(first_ids)
        self.wrong = []
        self.refused = []
        # Documents sent after this was set, and acknowledged nevertheless.
        self.is_refusing = False
        self.acknowledged_after = []
        self._service = service
        self._num_done = [0] * num_threads
        self._is_ended = False
        self._moved = threading.Condition()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(num_threads)]
        for thread in self._threads:
            thread.start()

    def wait(self, num_requests):
        """Wait until each thread has made `num_requests` more requests."""
        with self._moved:
            targets = [num + num_requests for num in self._num_done]
            self._moved.wait_for(
                lambda: (
                    all(num >= target for num, target in zip(self._num_done, targets, strict=True))
                    or not any(thread.is_alive() for thread in self._threads)
                )
            )

    def end(self):
        self._is_ended = True
        for thread in self._threads:
            thread.join()

    def _run(self, number):
        chance = random.Random(number)
        connection = http.client.HTTPConnection("127.0.0.1", self._service.port, timeout=120)
        try:
            for step in itertools.count():
                if self._is_ended:
                    return
                try:
                    self._step(connection, f"{self.collection}-{number}-{step}", chance)
                except (OSError, http.client.HTTPException) as error:
                    self.wrong.append(f"no answer: {error!r}")
                    return
                with self._moved:
                    self._num_done[number] += 1
                    self._moved.notify_all()
        finally:
            connection.close()
            with self._moved:
                self._moved.notify_all()

    def _step(self, connection, doc_id, chance):
        is_refusing = self.is_refusing
        verdict = self._ask(connection, "check-and-add", {"doc_id": doc_id, "text": text_of(doc_id)})
        if verdict is not None:
            self._expect(verdict["is_new"] and verdict["added"], verdict)
            self.acknowledged.append(doc_id)
            if is_refusing:
                self.acknowledged_after.append(doc_id)
        known = chance.choice(self.acknowledged)
        verdict = self._ask(connection, "check", {"text": text_of(known)})
        if verdict is not None:
            self._expect(verdict["kept_id"] == known and verdict["distance"] == 0, verdict)
        verdict = self._ask(connection, "check", {"text": text_of(f"never added {doc_id}")})
        if verdict is not None:
            self._expect(verdict["is_new"], verdict)
        document = self._ask(connection, "get", {"doc_id": known})
        if document is not None:
            self._expect(document["doc_id"] == known and document["is_new"], document)

    def _ask(self, connection, verb, body):
        path = f"/v1/collections/{self.collection}/{verb}"
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        found = json.loads(response.read())
        if response.status == 200:
            return found
        if found["type"] not in TOLD:
            self.wrong.append(f"{verb} {body}: {found}")
        self.refused.append(found["type"])
        return None

    def _expect(self, is_right, answer):
        if not is_right:
            self.wrong.append(answer)


def check_held(folder, doc_ids):
    """Check that the index in a directory contains these documents."""
    with likewise.Index(folder) as index:
        assert index.verify(full=True) == []
        missing = [doc_id for doc_id in doc_ids if index.get(doc_id) is None]
        assert missing == []


class Round:
    """A service of two collections under load; the operator changes one of them."""

    def __init__(self, start, folder, num_requests):
        self.folder = folder
        self.held = folder / "disk" / "victim"
        self.snapshot = folder / "disk" / "snapshot"
        self.served = folder / "served" / "victim"
        self.served.parent.mkdir(parents=True)
        self.held.parent.mkdir(exist_ok=True)
        self._num_requests = num_requests
        ids = {name: [f"{name}-first-{i}" for i in range(NUM_FIRST)] for name in ("victim", "other")}
        for name, place in (("victim", self.held), ("other", folder / "served" / "other")):
            with likewise.Index(place, RECIPE) as index:
                index.add_batch(ids[name], [text_of(doc_id) for doc_id in ids[name]])
                index.compact()
                if name == "victim":
                    index.snapshot(self.snapshot)
        self.served.symlink_to(self.held)
        # A deadline that no busy machine misses.
        self.service = start(folder / "served", deadline_s=600.0, has_request_log=False)
        self.loads = {name: Load(self.service, name, ids[name]) for name in ids}

    def wait(self):
        for load in self.loads.values():
            load.wait(self._num_requests)

    def play(self, act, *, refuses):
        """Let the operator act; return what the collection did then."""
        victim, other = self.loads["victim"], self.loads["other"]
        try:
            self.wait()
            before = list(victim.acknowledged)
            act(self)
            victim.is_refusing = True
            self.wait()
            assert self.service.process.poll() is None, "the service crashed"
            listed = ask(self.service, "GET", "/v1/collections")
            described = ask(self.service, "GET", "/v1/collections/other")
        finally:
            for load in self.loads.values():
                load.end()
        assert (victim.wrong, other.wrong, other.refused) == ([], [], [])
        if refuses:
            assert victim.acknowledged_after == []
            assert victim.refused
        status, shown = listed
        assert status == 200
        names = {one["name"] for one in shown["collections"]} | set(shown["broken"])
        assert names == {"victim", "other"}
        assert (described[0], described[1]["num_documents"] > NUM_FIRST) == (200, True)
        assert self.service.stop() == (0, "")
        assert [line for line in self.service.log if line["event"] == "not-json"] == []
        check_held(self.folder / "served" / "other", other.acknowledged)
        return before, victim


def moved(at):
    return at.held.with_name("moved")


def delete(at):
    shutil.rmtree(at.held)


def rename(at):
    at.held.rename(moved(at))


def rename_back(at):
    rename(at)
    at.loads["victim"].wait(2)
    moved(at).rename(at.held)


def restore(at):
    """Restore an older state of the same collection, with the same identity."""
    rename(at)
    shutil.copytree(at.snapshot, at.held)


def copy(at):
    rename(at)
    shutil.copytree(moved(at), at.held)


def link_again(at):
    at.served.unlink()
    at.served.symlink_to(at.snapshot)


def truncate_segments(at):
    for path in (at.held / "segments").iterdir():
        os.truncate(path, path.stat().st_size // 2)


def truncate_database(at):
    os.truncate(at.held / "documents.sqlite", 4096)


def fill(at):
    with open(at.held.with_name("filling"), "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
    # Requests are accepted as long as the log has space.
    victim = at.loads["victim"]
    assert wait_until(lambda: victim.refused or victim.wrong)


# Action -> where documents acknowledged before it are afterwards; None if they may be lost.
REFUSED = {delete: None, rename: "moved", restore: "moved", copy: "moved", link_again: "victim", fill: "victim"}
GOES_ON = {rename_back: "victim", truncate_segments: "victim", truncate_database: None}
ACTIONS = REFUSED | GOES_ON


@pytest.fixture
def small_disk(tmp_path):
    """Mount a file system that is full after 16 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def check_round(start, folder, act, num_requests=NUM_REQUESTS):
    at = Round(start, folder, num_requests)
    before, victim = at.play(act, refuses=act in REFUSED)
    at.held.with_name("filling").unlink(missing_ok=True)
    place = ACTIONS[act]
    if place is not None:
        check_held(at.held.with_name(place), victim.acknowledged if act in (rename_back, fill) else before)


@pytest.mark.parametrize("act", [rename, link_again, truncate_segments], ids=lambda act: act.__name__)
def test_an_operator_disturbs_a_collection(start, tmp_path, act):
    check_round(start, tmp_path, act)


def test_the_disk_of_a_collection_is_full(start, tmp_path, small_disk):
    check_round(start, tmp_path, fill)


@pytest.mark.slow
@pytest.mark.parametrize("num_requests", [1, 7, 30])
@pytest.mark.parametrize(
    "act", sorted(set(ACTIONS) - {fill}, key=lambda act: act.__name__), ids=lambda act: act.__name__
)
def test_an_operator_disturbs_a_collection_at_any_time(start, tmp_path, act, num_requests):
    check_round(start, tmp_path, act, num_requests)
