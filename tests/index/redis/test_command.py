"""``likewise index --url``: the same commands on a server."""

import json

import pytest

from tests.command import likewise_command
from tests.index.store.conformance import TEXTS

pytestmark = pytest.mark.rounds


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


@pytest.mark.parametrize(
    "recipe",
    [
        ("--method", "simhash", "--within", "5", "--shingle", "1"),
        ("--method", "simhash", "--within", "12", "--bits", "128", "--shingle", "1"),
        ("--method", "simhash", "--threshold", "0.8", "--expected", "1000"),
        ("--method", "minhash", "--threshold", "0.7", "--measure", "containment"),
        (),
    ],
)
def test_from_creation_to_export(command, documents, tmp_path, recipe):
    assert "no index" in command("add", documents, status=2).err
    command("create", *recipe)
    added = lines(command("add", documents))
    assert [line["is_new"] for line in added] == [True, False, True, False]
    assert [line["added"] for line in added] == [True] * 4
    assert [line["added"] for line in lines(command("add", documents))] == [False] * 4
    assert [line["is_new"] for line in lines(command("check", documents))] == [False] * 4
    (known,) = lines(command("query", "--id", "doc-1"))
    assert known["kept_id"] == "doc-0"
    assert known["member_ids"] == ["doc-1"]
    near = lines(command("query", documents, "--k", "2"))
    assert [line["neighbors"][0]["doc_id"] for line in near[:2]] == ["doc-0", "doc-0"]
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


def test_a_creation_says_what_is_there_and_no_password(command, documents, running):
    recipe = ("--method", "simhash", "--within", "3")
    made = ("create", *recipe, "--ttl", "500", "--expected", "5000", "--partitions", "4", "--durability", "written")
    assert "with 0 documents" in command(*made).err
    command("add", documents)
    assert "with 4 documents" in command(*made).err
    stats = json.loads(command("stats").out)
    assert (stats["ttl_s"], stats["expected"], stats["partitions"]) == (500, 5000, 4)
    assert stats["durability"] == "written"
    assert "expected: 6000" in command("create", *recipe, "--expected", "6000", status=2).err
    assert "--store" in command("create", *recipe, "--store", "text", status=2).err
    assert "--durability" in command("add", documents, "--durability", "commit", status=2).err
    running.client.acl_setuser("me", enabled=True, passwords=["+secret"], commands=["+@all"], keys=["*"])
    for url in (f"unix://me:secret@{running.socket}", f"unix://me:wrong@{running.socket}"):
        ran = likewise_command("index", "create", "--url", url, "--method", "simhash", "--within", "3")
        assert "secret" not in ran.err
        assert "wrong@" not in ran.err
    ran = likewise_command("index", "stats", "--url", "redis://localhost/abc")
    assert (ran.status, "--url: the database is not a number" in ran.err) == (2, True)


def test_stop_words_are_kept_on_the_server(command, documents, tmp_path):
    (tmp_path / "stop.txt").write_text("the\nof\n")
    command("create", "--method", "simhash", "--within", "3", "--stop-words", tmp_path / "stop.txt")
    assert lines(command("add", documents))[0]["is_new"]
    assert not any(line["is_new"] for line in lines(command("check", documents)))
    command("verify", "--full")


def test_a_refused_document_leaves_those_before_it(command, documents, tmp_path):
    command("create", "--method", "simhash", "--within", "3")
    command("add", documents)
    rows = [{"id": "new", "text": "words"}, {"id": "doc-1", "text": "other words"}, {"id": "last", "text": "more"}]
    path = tmp_path / "clash.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = command("add", path, status=2)
    assert [line["doc_id"] for line in lines(ran)] == ["new"]
    assert "clash.jsonl:2" in ran.err
    assert [line["doc_id"] for line in lines(command("add", "--on-error", "skip", path))] == ["new", "last"]
