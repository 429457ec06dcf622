"""What a summary reports of web archives: which reader extracted their pages, and the number of records."""

from likewise.io.archives.warc import WarcFile
from likewise.io.inputs import InputFile, Inputs


def provenance(found: Inputs) -> dict[str, object]:
    """Return what decides on the texts of web archives; nothing where there are none.

    Raises
    ------
    MissingExtra
        If what reads them is not installed.
    """
    archives = [file for file in found.files if isinstance(file, WarcFile)]
    return {"extractors": archives[0].provenance()} if archives else {}


def record_counts(file: InputFile) -> dict[str, object]:
    """Return the counts of an archive's records for its entry in the summary; nothing for other files."""
    return file.record_counts() if isinstance(file, WarcFile) else {}
