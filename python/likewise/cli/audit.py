"""``likewise audit``: the measured recall and precision of a run."""

import errno
import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options.commands import MEMORY, READ, WRITE, LongCommand, flag, option
from likewise.cli.options.recipe import QUIET, count, index_input_options, judging_options, take_recipe, take_run
from likewise.errors import InvalidParameter, counted
from likewise.progress import printable, shown

if TYPE_CHECKING:
    from likewise.runs.audit import Audit, OutputAudit, PartsAudit
    from likewise.runs.audit.recall import Recall

# Maximum number of missed pairs shown; the certificate has more.
_MOST_SHOWN = 10

# Parameters that apply to a finished run, which stores all others; and those that apply to both kinds of audit.
_OF_RUNS = ("out", "inputs", "num_sampled", "seed", "least_recall", "weights", "stop_words", "dictionary", "output")
_OF_BOTH = (*_OF_RUNS, "threads", "memory", "quiet", "as_json")


@click.command("audit", cls=LongCommand)
@click.argument("out", metavar="[OUT]", required=False, type=click.Path(path_type=Path))
@option(
    "--inputs PATH",
    "The documents that another tool read. With OUT: new location of the inputs, if they were moved. Repeatable.",
    multiple=True,
)
@option("--kept PATH", "The documents that another tool kept. Repeatable.", multiple=True)
@option(
    "--removed FILE", "Table of the removed documents (.csv, .tsv, .jsonl, .parquet): id, and optionally kept_id.", READ
)
@option(
    "--clusters FILE",
    "Table of clusters: id, cluster. Each removed document is compared with the kept ones of its cluster.",
    READ,
)
@option(
    "--sample N",
    "Number of documents to compare with all others; fewer if most share a template. With all documents the "
    "result is exact.",
    count,
    "5000",
    to="num_sampled",
)
@option("--seed N", "Seed of the sample.", int, 0)
@option("--least-recall P", "Fail unless the lower bound of each recall is at least P.", click.FloatRange(0.0, 1.0))
@judging_options
@index_input_options
@option("-o --output FILE", "Output file.  [default: OUT/audit.json; without OUT: audit.json]", WRITE)
@MEMORY
@flag("--json", "Print the results as JSON to stdout.", to="as_json")
@QUIET
@click.pass_context
def command(
    ctx: click.Context,
    /,
    out: Path | None,
    least_recall: float | None,
    output: Path | None,
    **options: Any,
) -> int:
    """Measure the recall and precision of a run, or of the output of another tool.

    OUT is the output directory of likewise dedup. A random sample of documents (removed, kept but similar to another,
    and others) is compared exactly with all documents, without sketches. The sample gives the share of matching pairs
    that the run compared and the share of removable documents that it removed, with 95% intervals. All removals are
    measured again and checked against the threshold, the kept documents, the inputs and the kept files.

    A run by Hamming distance alone did not compare texts: the audit reports which removals are within the radius, and
    the similarity of their texts.

    For a run of likewise repeats, every removed part is compared with the one that its evidence names, and the kept
    files with the inputs without these parts. Nothing is sampled.

    Without OUT, --inputs and --kept name the documents that another tool read and kept, and --threshold, --preset or
    --recipe states what a match is. The audit then reports the share of removed documents that match no kept one, the
    worst of them, and the duplicates that were left. Documents are identified by their ids, or by their texts if there
    are no ids.

    Results and the SHA-256 digests of inputs and outputs are written to OUT/audit.json, or to audit.json. If you may
    only read OUT, they are only printed, unless you name a file with -o.

    \b
    Exit status: 0 if all checks pass; 1 if a check fails or --least-recall is not reached.

    \b
    Examples:
      likewise audit out
      likewise audit out --least-recall 0.9 --json | jq .pair_recall
      likewise audit --inputs articles.jsonl --kept theirs.jsonl --threshold 0.8 --shingle 5
      likewise audit --inputs a.jsonl --kept b.jsonl --clusters c.csv --threshold 0.8
    """
    from likewise.io.output.directory import AUDIT
    from likewise.io.output.summaries import is_over_parts, read_summary
    from likewise.runs.audit import PartsAudit, check_target, parts_lines, write_certificate

    if least_recall is not None and math.isnan(least_recall):
        raise InvalidParameter("least_recall", "nan given; it must be a number from 0 to 1")
    as_json, quiet = options.pop("as_json"), options.pop("quiet")
    _check_kind(ctx, out, options)
    is_of_parts = out is not None and is_over_parts(read_summary(out))
    target = output if output is not None else Path(AUDIT) if out is None else out / AUDIT
    # A run may be audited by users who may only read it.
    is_written = output is not None or os.access(target.parent, os.W_OK)
    if is_written:
        check_target(target)
    found: Audit | OutputAudit | PartsAudit
    if out is not None and is_of_parts:
        found = _audited_parts(ctx, out, options, quiet=quiet)
        lines = [found.certificate["run"]["verification"], "", *_check_lines(found), "", *parts_lines(found)]
        least_recall = None
    elif out is not None:
        found = _audited_run(out, options, quiet=quiet)
        lines = _lines(found)
    else:
        found = _audited_output(options, quiet=quiet)
        lines = _output_lines(found)
    if is_written:
        write_certificate(found.certificate, target)
    short = []
    if least_recall is not None:
        assert not isinstance(found, PartsAudit)
        short = _not_proved(found.recall, least_recall)
    if as_json:
        json.dump(found.certificate, sys.stdout, ensure_ascii=False, indent=2)
        sys.stdout.write("\n")
    elif not quiet:
        for line in lines:
            click.echo(printable(line))
        told = "wrote" if is_written else "no right to write"
        click.echo(f"{told} {printable(str(target))}{'' if is_written else '; -o FILE writes the results'}", err=True)
    for line in short:
        click.echo(line, err=True)
    return 0 if found.passed and not short else 1


