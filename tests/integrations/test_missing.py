"""Integrations import their library only when used, and name the extra if it is absent."""

import importlib
import subprocess
import sys

import pytest

from likewise.errors import MissingExtra

LIBRARIES = ["datasets", "datatrove", "duckdb", "mcp", "pandas", "polars", "scrapy", "sklearn"]


def test_no_library_is_imported_by_the_package():
    code = (
        "import likewise, sys; likewise.dedup(['a b c', 'd e f']); "
        f"sys.exit(', '.join(sys.modules.keys() & {set(LIBRARIES)!r}) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", LIBRARIES)
def test_an_absent_library_names_the_extra(name, monkeypatch):
    ours = f"likewise.integrations.{name}"
    for module in [module for module in sys.modules if module == ours or module.startswith(f"{ours}.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf'pip install "likewise\[{name}\]"') as caught:
        importlib.import_module(ours)
    assert caught.value.extra == name
