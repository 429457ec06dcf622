"""Records: fields, equality, changes, and what is left out of copies."""

import copy
import inspect
import pickle
from functools import cached_property
from typing import ClassVar

import pytest

from likewise.records import Record


class Point(Record):
    dimension: ClassVar[int] = 2
    x: int
    y: int = 0

    @cached_property
    def length(self):
        return abs(self.x) + abs(self.y)


class Named(Point):
    name: str = "origin"

    def __post_init__(self):
        if not self.name:
            raise ValueError("no name")


class Held(Record, eq=False, kw_only=True):
    values: list


def test_fields_are_those_of_the_class_and_its_base():
    assert (Named(1, name="a").x, Named(1).y, Named(1).name) == (1, 0, "origin")
    assert str(inspect.signature(Point)) == "(x: int, y: int = 0) -> None"
    assert str(inspect.signature(Held)) == "(*, values: list) -> None"
    assert repr(Named(1, 2)) == "Named(x=1, y=2, name='origin')"
    with pytest.raises(TypeError):
        Point()
    with pytest.raises(ValueError, match="no name"):
        Named(1)._replace(name="")


def test_records_of_one_class_with_equal_fields_are_equal():
    assert Point(1, 2) == Point(1, y=2) != Point(1)
    assert len({Point(1), Point(1), Point(2)}) == 2
    assert Point(1) != Named(1)
    held = Held(values=[])
    assert held == held != Held(values=[])
    assert len({held, Held(values=[])}) == 2


def test_fields_are_fixed():
    with pytest.raises(AttributeError, match="cannot assign to field 'x'"):
        Point(1).x = 2
    assert Named(1, 2)._replace(y=3) == Named(1, 3)
    assert Held(values=Point(1))._asdict() == {"values": {"x": 1, "y": 0}}


def test_copies_have_no_cached_properties():
    one = Point(3, -4)
    assert one.length == 7
    for other in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one), one._replace()):
        assert other == one
        assert "length" in vars(one)
        assert "length" not in vars(other)
