"""``likewise compare``: two documents side by side."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options.commands import LongCommand, flag, option
from likewise.cli.options.recipe import MOVED_INPUTS, match_options, take_recipe
from likewise.cli.options.terminal import has_color
from likewise.errors import InvalidInput, InvalidParameter, counted
from likewise.progress import printable

if TYPE_CHECKING:
    from likewise.io.source.source import ReadRules
    from likewise.measures.comparison import Comparison, Stretch

_CONTEXT = 60


@click.command("compare", cls=LongCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@click.option("--ids", nargs=2, metavar="X Y", help="Ids of the two documents in FILES.")
@option("--text-field NAME", "With --ids: text field.  [default: text]", multiple=True)
@option("--tokens-field NAME", "With --ids: read a list of tokens from this field instead.")
@option("--id-field NAME", "With --ids: id field.  [default: id if present]")
@MOVED_INPUTS
@option("--max-diff N", "Maximum number of differences to show.", click.IntRange(min=0))
@match_options
@flag("--json", "Print all results as JSON.", to="as_json")
def command(
    files: tuple[str, ...],
    ids: tuple[str, str] | None,
    text_field: tuple[str, ...],
    tokens_field: str | None,
    id_field: str | None,
    inputs: Path | None,
    max_diff: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare two documents: similarity and differences.

    FILES are two text files or, with --ids, files in any format that contain both documents. Shows all measures, both
    fingerprints with the differing bits marked, shared features, and both texts aligned word by word.

    With --ids, FILES can also be the output directory of a run: the documents are compared by the recipe and the
    weights of the run, and the evidence about them is shown.

    \b
    Examples:
      likewise compare a.txt b.txt
      likewise compare articles.jsonl --ids 17 23
      likewise compare out --ids 17 23
      likewise compare articles.jsonl --ids articles.jsonl:4 articles.jsonl:9
    """
    from likewise.job.reading import FileRun
    from likewise.measures.comparison import compare
    from likewise.recipe.rules import BYTE_TOKENS

    is_run = ids is not None and len(files) == 1 and (Path(files[0]) / "summary.json").is_file()
    if is_run:
        assert ids is not None
        named = {"text_field": text_field, "tokens_field": tokens_field, "id_field": id_field, **options}
        if (other := next((name for name, value in named.items() if value), None)) is not None:
            raise InvalidParameter(other, "does not apply to a run, whose recipe is used; compare its input files")
        _show_of_run(Path(files[0]), ids, inputs, max_diff, as_json=as_json)
        return
    if inputs is not None:
        raise InvalidParameter("inputs", "applies only to the output directory of a run")
    recipe = take_recipe(options | {"tokens_field": tokens_field}).across_values
    if ids is None:
        named = {"text_field": text_field, "tokens_field": tokens_field, "id_field": id_field}
        if any(named.values()):
            raise InvalidParameter(next(name for name, value in named.items() if value), "requires --ids")
        if len(files) != 2:
            raise InvalidParameter("ids", f"{len(files)} file given; give two text files, or two ids with --ids")
        are_bytes = recipe.tokens in BYTE_TOKENS
        texts: list[Any] = [Path(name).read_bytes() if are_bytes else _read_text(Path(name)) for name in files]
    else:
        texts = _find(files, ids, FileRun(text_field or ("text",), tokens_field, id_field).read_rules(recipe))
    found = compare(texts[0], texts[1], recipe)
    if as_json:
        click.echo(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        names = ids or files
        _show(found, names, max_diff, color=has_color(sys.stdout))


def _show_of_run(run: Path, ids: tuple[str, str], inputs: Path | None, max_diff: int | None, *, as_json: bool) -> None:
    from likewise.runs.pair import compare_in_run
    from likewise.stages.verify import needed

    found, evidence = compare_in_run(run, ids, inputs=inputs)
    if as_json:
        click.echo(json.dumps({**found.to_dict(), "evidence": evidence}, ensure_ascii=False))
        return
    _show(found, ids, max_diff, color=has_color(sys.stdout))
    told = "the run removed neither document for the other"
    if evidence is not None:
        required, differs = evidence.get("required"), evidence.get("differs_in")
        told = f"{evidence['doc_id']} was removed for {evidence['kept_id']}: {evidence['measure']} "
        told += f"{evidence['similarity']:.4f}"
        if required is not None:
            told += f", required {needed(found.recipe, required, evidence.get('penalty'))}"
        told += "" if differs is None else f", differs in {differs or 'other words'}"
    click.echo(f"evidence: {printable(told)}")


def _read_text(path: Path) -> str:
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"byte {error.start} is not UTF-8; convert the file", str(path)) from error
    if "\0" in text:
        raise InvalidInput("the file contains NUL bytes: it is binary, not text", str(path))
    return text


def _find(files: tuple[str, ...], ids: tuple[str, str], rules: "ReadRules") -> list[str]:
    from likewise.io.inputs import find_inputs, find_texts
    from likewise.io.output.whole import scratch_directory

    with scratch_directory() as work:
        return find_texts(find_inputs(files, rules).files, ids, work)