def _check_kind(ctx: click.Context, out: Path | None, options: dict[str, Any]) -> None:
    """Raise InvalidParameter for missing options, or options that do not apply to what is audited."""
    from click.core import ParameterSource

    if out is None:
        if not options["kept"]:
            raise InvalidParameter("kept", "give OUT, or the documents that another tool kept")
        if not options["inputs"]:
            raise InvalidParameter("inputs", "give the documents that the tool read")
        if all(options[name] is None for name in ("threshold", "within", "preset", "recipe_file", "method")):
            raise InvalidParameter("threshold", "state what a match is: the threshold that the tool used, or auto")
        return
    for name in ctx.params:
        if name not in _OF_BOTH and ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            raise InvalidParameter(name, "applies to the output of another tool; remove OUT, or this option")
    if len(options["inputs"]) > 1:
        raise InvalidParameter("inputs", "with OUT, give one directory")


def _audited_run(out: Path, options: dict[str, Any], *, quiet: bool) -> "Audit":
    from likewise.runs.audit import audit

    names = ("num_sampled", "seed", "stop_words", "dictionary", "threads", "memory")
    given = {name: options[name] for name in names}
    for name, path in (("inputs", next(iter(options["inputs"]), None)), ("weights", options["weights"])):
        given[name] = None if path is None else Path(path)
        if path is not None and not Path(path).exists():
            raise FileNotFoundError(errno.ENOENT, "no such file or directory", path)
    with shown(not quiet) as report:
        return audit(out, progress=report, **given)


def _audited_parts(ctx: click.Context, out: Path, options: dict[str, Any], *, quiet: bool) -> "PartsAudit":
    from click.core import ParameterSource

    from likewise.runs.audit import audit_parts

    for name in ("num_sampled", "seed", "least_recall", "memory"):
        if ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE:
            raise InvalidParameter(name, "does not apply to a run of likewise repeats")
    files = {name: options[name] for name in ("weights", "stop_words", "dictionary")}
    paths = {name: None if path is None else Path(path) for name, path in files.items()}
    inputs = next(iter(options["inputs"]), None)
    with shown(not quiet) as report:
        return audit_parts(
            out,
            inputs=None if inputs is None else Path(inputs),
            threads=options["threads"],
            progress=report,
            **paths,
        )


def _audited_output(options: dict[str, Any], *, quiet: bool) -> "OutputAudit":
    from likewise.runs.audit import audit_output

    own = {name: options.pop(name) for name in ("inputs", "kept", "removed", "clusters", "num_sampled", "seed")}
    recipe, run = take_recipe(options, "default", quiet=quiet), take_run(options)
    with shown(not quiet) as report:
        return audit_output(recipe=recipe, run=run, progress=report, **own)


def _not_proved(recall: "Recall", least: float) -> list[str]:
    both = {"pairs": recall.pairs, "removals": recall.removals}
    short = []
    for name, share in both.items():
        is_known = share.value == share.value
        if is_known and share.low < least:
            short.append(
                f"the recall of {name} is {share.value:.4f} with lower bound {share.low:.4f}; --least-recall requires "
                f"{least:g}"
            )
        elif not is_known and not share.is_exact and least > 0:
            # An exact count of zero pairs proves that none is missed; a sample without pairs proves nothing.
            short.append(
                f"the recall of {name} is unknown: the sample contains none; increase --sample to prove {least:g}"
            )
    return short


