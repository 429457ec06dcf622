"""``likewise index create`` and ``erase``."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.index.target import Target, ids_in, on_index
from likewise.cli.options.commands import FOLDER, PLACE, READ, LongCommand, option
from likewise.cli.options.recipe import QUIET, recipe_line, search_options, take_recipe
from likewise.errors import InvalidInput, InvalidParameter, StoreError, counted

if TYPE_CHECKING:
    from likewise.recipe.recipe import Recipe


@click.command("create", cls=LongCommand)
@search_options
@option(
    "--like RUN", "Use the recipe of a dedup run (its output directory), with its chosen threshold and weights.", FOLDER
)
@option(
    "--store",
    "What to store per document: sketch, shingles or text.  [default: sketch for Hamming-only recipes, otherwise "
    "shingles]",
    ("sketch", "shingles", "text"),
)
@option("--ttl SECONDS", "Expire documents after this time.  [default: never]", click.IntRange(1))
@option(
    "--ttl-from",
    "With --ttl: count the age of a document from its arrival, or from that of its group's newest duplicate, "
    "which is kept in its place. With --url: first_seen only.  [default: first_seen]",
    ("first_seen", "last_seen"),
)
@option(
    "--expected N",
    "With --url: expected number of documents, which determines the size of tables.  [default: 1000000]",
    click.IntRange(1),
)
@option(
    "--partitions N",
    "With --url: number of partitions, which the nodes of a cluster share.  [default: 1 on a server, 64 on a cluster]",
    click.IntRange(1, 1024),
)
@option(
    "--durability",
    "With --url: answer when the masters have the writes, or when a replica of each has confirmed them.  "
    "[default: written]",
    ("written", "replicated"),
)
@on_index
@QUIET
def create(like: Path | None, on: Target, quiet: bool, **options: Any) -> None:
    """Create an empty index with a recipe.

    PATH is a new directory. The recipe of an index, with its weight tables and word lists, cannot be changed later. The
    method is simhash or minhash; the first of several copies is kept. --store sets what is stored per document: sketch
    (Hamming-only recipes: the fingerprint, and the features of short texts), shingles (all features, to measure
    similarity) or text (compressed text).

    With --url, the index is on a server or on all nodes of a cluster. All clients may create the same index at startup.
    --expected, --partitions and --durability require --url and cannot be changed later. In a directory, each index add
    chooses its own durability.

    The default recipe is the preset online: unweighted word 3-grams, Jaccard similarity 0.55, higher for short
    documents. Use --like to take the threshold and weights that a run chose from a sample.

    \b
    Examples:
      likewise index create seen.lw --threshold 0.8
      likewise index create seen.lw --like run
      likewise index create seen.lw --recipe run/summary.json --store text
      likewise index create --url redis://localhost:6379/0 --method simhash --within 3 --expected 50000000
    """
    own = {name: options.pop(name) for name in ("store", "ttl", "ttl_from")}
    shared = {name: options.pop(name) for name in ("expected", "partitions", "durability")}
    given = [name for name, value in shared.items() if value is not None]
    if on.url is None and given:
        raise InvalidParameter(given[0], "requires --url")
    is_file = options["recipe_file"] is not None
    recipe = take_recipe(options, quiet=quiet) if like is None else _recipe_of(like, options)
    if not is_file:
        # Containment keeps the longest document by default in a run; an index supports only the order of arrival.
        recipe = recipe.replace(keep="first")
    if recipe.needs_counting:
        raise InvalidParameter(
            "weights", "an index needs a precomputed weight table; create one with `likewise weights`"
        )
    if on.path and Path(on.path).exists():
        raise InvalidInput("already exists; choose a new directory", on.path)
    with on.open(recipe, **own, **shared) as index:
        if not quiet:
            click.echo(recipe_line(index.recipe.resolve().to_dict()), err=True)
            # Never print the URL of a server: it may contain a password.
            place = on.path or f"{index.place}, with {counted(len(index), 'document')}"
            click.echo(f"recipe {index.recipe.recipe_id}; index in {place}", err=True)


def _recipe_of(run: Path, options: dict[str, Any]) -> "Recipe":
    from likewise.batch.read.resume import recipe_of_run

    for name in sorted(options):
        if options.pop(name) not in (None, ()):
            raise InvalidParameter(name, "cannot be combined with --like, which uses the whole recipe of a run")
    recipe = recipe_of_run(run)
    if recipe.needs_counting:
        raise InvalidParameter(
            "like",
            f"{run} counted its own weights, and its directory recipe, which stores them, is missing; repeat the run, "
            "or use --recipe and --weights TABLE",
        )
    return recipe


@click.command("erase", cls=LongCommand)
@option("--ids FILE", "Ids, one per line; - for standard input.", to="ids_file", required=True)
@option("--key-file FILE", "Key of the digests in the certificate: all bytes of the file, 16 to 64.", READ)
@option("--certificate FILE", "Write the certificate. Requires --key-file.", PLACE)
@on_index
@QUIET
def erase(ids_file: str, key_file: Path | None, certificate: Path | None, on: Target, quiet: bool) -> None:
    """Erase documents from the files of an index.

    Removes the documents in the same way as index remove, then overwrites or deletes all of their data in the files of
    the index: ids, texts, features, sketches and hashes. Unknown ids are not an error. The command fails if another
    process reads the index for more than 10 seconds; run it again. An interrupted erasure is completed by running the
    command again.

    --certificate writes a JSON file without ids. For each id, it contains a digest that only the owner of the key can
    compute, and whether a document was erased or absent. It also lists what was not erased, such as snapshots and
    backups.

    \b
    Examples:
      head -c 32 /dev/urandom > erasure.key
      likewise index erase seen.lw --ids ids.txt --key-file erasure.key --certificate erased.json
    """
    from likewise.index.erasing import NOT_ON_A_SERVER, check_key
    from likewise.io.output.whole import WholeFile

    if on.url is not None:
        raise StoreError(NOT_ON_A_SERVER)
    if (key_file is None) != (certificate is None):
        raise click.UsageError("--certificate and --key-file must be given together.")
    key = b"" if key_file is None else key_file.read_bytes()
    if key_file is not None:
        try:
            check_key(key)
        except InvalidParameter as error:
            raise InvalidInput(f"the key {error.message}", str(key_file)) from error
    ids = ids_in(ids_file)
    with on.open() as index:
        if certificate is None:
            erasure = index.erase(ids)
        else:
            _check_target(certificate, Path(on.path))
            whole = WholeFile(certificate)
            with whole.named_errors():
                try:
                    # Created before anything is erased, so that an unwritable certificate fails early.
                    target = whole.unfinished
                    # Written before the erasure is marked as finished, so that a kill cannot lose it.
                    erasure = index.erase(
                        ids, on_erased=lambda erasure: _write(whole, target, erasure.certificate(key))
                    )
                finally:
                    whole.discard()
    if not quiet:
        absent = f"; {counted(len(erasure.absent), 'id')} not in the index" if erasure.absent else ""
        promoted = f"; {counted(len(erasure.promoted), 'duplicate')} now kept" if erasure.promoted else ""
        moved = f"; {counted(len(erasure.moved), 'duplicate')} reassigned" if erasure.moved else ""
        click.echo(f"{counted(len(erasure.erased), 'document')} erased{absent}{promoted}{moved}", err=True)


def _check_target(certificate: Path, index: Path) -> None:
    if certificate.exists():
        raise InvalidInput("already exists; choose a new file for the certificate", str(certificate))
    if index.resolve() in certificate.resolve().parents:
        raise InvalidInput("is inside the index; choose a file outside it for the certificate", str(certificate))


def _write(whole: Any, target: Path, certificate: dict[str, Any]) -> None:
    text = json.dumps(certificate, indent=2, ensure_ascii=False) + "\n"
    try:
        target.write_text(text, encoding="utf-8", newline="\n")
        whole.finish()
    except OSError:
        # The documents are erased, so the certificate must not be lost with the file.
        sys.stdout.write(text)
        raise
