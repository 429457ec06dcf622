"""Sessions of the mcp package's client with `likewise mcp`, over standard input and output."""

import asyncio
import json
import sys

import pytest

import likewise
from tests.command import likewise_command
from tests.waiting import LIMIT_S

pytest.importorskip("mcp", reason="needs likewise[mcp]")

FIRST = "The user wants every report in German, with the figures in a table at the end of the page."
AGAIN = "The user wants every report in German, with the figures in a table at the end of each page."
RECIPE = likewise.Recipe.minhash(0.7, keep="first", tokens="char", shingle=3)
OTHER = "The build server runs out of disk space on the first day of each month."


@pytest.fixture
def index(tmp_path):
    path = tmp_path / "memories.lw"
    likewise.Index(path, RECIPE).close()
    return path


def session(arguments, *calls, environment=None):
    """Return the names of the tools, and the answers of the calls; an error is its text."""
    from mcp import Client, StdioServerParameters, stdio_client

    async def held():
        command = ["-m", "likewise", "mcp", *map(str, arguments)]
        server = StdioServerParameters(command=sys.executable, args=command, env=environment)
        async with Client(stdio_client(server)) as client:
            tools = (await client.list_tools()).tools
            answers = []
            for name, given in calls:
                result = await client.call_tool(name, given)
                if result.is_error:
                    answers.append(result.content[0].text)
                else:
                    assert json.loads(result.content[0].text) == result.structured_content
                    answers.append(result.structured_content)
            return {tool.name: tool for tool in tools}, answers, client.instructions, client.server_info

    return asyncio.run(asyncio.wait_for(held(), LIMIT_S))


def test_an_agent_asks_before_it_stores(index):
    tools, answers, instructions, info = session(
        [index, "--write"],
        ("check", {"text": FIRST}),
        ("check_and_add", {"doc_id": "a", "text": FIRST}),
        ("check", {"text": AGAIN}),
        ("check_and_add", {"doc_id": "b", "text": AGAIN}),
        ("check_and_add", {"doc_id": "c", "text": OTHER}),
        ("check_and_add", {"doc_id": "a", "text": FIRST}),
        ("check_and_add", {"doc_id": "a", "text": OTHER}),
        ("neighbors", {"text": AGAIN, "k": 1}),
        ("neighbors", {"text": AGAIN, "k": 0}),
        ("compare", {"a": FIRST, "b": AGAIN}),
    )
    assert tools.keys() == {"check", "check_and_add", "compare", "neighbors"}
    assert not tools["check_and_add"].annotations.read_only_hint
    assert "check_and_add" in instructions
    assert (info.name, info.version) == ("likewise", likewise.__version__)
    with likewise.Index(index, read_only=True) as seen:
        assert len(seen) == 3
        similarity = seen.get("b").similarity
        nearest = seen.neighbors(AGAIN, 1)[0]._asdict()
    new = {"is_new": True, "kept_id": None, "measure": None, "similarity": None, "distance": None}
    copy = {"is_new": False, "kept_id": "a", "measure": "jaccard", "similarity": similarity, "distance": None}
    assert 0.7 <= similarity < 1
    assert answers[:6] == [
        new,
        new | {"doc_id": "a", "added": True},
        copy,
        copy | {"doc_id": "b", "added": True},
        new | {"doc_id": "c", "added": True},
        new | {"doc_id": "a", "added": False},
    ]
    assert 'the id "a" already exists with a different text' in answers[6]
    assert answers[7] == {"neighbors": [nearest]}
    assert "k: " in answers[8]
    plain = likewise.compare(FIRST, AGAIN, RECIPE)
    assert answers[9]["matches"] is True
    assert answers[9]["measures"]["jaccard"] == plain.measures.jaccard == similarity
    assert answers[9]["differences"] == [{"a": "the", "b": "each"}]


def test_nothing_is_written_without_the_option(index):
    with likewise.Index(index) as writer:
        writer.add("a", FIRST)
        # Alongside the writer.
        tools, answers, instructions, _ = session(
            [index], ("check_and_add", {"doc_id": "b", "text": OTHER}), ("check", {"text": AGAIN})
        )
        assert len(writer) == 1
    assert tools.keys() == {"check", "compare", "neighbors"}
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    assert "check_and_add" not in instructions
    assert answers[0] == "Unknown tool: check_and_add"
    assert answers[1]["kept_id"] == "a"


def test_sessions_share_a_service(tmp_path):
    pytest.importorskip("fastapi", reason="needs likewise[server]")
    pytest.importorskip("httpx2", reason="needs likewise[client]")
    from tests.service.http.conftest import Service

    service = Service(tmp_path / "collections")
    try:
        with service.client() as client:
            client.create_collection("memories", RECIPE)
        arguments = [service.url, "--collection", "memories", "--write"]
        session(arguments, ("check_and_add", {"doc_id": "a", "text": FIRST}))
        _, answers, _, _ = session(
            arguments, ("check", {"text": AGAIN}), ("compare", {"a": FIRST, "b": OTHER}), ("neighbors", {"text": AGAIN})
        )
    finally:
        service.kill()
    assert answers[0]["kept_id"] == "a"
    assert answers[1]["matches"] is False
    assert [one["doc_id"] for one in answers[2]["neighbors"]] == ["a"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.lw"], "nowhere.lw: does not exist; create it with `likewise index create`"),
        (["memories.lw", "--collection", "a"], "a collection or a key requires the URL of a service"),
        (["memories.lw", "--write"], "locked by another writer"),
    ],
)
def test_a_server_that_cannot_start_says_why(index, arguments, message):
    with likewise.Index(index):
        ran = likewise_command("mcp", *arguments, cwd=index.parent)
    assert ran.status
    assert message in ran.err
    assert not (index.parent / "nowhere.lw").exists()
