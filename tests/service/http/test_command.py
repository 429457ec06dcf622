"""Arguments that `likewise serve` rejects before it listens, named as the user wrote them."""

import os
import re
import subprocess
import sys

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
        assert "LIKEWISE_API_KEY: shorter than 16 characters" in ran.err


def test_a_path_that_is_not_there_is_refused_and_not_made(tmp_path):
    ran = likewise_command("serve", tmp_path / "nowhere", "--port", "0")
    assert (ran.status, ran.out) == (2, b"")
    assert "nowhere: does not exist" in ran.err
    assert "--create" in ran.err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no terminals of this kind")
def test_on_a_terminal_the_first_line_says_what_to_open(tmp_path):
    """With --create, an empty directory is created."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "likewise", "serve", str(tmp_path / "new"), "--create", "--port", "0"]
    with subprocess.Popen(command, stderr=theirs) as process:
        os.close(theirs)
        with os.fdopen(ours, "rb", buffering=0) as terminal:
            said = b""
            while b"listening" not in said:
                said += terminal.read(4096)
            process.terminate()
    first, second = said.decode().splitlines()[:2]
    found = re.fullmatch(r"open (http://127\.0\.0\.1:\d+) in a browser; press Ctrl-C to stop", first)
    assert found, first
    assert f'"url": "{found[1]}"' in second
    assert (tmp_path / "new").is_dir()


def test_an_address_and_a_link_to_nothing_are_named(tmp_path, monkeypatch):
    """`s3:` must not become a directory, and a broken link must not be called an existing file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("nowhere")
    for more in ((), ("--create",)):
        ran = likewise_command("serve", "s3://bucket/seen", *more, "--port", "0", cwd=tmp_path)
        assert (ran.status, ran.out) == (2, b"")
        assert ran.err.startswith("error: s3://bucket/seen: serve supports local directories only"), ran.err
        ran = likewise_command("serve", "link", *more, "--port", "0", cwd=tmp_path)
        assert (ran.status, ran.out) == (2, b"")
        assert ran.err.startswith("error: link: broken link to nowhere; delete the link"), ran.err
    assert os.listdir(tmp_path) == ["link"]


def test_what_cannot_be_made_is_not_looked_for(tmp_path):
    ran = likewise_command("serve", tmp_path / "new", "--create", "--read-only", "--port", "0")
    assert ran.status == 2
    assert ran.err.startswith("error: --create: cannot be combined with --read-only"), ran.err
    keys = tmp_path / "absent" / "deep" / "keys.txt"
    ran = likewise_command("serve", "--keys", keys, "--new-key", "crawler:write")
    assert ran.status == 2
    assert f"hint: no directory {keys.parent.parent}: create it first" in ran.err
    assert "glob" not in ran.err
