"""``likewise audit``: what a run missed and what it wrongly took, measured."""

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.checks import counted
from likewise.cli.options.memory_option import MEMORY
from likewise.cli.options.recipe import MOVED_INPUTS, QUIET, THREADS, count
from likewise.cli.options.terminal import printable
from likewise.progress import shown

if TYPE_CHECKING:
    from likewise.runs.audit import Audit

# Missed pairs that are shown; the certificate has more.
_MOST_SHOWN = 10

_HELP = """Measure the recall and precision of a run.

OUT is the output directory of likewise dedup. A random sample of documents (removed, kept but similar to another, and
others) is compared exactly with all documents, without sketches. The sample gives the share of matching pairs that the
run compared and the share of removable documents that it removed, with 95 % intervals. All removals are measured again
and checked against the threshold, the kept documents, the inputs and the kept files.

Results and the SHA-256 digests of inputs and outputs are written to OUT/audit.json.

\b
Exit status: 0 if all checks pass; 1 if a check fails or --least-recall is not proven.

\b
Examples:
  likewise audit out
  likewise audit out --sample 20000 --seed 7
  likewise audit out --least-recall 0.9 --json | jq .pair_recall
"""


@click.command("audit", help=_HELP)
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@click.option(
    "--sample",
    "num_sampled",
    type=count,
    default="5000",
    show_default=True,
    metavar="N",
    help="Number of documents to compare with all others; fewer if most share a template. With all documents the "
    "result is exact.",
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of the sample.")
@click.option(
    "--least-recall",
    type=click.FloatRange(0.0, 1.0),
    metavar="P",
    help="Fail unless the lower bound of each recall is at least P.",
)
@MOVED_INPUTS
@click.option(
    "--weights",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Weight table or lexicon used by the run. Weights that the run counted are counted again.",
)
@click.option(
    "--stop-words",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Stop words used by the run.",
)
@click.option(
    "--dictionary",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Dictionary used by the run.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Output file.  [default: OUT/audit.json]",
)
@THREADS
@MEMORY
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON to stdout.")
@QUIET
def command(out: Path, least_recall: float | None, output: Path | None, **options: Any) -> int:  # noqa: ANN401
    """Run the command."""
    from likewise.errors import InvalidParameter
    from likewise.io.output.directory import AUDIT
    from likewise.io.output.summaries import read_summary
    from likewise.runs.audit import audit, check_target, write_certificate

    if least_recall is not None and math.isnan(least_recall):
        raise InvalidParameter("least_recall", "nan given; it must be a number from 0 to 1")
    as_json, quiet = options.pop("as_json"), options.pop("quiet")
    read_summary(out)
    target = out / AUDIT if output is None else output
    check_target(target)
    with shown(not quiet) as report:
        found = audit(out, progress=report, **options)
    write_certificate(found.certificate, target)
    short = [] if least_recall is None else _not_proved(found, least_recall)
    if as_json:
        json.dump(found.certificate, sys.stdout, ensure_ascii=False, indent=2)
        sys.stdout.write("\n")
    elif not quiet:
        for line in _lines(found):
            click.echo(printable(line))
        click.echo(f"wrote {printable(str(target))}", err=True)
    for line in short:
        click.echo(line, err=True)
    return 0 if found.passed and not short else 1


def _not_proved(found: "Audit", least: float) -> list[str]:
    both = {"pairs": found.recall.pairs, "removals": found.recall.removals}
    short = []
    for name, share in both.items():
        is_known = share.value == share.value
        if is_known and share.low < least:
            short.append(
                f"the recall of {name} is {share.value:.4f} with lower bound {share.low:.4f}; --least-recall requires "
                f"{least:g}"
            )
        elif not is_known and not share.is_exact and least > 0:
            # Where there is nothing to find, nothing is missed; but a sample that shows nothing does not prove it.
            short.append(
                f"the recall of {name} is unknown: the sample contains none; increase --sample to prove {least:g}"
            )
    return short


def _lines(found: "Audit") -> list[str]:
    facts, recall = found.certificate, found.recall
    lines = [facts["run"]["verification"], ""]
    for check in found.checks:
        mark = "ok  " if check.passed else "FAIL"
        failed = "" if check.passed else f": {check.num_failed:,} of {check.num_checked:,} failed"
        lines += [f"{mark} {check.name}{failed}", *(f"       {failure}" for failure in check.failures)]
    sample = [f"  {len(one):,} of {one.num_documents:,} {one.name}" for one in found.strata]
    lines += ["", "sample, compared exactly with all documents:", *sample, ""]
    for name, share in (
        ("recall: matching pairs compared", recall.pairs),
        ("recall: duplicates removed", recall.removals),
        ("precision: correct removals", found.precision),
    ):
        lines.append(f"{name:36} {_share(share)}")
    lines += ["", f"about {counted(round(recall.num_pairs), 'pair matches', 'pairs match')}"]
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


def _share(share: Any) -> str:  # noqa: ANN401
    if share.value != share.value:
        return "nothing to find" if share.is_exact else "unknown: the sample contains none"
    if share.is_exact:
        return f"{share.value:.4f} (all documents compared)"
    return f"{share.value:.4f} (95 % interval: {share.low:.4f} to {share.high:.4f})"
