"""The scripts about other packages: complete heads, pinned versions, and a page that is made from the heads."""

import importlib.util
import re

import pytest

from tests.structure.test_rules import ROOT

SCRIPTS = sorted((ROOT / "findings").glob("*.sh"))
_PIN = re.compile(r"==|:\d|@v?\d|=\d|-\d+\.\d")
_INSTALLS = re.compile(r"^.*(?: install -q|npm install|dependency:copy|go get|cargo add).*$", re.M)


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("findings_page", ROOT / "tools" / "findings_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_made_from_the_heads(tool):
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(ROOT / "findings")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_stands_alone(script, tool):
    text = script.read_text(encoding="utf-8")
    fields = tool.read(script).fields
    assert re.search(r"\(\d{4}-\d\d-\d\d\)$", fields["Seen"])
    assert re.search(r"\d", fields["Package"])
    assert 'set -euo pipefail\nfolder=$(mktemp -d)\ntrap \'rm -rf "$folder"\' EXIT\ncd "$folder"\n' in text
    installs = _INSTALLS.findall(text)
    assert installs
    assert all(_PIN.search(line) for line in installs)
    assert "likewise" not in text.lower().replace("likewise.", "")
    assert re.search(r"<<'SEEN'\n.+\nSEEN\n\Z", text, re.S), "it compares its output with what was seen"
