"""What `likewise serve` refuses before it listens, named as the user wrote it."""

import os

import pytest

pytest.importorskip("fastapi", reason="needs likewise[server]")

from tests.command import likewise_command


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--max-body", "0"),
        ("--max-rate", "nan"),
        ("--deadline", "inf"),
        ("--durability", "sometimes"),
        ("--durability", "interval:2h"),
    ],
)
def test_a_wrong_value_is_told_by_the_name_of_its_option(tmp_path, option, value):
    served = tmp_path / "served"
    ran = likewise_command("serve", served, "--port", "0", option, value)
    assert (ran.status, ran.out) == (2, b"")
    assert ran.err.startswith(f"error: {option}: "), ran.err
    assert "Traceback" not in ran.err
    assert not served.exists()


def test_a_short_key_of_the_environment_is_told_by_its_name(tmp_path, monkeypatch):
    for secret in ("", "short"):
        monkeypatch.setitem(os.environ, "LIKEWISE_API_KEY", secret)
        ran = likewise_command("serve", tmp_path / "served", "--host", "0.0.0.0", "--port", "0")
        assert ran.status == 2
        assert "LIKEWISE_API_KEY: it has fewer than 16 characters" in ran.err
