"""The report about the output of other commands: its counts and the first rows of its tables, also as the page."""

import json

import pyarrow.parquet as pq
import pytest

from tests.command import likewise_command

TEXT = "one fine day in may it rained and the river rose {} above the old bridge of <b>our</b> town"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("others")
    rows = [{"id": f"d{i}", "text": TEXT.format(i // 2), "site": "s"} for i in range(120)]
    for name, some in (("a", rows), ("b", rows[3:])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    return folder


COMMANDS = {
    "leaks": ("leaks", "train=a.jsonl", "test=b.jsonl", "-o", "leaks"),
    "copies": ("copies", "b.jsonl", "--in", "a.jsonl", "-o", "copies"),
    "decontaminate": ("decontaminate", "a.jsonl", "--against", "b.jsonl", "-o", "decontaminate"),
    "boilerplate": ("boilerplate", "a.jsonl", "--site", "site", "-o", "boilerplate"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_outputs_of_other_commands_have_a_report_and_a_page(folder, command):
    ran = likewise_command(*COMMANDS[command], "--quiet", cwd=folder)
    assert ran.status in (0, 1), ran.err
    out = folder / command
    page = likewise_command("report", out, "-o", "-").out.decode()
    summary = json.loads((out / "summary.json").read_text())
    assert f"({command})" in page
    for name, value in summary.items():
        if name.startswith("num_") and value:
            assert f"<b>{value:,}</b>{name.removeprefix('num_').replace('_', ' ')}<" in page
    for path in out.glob("*.parquet"):
        num = pq.read_metadata(path).num_rows
        assert f"<h2>{path.stem.capitalize()}: {num:,}</h2>" in page
        if num > 50:
            assert f"and {num - 50:,} more in the table" in page
    testing = pytest.importorskip("starlette.testclient", reason="needs likewise[server]")
    from likewise.service import Settings, create_app

    with testing.TestClient(create_app(out, Settings(has_request_log=False)), base_url="http://127.0.0.1") as client:
        assert client.get("/", follow_redirects=True).text == page
