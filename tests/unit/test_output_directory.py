"""What remains of an output directory that is never filled."""

from contextlib import suppress

import pytest

from likewise.io.output.directory import SUMMARY
from likewise.job import output
from likewise.job.output import OutputDirectory


def test_interrupted_while_it_is_claimed_nothing_remains(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(output, "_lock_file", interrupt)
    with pytest.raises(KeyboardInterrupt), OutputDirectory(tmp_path / "out", {}):
        pass
    assert not (tmp_path / "out").exists()
    # An existing directory is kept.
    (tmp_path / "empty").mkdir()
    with pytest.raises(KeyboardInterrupt), OutputDirectory(tmp_path / "empty", {}):
        pass
    assert (tmp_path / "empty").is_dir()


@pytest.mark.parametrize("is_finished", [False, True])
def test_an_interrupt_keeps_parts_only_of_a_run_that_is_not_finished(tmp_path, is_finished):
    warned = []
    directory = OutputDirectory(tmp_path / "out", {}, warned.append)
    with suppress(KeyboardInterrupt), directory:
        directory.parts.mkdir()
        (directory.parts / "counted.json").touch()
        (directory.work / SUMMARY).touch()
        if is_finished:
            directory.finish()
        raise KeyboardInterrupt
    assert [event.message for event in warned] == (
        [] if is_finished else [f"progress is saved in {tmp_path / 'out'}; repeat the command to continue"]
    )
    assert directory.work.exists() is not is_finished
    assert (tmp_path / "out" / SUMMARY).exists() is is_finished
