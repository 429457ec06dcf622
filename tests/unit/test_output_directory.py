"""What remains of an output directory that is never filled."""

import pytest

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
