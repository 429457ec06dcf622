"""The service does what its documentation pages state."""

import dataclasses
import re
import shutil
import subprocess

import pytest

import likewise
from tests.structure.pages import blocks, fenced
from tests.structure.test_rules import ROOT
from tests.waiting import LIMIT_S

pytest.importorskip("fastapi", reason="needs likewise[server]")

REFERENCE = (ROOT / "docs" / "reference" / "http.md").read_text(encoding="utf-8")


def test_the_python_of_the_page_runs(running):
    with running.client("pages") as client:
        client.create_collection("pages", likewise.Recipe.simhash(within=3))
        client.add("https://example.org/a", "the text of the page")
    names = {}
    for block in blocks("docs/howto/serve.md", "python"):
        exec(block.replace("http://127.0.0.1:8765", running.url), names)
    assert (names["verdict"].is_new, names["verdict"].kept_id) == (False, "https://example.org/a")
    assert names["verdicts"].is_new.tolist() == [True, False]
    with running.client("pages") as client:
        client.delete_collection("pages")


def test_the_reference_names_everything(begin):
    from likewise.service import Settings
    from likewise.service.problems import TYPES

    client = begin()
    for kind, (status, _) in TYPES.items():
        assert any(f"| {status} |" in line and f"`{kind}`" in line for line in REFERENCE.splitlines()), kind
    for path in client.get("/openapi.json").json()["paths"]:
        last = path.removeprefix("/v1/collections/{collection}").removesuffix("/batch") or path
        assert f"{last}`" in REFERENCE, path
    for name in {line.split("{")[0].split(" ")[0] for line in client.get("/metrics").text.splitlines()}:
        if name.startswith("likewise_"):
            assert re.sub("_(bucket|count|sum|created)$", "", name) in REFERENCE, name
    for field in dataclasses.fields(Settings):
        if field.name.startswith("max_") or field.name.endswith("_s"):
            assert f"`{field.name}`" in REFERENCE, field.name
            if isinstance(field.default, int) and not field.name.endswith("bytes"):
                row = next(line for line in REFERENCE.splitlines() if f"`{field.name}`" in line)
                assert f"{field.default:,}" in row, row


def test_deployments_use_options_that_there_are():
    from likewise.cli.serve import command

    options = {name for option in command.params for name in option.opts}
    for path in (ROOT / "deploy" / "likewise.service", ROOT / "deploy" / "Dockerfile"):
        lines = [line for line in path.read_text().splitlines() if re.search(r"likewise\W+serve\b", line)]
        used = {word.strip('",') for line in lines if not line.startswith("#") for word in line.split()}
        used = {word for word in used if word.startswith("--")}
        assert used, path
        assert used <= options, path


@pytest.mark.rounds
@pytest.mark.skipif(not shutil.which("javac"), reason="needs a JDK")
@pytest.mark.parametrize("name", ["docs/zh/java.md", "docs/howto/java.md"])
def test_the_java_of_a_page_runs(running, tmp_path, name):
    """Each Java program on a page prints the output shown below it."""
    page = fenced(name)
    programs = [number for number, block in enumerate(page) if block.language == "java" and not block.why_not_run]
    assert programs
    for number in programs:
        name = re.search(r"^public class (\w+)", page[number].code, re.M)[1]
        path = tmp_path / f"{name}.java"
        path.write_text(page[number].code.replace("http://127.0.0.1:8765", running.url), encoding="utf-8", newline="\n")
        command = ["java", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", str(path)]
        ran = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
        assert ran.returncode == 0, ran.stderr.decode()
        assert page[number + 1].language == "text"
        assert ran.stdout.decode().split() == page[number + 1].code.split()
    with running.client("news") as client:
        client.delete_collection("news")
