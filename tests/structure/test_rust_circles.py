"""Circular imports of Rust modules are found, and nothing else is reported."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import rust_circles  # noqa: E402

BASE = {
    "lib.rs": "pub mod one;\npub mod two;\npub use one::One;\n",
    "one.rs": "use super::two::Two;\npub struct One(Two);\n",
    "two.rs": "pub struct Two;\n",
}
CIRCLE = ["planted: one, two"]


def circles(tmp_path, files):
    source = tmp_path / "planted" / "src"
    for name, text in (BASE | files).items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")
    (source.parent / "Cargo.toml").touch()
    return list(rust_circles.found_in(tmp_path))


@pytest.mark.parametrize(
    "two",
    [
        "use super::one::One;\npub struct Two(Box<One>);\n",
        "pub struct Two(Box<crate::one::One>);\n",
        "pub struct Two(Box<crate::One>);\n",
        "use crate::{\n    one::{self, One as Other},\n};\npub struct Two(Box<Other>);\n",
        "pub struct Two;\npub fn make() { use crate::One; }\n",
        "pub struct Two;\nmod inner { use super::super::one::One; }\n",
        "#[cfg(test)]\nmod tests { fn f() {} }\npub struct Two(Box<super::one::One>);\n",
    ],
)
def test_a_planted_circle_is_found(tmp_path, two):
    assert circles(tmp_path, {"two.rs": two}) == CIRCLE


@pytest.mark.parametrize(
    "two",
    [
        BASE["two.rs"],
        "// See crate::one::One.\npub struct Two;\n",
        "pub struct Two;\npub(in crate::two) fn f() {}\n",
        "pub struct Two;\nmod inner { use super::Two; }\n",
        "pub struct Two;\n#[cfg(test)]\nmod tests { use crate::one::One; }\n",
        'pub struct Two;\npub const NAME: &str = "crate::one::One";\n',
    ],
)
def test_what_is_no_circle_is_not_found(tmp_path, two):
    assert circles(tmp_path, {"two.rs": two}) == []


def test_folders_count_with_what_lies_beneath(tmp_path):
    files = {
        "one.rs": "",
        "one/mod.rs": "pub mod deep;\npub struct One;\n",
        "one/deep.rs": "use crate::two::Two;\npub struct Deep(Two);\n",
        "two.rs": "use crate::one::One;\npub struct Two(One);\n",
    }
    assert circles(tmp_path, files) == CIRCLE


def test_the_crates_have_no_circle():
    done = subprocess.run([sys.executable, ROOT / "tools" / "rust_circles.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not list(rust_circles.found_in(rust_circles.CRATES))
