"""``likewise tune``: the recipe and threshold that fit labeled pairs."""

import itertools
import json
import os
import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.arrays import ColumnData
from likewise.cli.options.commands import WRITE, LongCommand, flag, option
from likewise.cli.options.recipe import INPUTS, OPTION_OF, QUIET, READING, input_options, take_run, take_word_lists
from likewise.cli.options.terminal import has_color
from likewise.errors import InvalidInput, InvalidParameter, LikewiseError, counted
from likewise.progress import printable, shown

if TYPE_CHECKING:
    from likewise.stages.sets import Estimate
    from likewise.tuning import Label, Proposal, Questions, Tuner

_MOST_CHARACTERS = 1200
# Maximum number of pairs shown per wanted answer, so that users who skip most pairs are not asked endlessly.
_MOST_SHOWN = 3


@click.command("tune", cls=LongCommand)
@INPUTS
@option(
    "--labels PAIRS",
    "Labeled pairs; with --ask, answers are added here.  [default: RECIPE.labels.csv, with --ask]",
    WRITE,
)
@flag("--ask", "Ask about pairs even if --labels is given.")
@option("--questions N", "Number of labels to ask for.", click.IntRange(min=1), 60)
@option("-o --out RECIPE", "Output file.", WRITE, Path("recipe.json"))
@option("--method", "Try only this method: minhash or simhash.  [default: both]", ("minhash", "simhash"))
@option(
    "--tokens",
    "Try only these tokens: auto, word, char, chinese, ...  [default: auto and char]",
    ("auto", "word", "char", "chinese", "sentence", "line", "paragraph", "user"),
)
@option("--weights own", "Use the weights of the tokens in --tokens-field.", ("own",))
@OPTION_OF["weight_scale"]
@OPTION_OF["tokenizer"]
@OPTION_OF["markup"]
@OPTION_OF["fold"]
@OPTION_OF["stop_words"]
@option("--sample N", "Number of documents to compare in full.", click.IntRange(min=20, max=4000), 1000)
@option("--seed N", "Seed of the sample and the questions.", int, 0)
@input_options
@QUIET
@flag("--json", "Print the proposal and all trials as JSON to stdout.", to="as_json")
def command(
    inputs: tuple[str, ...],
    labels: Path | None,
    ask: bool,
    questions: int,
    out: Path,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Choose a recipe and threshold from labeled pairs.

    --labels is a CSV or TSV file with the columns doc_id_a, doc_id_b and label (1 for duplicates, 0 otherwise), for
    example exported from the pages of likewise serve. Without --labels, pairs are shown in the terminal. Answer with y,
    n, s (skip), u (undo) or q (quit). Answers are saved in RECIPE.labels.csv; repeat the same command to continue.

    Writes a recipe file for --recipe, and reports precision, recall and F1 on held-out labels.

    \b
    Examples:
      likewise tune articles.jsonl --labels pairs.csv -o recipe.json
      likewise tune articles.jsonl -o recipe.json
      likewise dedup articles.jsonl -o out --recipe recipe.json
    """
    from likewise.io.output.whole import WholeFile
    from likewise.tuning import Labels, open_tuner, read_labels, write_recipe

    asks = ask or labels is None
    if asks and "-" in inputs:
        raise InvalidParameter(
            "labels",
            "questions need standard input, which is used for documents; read documents from files, or give --labels",
        )
    if asks and as_json:
        raise InvalidParameter("json", "cannot be combined with questions; answer them first, then use --labels")
    # An unwritable place fails here, before the work.
    WholeFile(out)
    path = labels or out.with_name(f"{out.stem}.labels.csv")
    _check_out(out, path)
    given = read_labels(path) if path.exists() or not asks else Labels([])
    if asks and given.unwritten:
        raise InvalidParameter(
            "ask",
            f"answers are added to {path}, which would lose {', '.join(given.unwritten)}; use a copy of the file "
            "without them",
        )
    rules = {name: options.pop(name) for name in ("markup", "fold", "stop_words", "tokenizer", "weight_scale")}
    rules = {name: value for name, value in rules.items() if value is not None}
    rules |= take_word_lists(rules)
    with (
        ExitStack() as bars,
        open_tuner(
            inputs,
            given,
            rules=rules,
            most_documents=options.pop("sample"),
            run=take_run(options),
            output=out,
            progress=bars.enter_context(shown(not quiet)),
            **options,
        ) as tuner,
    ):
        if asks:
            asked = tuner.questions()
            others = asked.take(given.labels)
            # Progress bars must not interfere with questions.
            bars.close()
            try:
                _ask(tuner, asked, others, path, questions)
            except KeyboardInterrupt:
                click.echo(f"\ninterrupted: {_answered(asked, questions, path)}", err=True)
                click.get_current_context().exit(130)
            given = Labels([*others, *asked.labels()], given.notes)
        try:
            proposal = tuner.propose(given)
        except InvalidInput as error:
            if not asks or not _is_enough(asked, questions) or asked.next_pair() is None:
                raise
            raise InvalidInput(f"{error}; --questions {_more(asked)} asks for more") from error
    write_recipe(proposal.recipe, out)
    if as_json:
        click.echo(json.dumps(proposal.to_dict(), ensure_ascii=False))
    elif not quiet:
        _show(proposal, inputs, out)


def _check_out(out: Path, labels: Path) -> None:
    """Raise if the recipe would overwrite a file that is not a recipe: labels are hours of work."""
    from likewise.recipe.recipe import Recipe

    if os.path.realpath(out) == os.path.realpath(labels):
        raise InvalidParameter("out", f"{out} is the file of labels; choose another file for the recipe")
    if not out.exists() or not out.stat().st_size:
        return
    try:
        Recipe.from_file(out)
    except LikewiseError as error:
        raise InvalidInput("this file exists and is not a recipe; choose another file with -o", str(out)) from error


def _ask(tuner: "Tuner", asked: "Questions", others: "list[Label]", path: Path, wanted: int) -> None:
    """Show pairs and read answers until there are enough answers or no more pairs."""
    from likewise.tuning import write_labels

    color = has_color(sys.stdout)
    click.echo(
        f"{tuner.num_sampled:,} of {tuner.num_documents:,} documents are compared; their pairs by similarity "
        f"({tuner.first_name}):"
    )
    rows = [(low, count) for low, count in tuner.distribution() if low >= 0.1]
    most = max((count for _, count in rows), default=0)
    for low, count in rows:
        # Counts differ by orders of magnitude, so a bar has one mark per binary digit.
        click.echo(f"  {low:.2f} {count:>9,} {'#' * count.bit_length() if most else ''}")
    click.echo(
        f"Are these two duplicates for your purpose? y yes, n no, s skip, u undo, q quit. Answers are saved in {path}."
    )
    history: list[int] = []
    while not _is_enough(asked, wanted) and (pair := asked.next_pair()) is not None:
        ids = [tuner.doc_id(place) for place in asked.pairs[pair].tolist()]
        said_yes = [label.is_duplicate for label in asked.labels()]
        so_far = f"yes {said_yes.count(True)}, no {said_yes.count(False)}"
        if said_yes.count(None):
            so_far += f", skipped {said_yes.count(None)}"
        click.echo(
            f"\n--- {asked.num_answered + 1} of {wanted} ({so_far}): {printable(ids[0])}  and  {printable(ids[1])}"
        )
        for line in _side_by_side(tuner.text(ids[0]), tuner.text(ids[1])):
            click.echo(line, color=color)
        said = _answer()
        if said == "q":
            break
        if said == "u":
            if history:
                asked.forget(history.pop())
            else:
                click.echo("no answer from this session to undo; earlier answers stay in the file")
        else:
            asked.answer(pair, {"y": True, "n": False, "s": None}[said])
            history.append(pair)
        write_labels([*others, *asked.labels()], path)
    if asked.num_answered < wanted:
        click.echo(_answered(asked, wanted, path))


def _is_enough(asked: "Questions", wanted: int) -> bool:
    """Return whether enough pairs were answered, or so many shown that most were skipped."""
    return asked.num_answered >= wanted or len(asked.answers) >= _MOST_SHOWN * wanted


def _answered(asked: "Questions", wanted: int, path: Path) -> str:
    shown, goes_on = "", "repeat the command to continue"
    if asked.next_pair() is None:
        goes_on = "there are no more pairs"
    elif _is_enough(asked, wanted):
        shown = f", of {len(asked.answers):,} shown"
        goes_on = f"the proposal uses these; --questions {_more(asked)} asks for more"
    return f"{asked.num_answered} of {wanted} answered{shown}, saved in {path}; {goes_on}."


def _more(asked: "Questions") -> int:
    """Return a number of questions that asks for more answers."""
    return max(asked.num_answered, -(-len(asked.answers) // _MOST_SHOWN)) + 40


def _answer() -> str:
    """Return y, n, s, u or q; q at the end of the input."""
    while True:
        click.echo("y/n/s/u/q? ", nl=False)
        line = sys.stdin.readline()
        if not line:
            click.echo()
            return "q"
        said = line.strip().lower()[:1]
        if said and said in "ynsuq":
            return said
        click.echo("answer y, n, s, u or q")


def _side_by_side(a: ColumnData, b: ColumnData) -> list[str]:
    """Return two texts merged with their differences marked, truncated to a readable length."""
    from likewise.cli.compare import diff_lines
    from likewise.measures.comparison import compare

    lines = diff_lines(compare(a[:20_000], b[:20_000]).alignment, 12)
    shown: list[str] = []
    length = 0
    for line in lines:
        if length + len(line) > _MOST_CHARACTERS:
            return [*shown, line[: max(0, _MOST_CHARACTERS - length)] + " [...]"]
        shown.append(line)
        length += len(line)
    return shown


def _show(proposal: "Proposal", inputs: tuple[str, ...], out: Path) -> None:
    chosen = proposal.chosen
    click.echo(f"{counted(proposal.num_duplicates, 'duplicate')} and {counted(proposal.num_others, 'other')} labeled")
    click.echo()
    click.echo("best recipes              at  precision  recall    F1   (on the labels used to choose them)")
    for one in proposal.tried[:8]:
        mark = "*" if one is chosen else " "
        found = one.on_labels
        click.echo(
            f"{mark} {_setting(one.to_dict()):>22}  {found.precision.value:9.3f} {found.recall.value:7.3f} "
            f"{found.f1.value:5.3f}  {one.candidate.name}"
        )
    if chosen not in proposal.tried[:8]:
        click.echo(f"* {_setting(chosen.to_dict()):>22}  {chosen.candidate.name}")
    _show_radii(proposal)
    click.echo()
    click.echo("on held-out labels (expected for similar pairs, with 95% intervals):")
    for name in ("precision", "recall", "f1"):
        click.echo(f"  {name:<9} {_interval(getattr(proposal.held_out, name))}")
    for note in proposal.notes:
        click.echo(f"note: {printable(note)}", err=True)
    click.echo()
    click.echo(f"{chosen.candidate.name}; {_setting(chosen.to_dict())}: written to {out}")
    words = ["likewise", "dedup", *inputs, *_reading_words(), "-o", _free_name(), "--recipe", str(out)]
    click.echo(f"  {printable(shlex.join(words))}")


def _show_radii(proposal: "Proposal") -> None:
    """Show what each radius finds, by the best recipe for the user's own tokens that compares distances."""
    from likewise.recipe.rules import USER_TOKENS

    for one in proposal.tried:
        if one.candidate.measure == "hamming" and one.candidate.tokens == USER_TOKENS:
            click.echo(f"\n{one.candidate.name}:\n   k  precision  recall")
            for setting, precision, recall in reversed(one.curve):
                click.echo(f"  {one.candidate.radius(setting):>2}  {precision:9.3f} {recall:7.3f}")
            return


def _free_name() -> str:
    """Return a name for an output directory that does not exist."""
    return next(
        name for name in itertools.chain(["out"], map("out-{}".format, itertools.count(2))) if not os.path.lexists(name)
    )


def _reading_words() -> list[str]:
    """Return the options of this call that `dedup` needs too: reading options, and stop words, which recipes lack."""
    context = click.get_current_context()
    words = []
    for param in context.command.params:
        name = param.name or ""
        is_given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if is_given and name in (*READING, "stop_words"):
            given = context.params[name]
            for value in given if isinstance(given, tuple) else (given,):
                words += [param.opts[-1], str(value)]
    return words


def _setting(fields: dict[str, Any]) -> str:
    return f"threshold {fields['threshold']:.2f}" if "threshold" in fields else f"within {fields['within']}"


def _interval(found: "Estimate") -> str:
    return "unknown" if found.value != found.value else f"{found.value:.3f}  ({found.low:.3f} to {found.high:.3f})"
