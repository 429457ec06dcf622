"""What a forked process may do if its parent opened an index before, during or after the fork."""

import gc
import os
import random
import threading
import time

import numpy as np
import pytest

import likewise
from tests.waiting import LIMIT_S

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")

RECIPE = likewise.Recipe.simhash(within=3)
REFUSED, HUNG = 7, "hung"


def forked(work, wait_s: float = LIMIT_S) -> int | str:
    """Return the exit status of a child that runs `work`: 7 if that was rejected because of the fork."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(work() or 0)
        except likewise.errors.ForkedError:
            os._exit(REFUSED)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
    end = time.monotonic() + wait_s
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return HUNG


def opened(path, **options) -> int:
    with likewise.Index(path, **options) as index:
        return len(index)


def test_a_child_of_a_process_with_an_open_index_opens_none(tmp_path):
    with likewise.Index(tmp_path / "other", RECIPE) as other:
        other.add("a", "some text")
    held = [likewise.Index(tmp_path / "one", RECIPE)]
    held[0].add("a", "some text")
    for path in (tmp_path / "one", tmp_path / "other"):
        assert forked(lambda path=path: opened(path, read_only=True)) == REFUSED
    assert forked(lambda: opened(tmp_path / "new", recipe=RECIPE)) == REFUSED

    def let_go() -> int:
        held.clear()
        gc.collect()
        return opened(tmp_path / "one", read_only=True)

    # The parent does not notice, and the child is rejected all the same.
    assert forked(let_go) == REFUSED
    assert held[0].check("some text").kept_id == "a"
    held.pop().close()
    assert not (tmp_path / "new" / "documents.sqlite").exists()
    # No index is open.
    assert forked(lambda: opened(tmp_path / "one") - 1) == 0
    with likewise.Index(tmp_path / "one", read_only=True):
        assert forked(lambda: opened(tmp_path / "one", read_only=True)) == REFUSED


def test_a_child_does_not_keep_the_lock_of_the_writer(tmp_path):
    index = likewise.Index(tmp_path / "index", RECIPE)
    index.add("a", "some text")
    ends, end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end)
        os.read(ends, 1)
        os._exit(0)
    try:
        with pytest.raises(likewise.errors.IndexLocked):
            likewise.Index(tmp_path / "index")
        index.close()
        with likewise.Index(tmp_path / "index") as again:
            again.add("b", "another text")
            assert len(again) == 2
    finally:
        os.close(end)
        os.waitpid(child, 0)


@pytest.mark.slow
def test_no_child_waits_for_threads_that_it_has_not(tmp_path):
    """300 forks while threads are inside the library nearly all the time."""
    sketches = likewise.Sketches(
        np.random.default_rng(3).integers(0, 2**63, 20_000, dtype=np.uint64),
        RECIPE.resolve(),
        np.zeros(20_000, bool),
        np.full(20_000, 1_000, np.uint32),
    )
    stop = threading.Event()
    with likewise.Index(tmp_path / "index", RECIPE, durability="interval:200ms") as index:
        index.check_and_add_batch([f"{i}" for i in range(20_000)], sketches)

        def write() -> None:
            number = 0
            while not stop.is_set():
                index.add(f"new {number}", f"the text of document {number}")
                number += 1

        def read() -> None:
            while not stop.is_set():
                index.verify(full=True)

        threads = [threading.Thread(target=work) for work in (write, read, read)]
        for thread in threads:
            thread.start()
        try:
            chance, ends = random.Random(5), []
            for _ in range(300):
                time.sleep(chance.random() * 0.02)
                ends.append(forked(lambda: opened(tmp_path / "index", read_only=True)))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    assert ends == [REFUSED] * 300
