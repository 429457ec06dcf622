"""The example scripts run and find what they claim to find."""

import csv
import importlib.util
import json
import random
import re
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"
BINARIES = ROOT.parent / "shared" / "data" / "bin-wheels"


def example(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_named_in_the_documentation():
    page = (ROOT / "docs" / "howto" / "uses.md").read_text(encoding="utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert f"examples/{path.name}" in page


def test_search_results_are_grouped(capsys):
    module = example("search_results")
    groups = module.grouped(module.RESULTS)
    assert [len(folded) for folded in groups.values()] == [4, 2, 0, 0, 0, 0]
    assert next(iter(groups)) == module.RESULTS[0][0]
    module.main()
    assert "12 results, 6 shown" in capsys.readouterr().out


def test_a_spam_template_is_found(capsys):
    module = example("spam_template")
    module.main()
    assert "the largest group has 40, 40 of the 40 from the template" in capsys.readouterr().out
    mixed = module.messages(random.Random(3))
    texts = [text for _, text in mixed]
    group = module.largest_group(texts)
    found = module.template_of([texts[row] for row in group])
    wanted = re.sub(r"\S*\{.*?\}\S*", "...", module.TEMPLATE)
    assert found == wanted


def test_plagiarized_excerpts_are_found_and_shown(capsys):
    module = example("plagiarism")
    texts, copies = module.essays(random.Random(5))
    module.main()
    shown = capsys.readouterr().out
    assert "3 with a copied passage, 3 found" in shown
    found = re.findall(r"of essay (\d+) stands in essay (\d+)", shown)
    assert sorted((int(a), int(b)) for a, b in found) == sorted(copies)
    for copy, source in copies:
        assert module.longest_shared(texts[copy], texts[source]) in texts[source]


def test_the_nearest_base_is_found_and_saves_bytes(capsys):
    module = example("delta_coding")
    releases = module.made_releases(random.Random(1))
    bases = module.nearest_bases([data for _, data in releases])
    for (name, _), base in zip(releases, bases, strict=True):
        program, number = name.split("-")
        assert (base is None) == (number == "0")
        assert base is None or releases[base[0]][0] == f"{program}-{int(number) - 1}"
    if module.coder() is None:
        pytest.skip("there is no zstd")
    module.main()
    saved = re.search(r"\((\d+)%\) saved", capsys.readouterr().out)
    assert int(saved[1]) > 70


def test_both_kinds_of_zstd_take_a_base():
    module = example("delta_coding")
    zstd = pytest.importorskip("backports.zstd")
    data = random.Random(2).randbytes(30_000)
    changed = data[:9000] + b"something else" + data[9100:]
    assert module.by_module(zstd, changed, None) > len(changed) > 100 * module.by_module(zstd, changed, data)
    program = module.shutil.which("zstd")
    if program:
        assert (
            module.by_program(program, changed, None) > len(changed) > 100 * module.by_program(program, changed, data)
        )


@pytest.mark.slow
@pytest.mark.skipif(not BINARIES.is_dir(), reason="the binary development set is not here")
def test_bases_of_real_binaries():
    module = example("delta_coding")
    manifest = json.loads((BINARIES / "manifest.json").read_text(encoding="utf-8"))
    with tarfile.open(BINARIES / "files.tar.xz") as archive:
        contents = {Path(member.name).stem: archive.extractfile(member).read() for member in archive if member.isfile()}
    ids = [entry["id"] for entry in manifest]
    bases = module.nearest_bases([contents[name] for name in ids])
    with (BINARIES / "pairs.tsv").open(encoding="utf-8") as lines:
        near = {
            frozenset((row["id1"], row["id2"])) for row in csv.DictReader(lines, delimiter="\t") if row["label"] == "1"
        }
    # Among the files with an earlier near-duplicate, those whose base is one.
    late = [row for row in range(len(ids)) if any(frozenset((ids[row], ids[base])) in near for base in range(row))]
    right = [row for row in late if bases[row] and frozenset((ids[row], ids[bases[row][0]])) in near]
    assert len(right) >= 0.95 * len(late) > 20
    compress = module.coder()
    if compress is None:
        pytest.skip("there is no zstd")
    alone = sum(compress(contents[ids[row]], None) for row in right[:12])
    coded = sum(compress(contents[ids[row]], contents[ids[bases[row][0]]]) for row in right[:12])
    assert coded < 0.4 * alone


def test_code_reuse_is_found(capsys):
    module = example("code_reuse")
    module.main()
    shown = capsys.readouterr().out
    assert re.search(r"bisect\.insort_right:\d+  bisect\.insort_left:\d+", shown)
    assert module.shape("x = f(y)  # a comment") == module.shape("a = b(c)")
