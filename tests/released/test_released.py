"""Files written by a release can be opened by every later one, and give the same answers."""

import json
import re
from pathlib import Path

import pytest

import likewise
from tests.released.answers import answers
from tests.released.make import HERE, leave, packed, unpack

ARCHIVES = sorted(HERE.glob("*.tar.gz"))


def test_this_release_left_its_files():
    assert HERE / f"{likewise.__version__}.tar.gz" in ARCHIVES, "python -m tests.released.make, before a release"


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name.removesuffix(".tar.gz"))
def test_files_of_a_release_answer_as_they_did(archive, tmp_path):
    unpack(archive, tmp_path)
    expected = json.loads((tmp_path / "answers.json").read_text(encoding="utf-8"))
    found = json.loads(json.dumps(answers(tmp_path)))
    for kind, of_kind in expected.items():
        for name, told in of_kind.items():
            assert found[kind][name] == told, (kind, name)
    assert list(found) == list(expected)


def test_files_left_now_answer_as_those_of_the_release(tmp_path):
    folder, again = tmp_path / "left", tmp_path / "again"
    folder.mkdir()
    leave(folder)
    (tmp_path / "left.tar.gz").write_bytes(packed(folder))
    unpack(tmp_path / "left.tar.gz", again)
    unpack(HERE / f"{likewise.__version__}.tar.gz", tmp_path / "released")
    expected = json.loads((tmp_path / "released" / "answers.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(answers(again))) == expected


def test_the_archives_name_no_folder_of_their_maker(tmp_path):
    for archive in ARCHIVES:
        unpack(archive, tmp_path / archive.name)
        for path in (tmp_path / archive.name).rglob("*"):
            if path.is_file():
                content = path.read_bytes()
                assert not re.search(rb"/(tmp|home|root|Users)/", content), path
                assert str(Path.home()).encode() not in content, path
