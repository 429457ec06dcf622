"""How files are read; options that are not part of the recipe."""

from dataclasses import dataclass
from typing import BinaryIO, Literal, get_args

from likewise.batch.memory import MIN_MEMORY_BYTES
from likewise.batch.read.priority import fields_read
from likewise.batch.run import DuplicateIds, OnError, RunRules
from likewise.checks import check_choice, check_integer, num_threads, take_bytes
from likewise.errors import InvalidParameter
from likewise.io.source.bad_rows import DEFAULT_MAX_BAD_ROWS, bad_row_limit
from likewise.io.source.source import ReadRules
from likewise.io.source.tokens import TokenRules
from likewise.recipe.recipe import Recipe
from likewise.recipe.text import BYTE_TOKENS, USER_TOKENS

# Bound of memory for each thread that unpacks: it holds a packed frame and its plain bytes, of up to 8 MB.
_MEMORY_AN_UNPACKER = 128_000_000
Quote = Literal["none", "double"]
QUOTES: tuple[Quote, ...] = get_args(Quote)


@dataclass(frozen=True)
class FileRun:
    """How files are read, beside the recipe.

    Parameters
    ----------
    text_fields : tuple of str
        Dotted names of the text; several are joined with a newline.
    tokens_field : str, optional
        Dotted name of a list of tokens, or with weights of [token, weight] pairs, for recipes with tokens ``user``; in
        place of the text.
    id_field : str, optional
        Dotted name of the id; a row without it is bad. Where None: ``id`` if a row has it, else ``file:line``. Where
        ``"none"``: always ``file:line``.
    on_error : {"fail", "skip", "keep"}
        What to do about bad rows.
    duplicate_ids : {"fail", "allow"}
        Whether two documents may have one id.
    max_document_bytes : int
        A longer document is a bad row.
    threads : int, optional
        Threads at work at once; all processors if None.
    stdin : binary file, optional
        What ``-`` among the inputs means.
    file_format : str, optional
        What the inputs are, whatever their names say: jsonl, csv, tsv, parquet, arrow, text, warc, binary. Where None
        and the recipe has tokens ``bytes`` or ``chunks``: binary.
    delimiter : str, optional
        What stands between the fields of CSV.
    quote : {"none", "double"}, optional
        Whether a quote at the beginning of a field of CSV opens a quoted one. Where None: yes in CSV; in TSV only if
        all names of its header are quoted, or its first megabyte has fields with doubled quotes and no quote that
        opens a field is left open.
    max_bad_rows : int, float or str
        With `on_error` ``skip`` or ``keep`` the most bad rows of a run: a count (an integer, ``"100"``) or a share of
        all rows (a float from 0 to 1, ``"1%"``). More are an error.
    max_unpacked_bytes, max_unpack_ratio : int
        A gzip or zstd file that unpacks to more bytes, or more for each byte of its own, is refused.
    fields : tuple of str
        Fields that are read of each row, besides those of `keep`, for the outputs of a run.
    memory_bytes : float or str, optional
        Bound of anonymous memory, as bytes or as text such as ``"2GB"``, at least 256 MB; none if None. What does
        not fit lies on disk, and the answer is the same. Acts on runs that decide documents and on pairs.
    """

    text_fields: tuple[str, ...] = ("text",)
    tokens_field: str | None = None
    id_field: str | None = None
    on_error: OnError = "fail"
    duplicate_ids: DuplicateIds = "fail"
    max_document_bytes: int = 64_000_000
    threads: int | None = None
    stdin: BinaryIO | None = None
    file_format: str | None = None
    delimiter: str | None = None
    quote: Quote | None = None
    max_bad_rows: float | str = DEFAULT_MAX_BAD_ROWS
    max_unpacked_bytes: int = 1_000_000_000_000
    max_unpack_ratio: int = 250
    fields: tuple[str, ...] = ()
    memory_bytes: float | str | None = None

    def read_rules(self, recipe: Recipe) -> ReadRules:
        """Return what is read of each file.

        Raises
        ------
        InvalidParameter
            If a value is out of range, or the recipe takes tokens and no field holds them, or the other way around.
        """
        self._check_tokens(recipe)
        if self.quote is not None:
            check_choice("quote", self.quote, QUOTES)
        check_integer("max_document", self.max_document_bytes, 1, 2**32 - 1)
        check_integer("max_unpacked", self.max_unpacked_bytes, 1, 2**63 - 1)
        check_integer("max_unpack_ratio", self.max_unpack_ratio, 1, 2**31 - 1)
        text_fields = self.text_fields if self.tokens_field is None else (self.tokens_field,)
        return ReadRules(
            text_fields if recipe.only_within is None else (recipe.only_within, *text_fields),
            self.id_field,
            fields_read(recipe.keep, self.fields),
            self.max_document_bytes,
            self.max_unpacked_bytes,
            self.max_unpack_ratio,
            recipe.markup is not None,
            threads=self._unpacking_threads(),
            quote=self.quote,
            passes_damage=self.on_error != "fail",
            tokens=TokenRules.of(recipe),
            only_within=recipe.only_within,
        )

    def _check_tokens(self, recipe: Recipe) -> None:
        if recipe.takes_tokens and self.tokens_field is None:
            raise InvalidParameter(
                "tokens_field",
                f"required for tokens {USER_TOKENS} and weights own; give the name of the field with the tokens",
            )
        if self.tokens_field is None:
            return
        if not recipe.takes_tokens:
            raise InvalidParameter(
                "tokens_field", f"requires tokens {USER_TOKENS}; the recipe uses tokens {recipe.tokens}"
            )
        if self.text_fields != ("text",):
            raise InvalidParameter("tokens_field", "is read in place of the text; omit the text field")

    def format_for(self, recipe: Recipe) -> str | None:
        """Return what the inputs are, by these rules and the recipe's tokens.

        Raises
        ------
        InvalidParameter
            If they are binary, but the tokens are not bytes.
        """
        if recipe.tokens in BYTE_TOKENS:
            return self.file_format or "binary"
        if self.file_format == "binary":
            raise InvalidParameter("format", "binary files require --tokens bytes or --tokens chunks")
        return self.file_format

    def memory_bound(self) -> int | None:
        """Return the bound of memory in bytes, or None.

        Raises
        ------
        InvalidParameter
            If it is not a size, or below 256 MB.
        """
        return None if self.memory_bytes is None else take_bytes("memory", self.memory_bytes, MIN_MEMORY_BYTES)

    def _unpacking_threads(self) -> int:
        """Return how many threads unpack one file: what they hold is a small part of the bound."""
        bound = self.memory_bound()
        threads = num_threads(self.threads)
        return threads if bound is None else min(threads, bound // _MEMORY_AN_UNPACKER)

    def run_rules(self) -> RunRules:
        """Return what else the run is asked."""
        limit = bad_row_limit(self.max_bad_rows)
        return RunRules(num_threads(self.threads), self.on_error, self.duplicate_ids, limit, self.fields)

    def identity(self) -> dict[str, object]:
        """Return the options that decide what is read, as JSON values."""
        return {
            "text_field": list(self.text_fields),
            **({} if self.tokens_field is None else {"tokens_field": self.tokens_field}),
            "id_field": self.id_field,
            "on_error": self.on_error,
            "duplicate_ids": self.duplicate_ids,
            "max_document": self.max_document_bytes,
            "format": self.file_format,
            "delimiter": self.delimiter,
            "quote": self.quote,
            **({"fields": list(self.fields)} if self.fields else {}),
        }
