"""``likewise index erase``: erase documents from all files of an index."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from likewise.cli.index.documents import ids_in
from likewise.cli.index.target import open_index, split_target, target_options
from likewise.cli.options.commands import PLACE, READ, LongCommand, option
from likewise.cli.options.recipe import QUIET
from likewise.errors import counted

_HELP = """Erase documents from the files of an index.

Removes the documents in the same way as index remove, then overwrites or deletes all of their data in the files of the
index: ids, texts, features, sketches and hashes. Unknown ids are not an error. The command fails if another
process reads the index for more than 2 seconds; run it again. An interrupted erasure is completed by running the
command again.

--certificate writes a JSON file without ids. For each id, it contains a digest that only the owner of the key can
compute, and whether a document was erased or absent. It also lists what was not erased, such as snapshots and backups.

\b
Examples:
  head -c 32 /dev/urandom > erasure.key
  likewise index erase seen.lw --ids ids.txt --key-file erasure.key --certificate erased.json
"""


@click.command("erase", cls=LongCommand, help=_HELP)
@click.argument("places", nargs=-1, metavar="PATH")
@option("--ids FILE", "Ids, one per line; - for standard input.", to="ids_file", required=True)
@option("--key-file FILE", "Key of the digests in the certificate: all bytes of the file, 16 to 64.", READ)
@option("--certificate FILE", "Write the certificate. Requires --key-file.", PLACE)
@target_options
@QUIET
def command(
    places: tuple[str, ...],
    ids_file: str,
    key_file: Path | None,
    certificate: Path | None,
    url: str | None,
    prefix: str | None,
    quiet: bool,
) -> None:
    """Run the command."""
    from likewise.errors import InvalidInput, InvalidParameter, StoreError
    from likewise.index.erasing import NOT_ON_A_SERVER, check_key
    from likewise.io.output.whole import WholeFile

    if url is not None:
        raise StoreError(NOT_ON_A_SERVER)
    path, _ = split_target(places, url)
    if (key_file is None) != (certificate is None):
        raise click.UsageError("--certificate and --key-file must be given together.")
    key = b"" if key_file is None else key_file.read_bytes()
    if key_file is not None:
        try:
            check_key(key)
        except InvalidParameter as error:
            raise InvalidInput(f"the key {error.message}", str(key_file)) from error
    ids = ids_in(ids_file)
    with open_index(path, url, prefix) as index:
        if certificate is None:
            erasure = index.erase(ids)
        else:
            _check_target(certificate, Path(path))
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
    from likewise.errors import InvalidInput

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