def _show(found: "Comparison", names: Sequence[str], max_diff: int | None, *, color: bool) -> None:
    from likewise.recipe.methods import Exact, SimHashDistance
    from likewise.recipe.rules import BYTE_TOKENS

    measures, recipe = found.measures, found.recipe

    def say(text: str = "") -> None:
        click.echo(text, color=color)

    asked = f"{recipe.measure} >= {recipe.threshold}"
    if recipe.short_margin is not None:
        sums = f"{recipe.threshold} + {recipe.short_margin} / sqrt({min(measures.num_features)})"
        sums += f" + {found.penalty:.4f} for different names" if found.penalty else ""
        asked = f"{recipe.measure} >= {found.required:.4f} ({sums})"
    if recipe.identifiers is not None:
        asked += " and agreeing numbers, model numbers, sizes and colors"
    if isinstance(recipe.sketch, SimHashDistance):
        asked = f"Hamming distance <= {recipe.sketch.within}"
    elif isinstance(recipe.sketch, Exact):
        asked = "equal normalized texts"
    say(f"A = {printable(names[0])}")
    say(f"B = {printable(names[1])}")
    say(f"{'match' if found.matches else 'no match'} by {asked}")
    if found.differs_in is not None:
        say(f"A differs from B in: {found.differs_in or 'other words'}")
    say()
    for name, value in (
        ("jaccard", measures.jaccard),
        ("containment of A in B", measures.containment_a_in_b),
        ("containment of B in A", measures.containment_b_in_a),
        ("cosine", measures.cosine),
        ("dice", measures.dice),
        ("overlap", measures.overlap),
        ("edit", measures.edit),
        ("lcs", measures.lcs),
        ("hamming", measures.hamming),
        ("jaccard, estimated by MinHash", measures.minhash_estimate),
    ):
        say(f"{value:8.4f}  {name}")
    for name, value in (measures.filters or {}).items():
        say(f"{value:8.4f}  {name} of the Bloom filter bits")
    say()
    ours, theirs = measures.num_features
    say(f"{measures.num_shared:,} shared features ({recipe.shingle} tokens each); {ours:,} in A, {theirs:,} in B")
    for name, shape in zip("AB", measures.shapes, strict=True):
        if shape != "full":
            say(f"{name} is {shape}")
    in_a, in_b = measures.num_units
    bound = "" if measures.is_alignment_exact else " (bounds: at most these edits, at least this much in common)"
    edits, common = counted(measures.edit_distance, "edit"), counted(measures.common_length, measures.unit)
    say(f"{edits}; {common} in common in the same order out of {in_a:,} and {in_b:,}{bound}")
    say(f"MinHash: {measures.equal_slots} of {measures.num_slots} slots equal")
    say(f"SimHash: {measures.distance} of {measures.bits} bits differ")
    _show_fingerprints(found, color=color)
    if not found.alignment and recipe.tokens in BYTE_TOKENS:
        return
    say()
    for line in diff_lines(found.alignment, max_diff, more="; see --max-diff"):
        say(line)


def _show_fingerprints(found: "Comparison", *, color: bool) -> None:
    """Print 64 bits per line, the highest first, with a mark under each differing bit."""
    bits = found.measures.bits
    first, second = (f"{value:0{bits}b}" for value in found.measures.fingerprints)
    for start in range(0, bits, 64):
        left, right = first[start : start + 64], second[start : start + 64]
        marks = "".join("^" if x != y else " " for x, y in zip(left, right, strict=True))
        for name, row in (("A", left), ("B", right)):
            shown = "".join(
                click.style(bit, fg="red", bold=True) if mark == "^" else bit
                for bit, mark in zip(row, marks, strict=True)
            )
            click.echo(f"  {name}  {shown}", color=color)
        click.echo(f"     {marks}".rstrip())


def diff_lines(alignment: "tuple[Stretch, ...]", max_diff: int | None, *, more: str = "") -> list[str]:
    """Return the merged texts: words only in A as [-...-], only in B as {+...+}, long equal stretches shortened."""
    # `more` is a hint on how to see the differences that are omitted.
    if all(part.is_same for part in alignment):
        is_equal = all(part.a == part.b for part in alignment)
        return ["no differences" if is_equal else "only differences that the recipe ignores"]
    pieces: list[str] = []
    num_shown = 0
    for number, part in enumerate(alignment):
        if part.is_same:
            pieces.append(_shortened(part.a, is_first=number == 0, is_last=number == len(alignment) - 1))
            continue
        if num_shown == max_diff:
            left = sum(not part.is_same for part in alignment[number:])
            pieces.append(f"\n({counted(left, 'more difference')}{more})")
            break
        num_shown += 1
        if part.a:
            pieces.append(click.style(f"[-{_lines(part.a)}-]", fg="red"))
        if part.b:
            pieces.append(click.style(f"{{+{_lines(part.b)}+}}", fg="green"))
    return "".join(pieces).split("\n")


def _shortened(text: str, *, is_first: bool, is_last: bool) -> str:
    if len(text) <= 2 * _CONTEXT + 5:
        return _lines(text)
    start = "" if is_first else _lines(text[:_CONTEXT])
    end = "" if is_last else _lines(text[-_CONTEXT:])
    return f"{start} [...] {end}"


def _lines(text: str) -> str:
    return "\n".join(printable(line) for line in text.replace("\r\n", "\n").split("\n"))
