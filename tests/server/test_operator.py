"""What an operator does to the directory of one collection while it is in use.

The collection answers with errors from then on, or goes on answering right; the others do not notice; nothing that was
acknowledged is lost but what the operator removed, and nothing is acknowledged that no directory holds.
"""

import http.client
import itertools
import json
import os
import random
import shutil
import threading

import pytest

import likewise
from tests.server.sockets import ask

RECIPE = likewise.Recipe.simhash(within=3)
NUM_FIRST = 300
# Requests that each thread makes before and after an operator acts.
NUM_REQUESTS = 12
# What a collection may answer once its directory is not what it was.
TOLD = {"store", "poisoned"}


def text_of(doc_id):
    chance = random.Random(doc_id)
    return " ".join(f"{chance.randrange(10**6)}" for _ in range(30))


class Load:
    """Threads that add, check and get documents of one collection, and what they were told."""

    def __init__(self, service, collection, first_ids, num_threads=2):
        self.collection = collection
        self.acknowledged = list(first_ids)
        self.wrong = []
        self.refused = []
        # Documents that were acknowledged although they were sent after this was set.
        self.is_refusing = False
        self.acknowledged_after = []
        self._service = service
        self._num_done = [0] * num_threads
        self._is_ended = False
        self._moved = threading.Condition()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(num_threads)]
        for thread in self._threads:
            thread.start()

    def wait(self, num_requests=NUM_REQUESTS):
        """Wait until each thread has made as many requests more."""
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
    """The index in a directory holds these documents."""
    with likewise.Index(folder) as index:
        assert index.verify(full=True) == []
        missing = [doc_id for doc_id in doc_ids if index.get(doc_id) is None]
        assert missing == []


class Round:
    """A service of two collections under load, one of which is the operator's."""

    def __init__(self, start, folder):
        self.folder = folder
        self.held = folder / "disk" / "victim"
        self.served = folder / "served" / "victim"
        self.served.parent.mkdir(parents=True)
        self.held.parent.mkdir()
        ids = {name: [f"{name}-first-{i}" for i in range(NUM_FIRST)] for name in ("victim", "other")}
        for name, place in (("victim", self.held), ("other", folder / "served" / "other")):
            with likewise.Index(place, RECIPE) as index:
                index.add_batch(ids[name], [text_of(doc_id) for doc_id in ids[name]])
                index.compact()
                if name == "victim":
                    index.snapshot(folder / "disk" / "snapshot")
        self.served.symlink_to(self.held)
        # No deadline that a busy machine could miss.
        self.service = start(folder / "served", deadline_s=600.0, has_request_log=False)
        self.loads = {name: Load(self.service, name, ids[name]) for name in ids}

    def wait(self):
        for load in self.loads.values():
            load.wait()

    def play(self, act, *, refuses):
        """Let the operator act; what the collection did then."""
        victim, other = self.loads["victim"], self.loads["other"]
        try:
            self.wait()
            before = list(victim.acknowledged)
            act(self)
            victim.is_refusing = True
            self.wait()
            listed = ask(self.service, "GET", "/v1/collections")
            described = ask(self.service, "GET", "/v1/collections/other")
        finally:
            for load in self.loads.values():
                load.end()
        assert self.service.process.poll() is None
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
    """An older state of the same collection, with the same identity."""
    rename(at)
    shutil.copytree(at.folder / "disk" / "snapshot", at.held)


def copy(at):
    rename(at)
    shutil.copytree(moved(at), at.held)


def link_again(at):
    at.served.unlink()
    at.served.symlink_to(at.folder / "disk" / "snapshot")


def truncate(suffix):
    def act(at):
        for path in at.held.rglob(f"*{suffix}"):
            if path.is_file():
                os.truncate(path, path.stat().st_size // 2)

    act.__name__ = f"truncate{suffix or '-all'}"
    return act


# What it does, and where the documents are afterwards that were acknowledged before.
ACTIONS = {
    delete: None,
    rename: "moved",
    rename_back: "victim",
    restore: "moved",
    copy: "moved",
    link_again: "victim",
    truncate(".seg"): "victim",
    truncate(".sqlite"): None,
}


def check_round(start, folder, act):
    at = Round(start, folder)
    before, victim = at.play(act, refuses=act not in (rename_back,) and not act.__name__.startswith("truncate"))
    place = ACTIONS[act]
    if place is not None:
        check_held(at.held.with_name(place), before if act is not rename_back else victim.acknowledged)


@pytest.mark.parametrize("act", ACTIONS, ids=lambda act: act.__name__)
def test_an_operator_disturbs_a_collection(start, tmp_path, act):
    check_round(start, tmp_path, act)
