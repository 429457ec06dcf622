"""Shipped lines fall, or lines.csv says what was bought for them."""

import importlib.util

import pytest

from tests.structure.test_rules import ROOT

_spec = importlib.util.spec_from_file_location("count_lines", ROOT / "tools" / "count_lines.py")
count_lines = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(count_lines)


def too_heavy(lines, limits):
    """Return the packages over their limits."""
    return {package: number for package, number in lines.items() if number > limits.get(package, 0)}


def test_no_package_grows_unless_it_is_said_what_for():
    lines = {package: number for package, (number, _) in count_lines.counted().items()}
    rows = count_lines.limits()
    limits = {row["package"]: int(row["lines"]) for row in rows}
    assert too_heavy(lines, limits) == {}, "shorten it, or raise its limit, with what the lines were bought for"
    assert not [row for row in rows if int(row["bought"]) and not row["what for"]]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [({"a": 10}, {}), ({"a": 11}, {"a": 11}), ({"b": 1}, {"b": 1})],
    ids=["equal", "more", "new"],
)
def test_growth_is_found(lines, expected):
    assert too_heavy(lines, {"a": 10}) == expected


def test_lines_are_counted():
    source = (
        '"""Doc.\n\nMore.\n"""\n\n# A comment.\nx = 1  # with a reason\n\n\ndef f():\n    """Doc."""\n    return x\n'
    )
    assert count_lines.python_code(source) == 3
    rust = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n#[cfg(test)]\nmod t;\n"
    assert count_lines.without_tests(rust) == ["fn a() {}", "fn c() {}"]
