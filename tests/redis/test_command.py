"""``likewise index --url``: the same commands on a server."""

import json

import pytest

from tests.command import likewise_command
from tests.store.conformance import TEXTS


@pytest.fixture
def command(running):
    running.client.flushall()

    def run(name, *arguments, status=0):
        ran = likewise_command("index", name, "--url", running.url, *arguments)
        assert ran.status == status, ran.err
        return ran

    return run


def lines(ran):
    return [json.loads(line) for line in ran.out.decode().splitlines()]


@pytest.fixture
def documents(tmp_path):
    path = tmp_path / "documents.jsonl"
    rows = [{"id": f"doc-{i}", "text": text} for i, text in enumerate([TEXTS[9], TEXTS[9], TEXTS[11], TEXTS[12]])]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_from_creation_to_export(command, documents, tmp_path):
    assert "no index" in command("add", documents, status=2).err
    command("create", "--method", "simhash", "--within", "5", "--shingle", "1")
    added = lines(command("add", documents))
    assert [line["is_new"] for line in added] == [True, False, True, False]
    assert [line["added"] for line in added] == [True] * 4
    assert [line["added"] for line in lines(command("add", documents))] == [False] * 4
    assert [line["is_new"] for line in lines(command("check", documents))] == [False] * 4
    (known,) = lines(command("query", "--id", "doc-1"))
    assert known["kept_id"] == "doc-0"
    assert json.loads(command("stats").out)["num_documents"] == 4
    (removal,) = lines(command("remove", "doc-0"))
    assert removal["promoted"] == ["doc-1"]
    command("verify", "--full")
    command("compact")
    out = tmp_path / "out.jsonl"
    command("export", "-o", str(out))
    assert [json.loads(line)["doc_id"] for line in out.read_text("utf-8").splitlines()] == ["doc-1", "doc-2", "doc-3"]


def test_two_indexes_by_their_prefix(command, documents):
    for prefix in ("one", "two"):
        command("create", "--prefix", prefix, "--method", "simhash", "--within", "3")
        assert lines(command("add", "--prefix", prefix, documents))[0]["is_new"]
