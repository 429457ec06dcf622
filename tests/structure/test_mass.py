"""Shipped lines fall, or a row of ARCHITECTURE.md says what was bought for them."""

import importlib.util

import pytest

from tests.structure.test_rules import ROOT

_spec = importlib.util.spec_from_file_location("count_lines", ROOT / "tools" / "count_lines.py")
count_lines = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(count_lines)


def too_heavy(lines, limits, bought):
    """Return the packages over their limits."""
    return {
        package: (number, limits.get(package, 0) + bought.get(package, 0))
        for package, number in lines.items()
        if number > limits.get(package, 0) + bought.get(package, 0)
    }


def test_no_package_grows_unless_it_is_said_what_for():
    lines = {package: number for package, (number, _) in count_lines.counted().items()}
    assert too_heavy(lines, count_lines.limits(), count_lines.bought()) == {}, (
        "shorten it, or add a row to the table 'Lines bought' of ARCHITECTURE.md"
    )


@pytest.mark.parametrize(
    ("lines", "bought", "expected"),
    [({"a": 10}, {}, {}), ({"a": 11}, {}, {"a": (11, 10)}), ({"a": 11}, {"a": 1}, {}), ({"b": 1}, {}, {"b": (1, 0)})],
    ids=["equal", "more", "bought", "new"],
)
def test_growth_is_found(lines, bought, expected):
    assert too_heavy(lines, {"a": 10}, bought) == expected


def test_lines_are_counted():
    source = (
        '"""Doc.\n\nMore.\n"""\n\n# A comment.\nx = 1  # with a reason\n\n\ndef f():\n    """Doc."""\n    return x\n'
    )
    assert count_lines.python_code(source) == 3
    rust = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n#[cfg(test)]\nmod t;\n"
    assert count_lines.without_tests(rust) == ["fn a() {}", "fn c() {}"]
