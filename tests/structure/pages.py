"""The documentation as the tests read it: its pages, their code blocks, and how to run a block of commands."""

import re
import shlex
import subprocess
import sys
import textwrap
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tests.command import likewise_command
from tests.structure.test_rules import ROOT
from tests.waiting import LIMIT_S

SHELL = ("console", "bash")
# A comment right above a block states why it is not run, or that its last command serves until it is stopped.
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->")
SERVES = "<!-- serves until it is stopped -->"
_BLOCK = re.compile(r"^(?P<mark><!-- [^\n]+ -->\n)?```(?P<language>[\w{}\-]*)[^\n]*\n(?P<code>.*?)^```", re.S | re.M)
_PORT_OF_THE_PAGES = 8765


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    mark: str
    code: str

    @property
    def why_not_run(self):
        """The reason why it is not run, or None."""
        found = NOT_RUN.fullmatch(self.mark)
        return found[1] if found else None


def pages():
    """Return the names of all pages, relative to the root of the project."""
    first, docs = (ROOT / "README.md", ROOT / "README.zh-CN.md"), ROOT / "docs"
    # The book holds copies of the pages.
    own = [path for path in sorted(docs.rglob("*.md")) if docs / "_build" not in path.parents]
    return [path.relative_to(ROOT).as_posix() for path in (*first, *own)]


def fenced(page):
    """Return all fenced blocks of a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for block in _BLOCK.finditer(text):
        mark, language, code = (block[name] or "" for name in ("mark", "language", "code"))
        found.append(Block(page, text[: block.start()].count("\n") + 1, language, mark.strip(), code))
    return found


def blocks(page, language, *, marked=True):
    """Return code in a language, including blocks marked as not run; for Python and commands also indented code."""
    found = [block.code for block in fenced(page) if block.language == language and (marked or not block.why_not_run)]
    # A paragraph of code: four spaces before each line, a blank line before the first.
    unfenced = _BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))
    indented = [textwrap.dedent(part) for part in re.findall(r"(?<=\n\n)((?: {4}.*\n|\n(?= {4}))+)", unfenced)]
    if language == "python":
        found += [part for part in indented if re.match(r"import |from ", part)]
    if language == "console":
        found += [f"$ {line}\n" for part in indented for line in part.splitlines() if line.startswith("likewise ")]
    return found


def commands(block):
    """Yield each command of a block with the lines that the page shows below it; a script is one command.

    In a block of the language `console`, a command follows ``$``, continues after a backslash, and ends where its
    output begins. Text after two spaces and ``#`` is a comment.
    """
    if block.language == "bash":
        yield block.code, []
        return
    command, output = "", []
    for line in block.code.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, output
            command, output = line[2:], []
        elif command.endswith("\\"):
            command += "\n" + line
        else:
            output.append(line)
    if command:
        yield command, output


def run(command, folder):
    """Run a command as a reader would, with this Python's `likewise` and `python`; return both output streams."""
    if re.fullmatch(r"likewise [^|<>&;$`\n]*", command):
        # No shell syntax: the process that has loaded the package is faster.
        done = likewise_command(*shlex.split(command, comments=True)[1:], cwd=folder)
        assert done.status == 0, f"{command}\nended with {done.status}: {done.err}"
        return done.out.decode() + done.err
    ran = subprocess.run(
        ["bash", "-c", _shell(command)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        stdin=subprocess.DEVNULL, timeout=LIMIT_S,
    )  # fmt: skip
    assert ran.returncode == 0, f"{command}\nended with {ran.returncode}: {ran.stdout}"
    return ran.stdout


def shows(said, output, command=""):
    """Check that the lines of a page are in a command's output, in order; ``...`` matches anything."""
    at = 0
    for line in output:
        if line.strip() in ("", "..."):
            continue
        pattern = ".*?".join(re.escape(part) for part in re.split(r"\.\.\.", line.rstrip()))
        found = re.compile(rf"^{pattern}[ \t]*$", re.M).search(said, at)
        assert found, f"{command}\nsaid:\n{said}\nand not, behind its place {at}:\n{line}"
        at = found.end()


def serve(command, folder, port):
    """Run a server command on its own port until its page is available; then end it with a signal."""
    process = subprocess.Popen(
        ["bash", "-c", _shell(f"exec_likewise {command.removeprefix('likewise ')} --port {port}")],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + LIMIT_S
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=LIMIT_S) as answer:
                    page = answer.read().decode()
                break
            except OSError:
                assert process.poll() is None, process.communicate()[0]
                assert time.monotonic() < deadline, "it does not answer"
                time.sleep(0.1)
        process.terminate()
        said, _ = process.communicate(timeout=LIMIT_S)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 0, said
    return page, said.replace(str(port), str(_PORT_OF_THE_PAGES))


def _shell(command):
    python = shlex.quote(sys.executable)
    return (
        f'likewise() {{ {python} -m likewise "$@"; }}; exec_likewise() {{ exec {python} -m likewise "$@"; }}; '
        f'python() {{ {python} "$@"; }}; python3() {{ {python} "$@"; }}; set -eo pipefail; {command}'
    )


def hidden_commands(page):
    """Return blocks with commands of the package whose language would exclude them from being run."""
    others = [block for block in fenced(page) if block.language not in (*SHELL, "python") and not block.why_not_run]
    return [block for block in others if re.search(r"^(\$ )?(likewise [a-z-]|pip )", block.code, re.M)]


def write(folder, name, content):
    """Write a file that a page assumes."""
    path = Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
