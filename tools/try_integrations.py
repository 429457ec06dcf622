"""Test each integration with its library, in a separate environment: their requirements conflict.

``python tools/try_integrations.py FOLDER [NAME...]``: for each name, makes an environment in FOLDER with this
checkout's package, its extra and the tests' needs. Then runs ``tests/integrations/test_NAME.py``, and the Python of
``docs/howto/NAME.md`` and of docstrings. The package must have been built (``make build``).
"""

import importlib.metadata
import os
import subprocess
import sys
import tomllib
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Further extras and packages that the tests of each integration use.
NEEDED: dict[str, tuple[list[str], list[str]]] = {
    "64-bits": (["datasets", "spark"], []),
    "cutters": ([], ["jieba==0.42.1", "rjieba==0.2.2", "janome==0.5.0", "pythainlp==5.4.0"]),
    "datasets": ([], []),
    "datatrove": ([], ["orjson>=3.10"]),
    "haystack": ([], []),
    "langchain": ([], []),
    "llama-index": ([], []),
    "mcp": (["server", "client"], []),
    "scrapy": (["server", "client"], []),
    "sklearn": ([], []),
    # The catalog of Iceberg is a database.
    "tables": (
        ["lance", "delta", "iceberg"],
        ["pyiceberg[sql-sqlite]", "narwhals>=2", "polars>=1.30", "webdataset>=1"],
    ),
}
TESTS = ["pytest>=9", "pytest-timeout>=2.4", "hypothesis>=6.150"]


def try_one(environment: Path, name: str) -> str:
    """Install and test one integration; return what the tests say, and raise if a command fails."""
    if name not in NEEDED:
        sys.exit(f"no integration {name!r}; there are {', '.join(NEEDED)}")
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        venv.create(environment)
    extras, packages = NEEDED[name]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*TESTS, *packages, *project["dependencies"]]
    for extra in (name, *extras):
        wanted += project["optional-dependencies"].get(extra, [])  # some have no extra
    # The pip of this environment installs there, without compiling modules of which most are not imported.
    pip = [sys.executable, "-m", "pip", "--python", python, "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-compile", *wanted], check=True)
    add_package(python)
    module = name.replace("-", "_")
    tests = [f"tests/integrations/test_{module}.py", "tests/structure/test_documentation.py"]
    # All other pages and modules are covered by `make test`.
    chosen = f"test_{module} or howto/{name} or integrations.{module}"
    pytest = [python, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-k", chosen]
    done = subprocess.run([*pytest, *tests], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{name}:\n{done.stdout}")
    return done.stdout


def add_package(python: Path) -> None:
    """Let an environment import the package of this checkout, like an editable installation but without a build."""
    command = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    (site / "likewise.pth").write_text(f"{ROOT / 'python'}\n", encoding="utf-8")
    installed = importlib.metadata.distribution("likewise")
    facts = site / f"likewise-{installed.version}.dist-info" / "METADATA"
    facts.parent.mkdir(exist_ok=True)
    facts.write_text(installed.read_text("METADATA") or "", encoding="utf-8")


def main() -> None:
    """Test the named integrations, or all."""
    folder, *names = sys.argv[1:]
    names = names or [*NEEDED]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tried = pool.map(try_one, [Path(folder).absolute() / name for name in names], names)
        for name, said in zip(names, tried, strict=True):
            print(f"{name}:\n{said}", flush=True)


if __name__ == "__main__":
    main()
