"""The embedded index conforms to the model; so does the model with the same interface, and faults are detected."""

import contextlib
import functools
from unittest import mock

import pytest

import likewise
from likewise import _native
from tests.index.store.conformance import SIMHASH, TEXTS, VERIFIED, check_conformance, machine_class
from tests.index.store.model_face import ModelFace


def open_model(path, recipe):
    return ModelFace(recipe)


@pytest.mark.parametrize("name", ["minhash", "simhash"])
def test_the_model_conforms_to_itself(name):
    check_conformance(open_model, name, reopens=False, max_examples=4)


class Forgetful(ModelFace):
    """A faulty model that promotes no documents."""

    def remove(self, doc_id):
        removal = super().remove(doc_id)
        return removal._replace(promoted=())


class Hasty(ModelFace):
    """A faulty model that adds the first documents of a batch although a later one is rejected."""

    def check_and_add_batch(self, ids, texts):
        try:
            return super().check_and_add_batch(ids, texts)
        except likewise.errors.InvalidInput:
            self.check_and_add(ids[0], texts[0])
            raise

    add_batch = check_and_add_batch


@pytest.fixture
def machine_of():
    """Return a state machine with two documents that compares a class with the model."""
    with contextlib.ExitStack() as stack:

        def begun(broken):
            machine = machine_class(lambda path, recipe: broken(recipe), "minhash", reopens=False)()
            stack.callback(machine.teardown)
            machine.begin()
            machine.add_batch([("doc-1", TEXTS[0]), ("doc-2", TEXTS[1])], "check_and_add_batch")
            return machine

        yield begun


def test_a_promotion_that_is_not_told_is_noticed(machine_of):
    with pytest.raises(AssertionError):
        machine_of(Forgetful).remove("doc-1")
    machine_of(ModelFace).remove("doc-1")


def test_half_a_batch_is_noticed(machine_of):
    machine = machine_of(Hasty)
    machine.add_batch([("doc-3", TEXTS[2]), ("doc-1", TEXTS[5])], "add_batch")
    with pytest.raises(AssertionError):
        machine.has_as_many()


def opener(flush_rows):
    """Return a backend that builds a segment from this number of rows in memory; None for the default."""

    def open_embedded(path, recipe):
        made = functools.partial(_native.OnlineIndex, flush_rows=flush_rows)
        made.describe = _native.OnlineIndex.describe
        with mock.patch.object(_native, "OnlineIndex", made):
            return likewise.Index(path, recipe, threads=1)

    return open_embedded


@pytest.mark.parametrize(
    ("name", "flush_rows"), [*((name, 3) for name in [*SIMHASH, *VERIFIED]), ("minhash", None), ("simhash", None)]
)
def test_the_embedded_index_conforms(name, flush_rows):
    check_conformance(opener(flush_rows), name, max_examples=3)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("flush_rows", [None, 1, 5])
@pytest.mark.parametrize("name", [*SIMHASH, *VERIFIED])
def test_the_embedded_index_conforms_for_long(name, flush_rows):
    check_conformance(opener(flush_rows), name, max_examples=150, steps=60)
