"""Items computed one ahead on another thread."""

import threading
from contextlib import closing

import pytest

from likewise.runs.audit.truth.matches import _one_ahead


def numbers(threads, failing_at=None):
    for number in range(1, 6):
        if number == failing_at:
            raise ValueError(str(number))
        threads.add(threading.current_thread())
        yield number


@pytest.mark.parametrize("threads", [1, 2])
def test_items_and_errors_are_those_of_the_iterator(threads):
    assert list(_one_ahead(numbers(set()), threads)) == [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="3"):
        list(_one_ahead(numbers(set(), 3), threads))
    assert list(_one_ahead(iter(()), threads)) == []


def test_another_thread_works_only_if_there_are_several_and_ends_with_the_consumer():
    used: set[threading.Thread] = set()
    list(_one_ahead(numbers(used), 1))
    assert used == {threading.current_thread()}
    used.clear()
    with closing(_one_ahead(numbers(used), 2)) as coming:
        assert next(coming) == 1
    assert threading.current_thread() not in used
    assert not any(thread.is_alive() for thread in used)
