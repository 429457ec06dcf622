"""An index keeps the directory where it was opened, even if the process changes its own."""

import likewise

TEXTS = ["a page about the flood season", "a page about rain"]


def test_a_process_may_go_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with likewise.Index("index", likewise.Recipe.simhash(within=3)) as index:
        monkeypatch.chdir("elsewhere")
        index.add_batch(["a", "b"], TEXTS)
        assert index.path == tmp_path / "index"
        assert index.stats["num_documents"] == 2
        index.snapshot("copy")
    with likewise.Index("copy", read_only=True) as copy:
        assert len(copy) == 2