def _lines(found: "Audit") -> list[str]:
    facts, recall = found.certificate, found.recall
    lines = [facts["run"]["verification"], "", *_check_lines(found), *_sample_lines(found)]
    near = found.within_radius
    shares = {"recall: matching pairs compared": recall.pairs, "recall: duplicates removed": recall.removals}
    if near is not None:
        shares = {
            "recall: pairs within the radius": recall.pairs,
            "recall: documents within the radius": recall.removals,
            "removals within the radius": near,
        }
    elif found.precision is not None:
        shares["precision: correct removals"] = found.precision
    lines += [f"{name:36} {_share(share)}" for name, share in shares.items()]
    lines += _text_lines(found)
    kind = ("pair matches", "pairs match") if near is None else ("pair is", "pairs are")
    lines += ["", f"about {counted(round(recall.num_pairs), *kind)}{'' if near is None else ' within the radius'}"]
    lines += [f"about {num:,.0f} missed: {name}" for name, num in recall.by_stage.items() if num]
    if recall.num_overlooked:
        lines.append(f"about {counted(round(recall.num_overlooked), 'document')} kept that match an earlier one")
    missed = facts["missed_pairs"]
    if missed:
        lines += ["", f"missed pairs ({facts['num_missed_seen']:,} in the sample):"]
    for pair in missed[:_MOST_SHOWN]:
        stayed = ", both kept" if pair["both_stayed"] else ""
        lines.append(f"  {pair['doc_id_a']} and {pair['doc_id_b']}: {pair['similarity']:.4f}, {pair['stage']}{stayed}")
    if len(missed) > _MOST_SHOWN:
        lines.append("  ...")
    return lines


def _text_lines(found: "Audit") -> list[str]:
    """Return lines about the texts of the removals of a run that compared only fingerprints."""
    texts = found.certificate.get("text_similarity")
    if texts is None:
        return []
    num = len(found.text_similarity.jaccard) if found.text_similarity is not None else 0
    lines = [
        "",
        f"Jaccard similarity of the removed texts ({texts['features']}): median {texts['median']:.2f}, lowest "
        f"{texts['low']:.2f}, highest {texts['high']:.2f}",
        f"{texts['num_below_half']:,} of {counted(num, 'removal')} below 0.5; least similar:",
    ]
    return lines + [
        f"  {one['doc_id']} for {one['kept_id']}: {one['jaccard']:.4f}, distance {one['distance']}"
        for one in texts["least_similar"][:_MOST_SHOWN]
    ]


def _check_lines(found: "Audit | OutputAudit | PartsAudit") -> list[str]:
    lines = []
    for check in found.checks:
        mark = "ok  " if check.passed else "FAIL"
        failed = "" if check.passed else f": {check.num_failed:,} of {check.num_checked:,} failed"
        lines += [f"{mark} {check.name}{failed}", *(f"       {failure}" for failure in check.failures)]
    return lines


def _sample_lines(found: "Audit | OutputAudit") -> list[str]:
    sample = [f"  {len(one):,} of {one.num_documents:,} {one.name}" for one in found.strata]
    return ["", "sample, compared exactly with all documents:", *sample, ""]


def _output_lines(found: "OutputAudit") -> list[str]:
    """Return the lines that describe the audit of another tool's output."""
    from likewise.runs.audit.tools import removal_line

    facts = found.certificate
    estimated, by = facts["estimated"], "ids" if facts["identified_by"] == "id" else "texts"
    lines = [
        f"Matches are decided {facts['match']}.",
        f"{facts['num_kept']:,} of {counted(facts['num_documents'], 'document')} kept, found by their {by}.",
        *("", *_check_lines(found), *_sample_lines(found)),
        f"{'removed without a kept match':36} {_share(found.unmatched)}",
        f"{'recall: duplicates removed':36} {_share(found.recall.removals)}",
        f"{'recall: pairs not both kept':36} {_share(found.recall.pairs)}",
        "",
    ]
    if estimated["num_unmatched"] is not None:
        low, high = (round(limit * found.num_removed) for limit in (found.unmatched.low, found.unmatched.high))
        between = "" if found.unmatched.is_exact else f" ({low:,} to {high:,})"
        lines.append(
            f"about {estimated['num_unmatched']:,.0f}{between} of {found.num_removed:,} removed without a kept match"
        )
    if alone := facts["num_removed_with_all_copies"]:
        lines.append(
            f"{alone:,} of {facts['num_unmatched_seen']:,} in the sample match only documents that were removed too: "
            "no copy of them was kept"
        )
    lines.append(
        f"about {counted(round(estimated['num_left_documents']), 'document')} kept that match another kept one "
        f"(about {counted(round(estimated['num_left_pairs']), 'pair')})"
    )
    worst, left = facts["worst_removals"], facts["left_pairs"]
    if worst:
        lines += ["", f"worst removals ({facts['num_unmatched_seen']:,} without a match in the sample):"]
        lines += [f"  {removal_line(removal)}" for removal in worst[:_MOST_SHOWN]]
    if left:
        lines += ["", f"pairs left ({facts['num_left_seen']:,} in the sample):"]
        lines += [f"  {one['doc_id_a']} and {one['doc_id_b']}: {one['similarity']:.4f}" for one in left[:_MOST_SHOWN]]
    return lines


def _share(share: Any) -> str:
    if share.value != share.value:
        return "nothing to find" if share.is_exact else "unknown: the sample contains none"
    if share.is_exact:
        return f"{share.value:.4f} (all documents compared)"
    return f"{share.value:.4f} (95% interval: {share.low:.4f} to {share.high:.4f})"
