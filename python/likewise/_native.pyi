"""Native half of Likewise: batches in, arrays out.

Every call releases the interpreter lock; one that may be long listens to Ctrl-C. Arrays go in as one-dimensional
contiguous buffers of exactly the type named (a writable one is copied, a read-only one is shared) and come out as
`Array`, of which ``numpy.asarray`` gives a read-only view. Mistakes raise `likewise.errors.InvalidParameter`,
unusable documents `likewise.errors.InvalidInput`.
"""

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeAlias, final, type_check_only

from numpy.typing import NDArray
from typing_extensions import Buffer as _Buffer

# Before Python 3.12 type checkers do not know that arrays have the buffer protocol.
Buffer: TypeAlias = NDArray[Any] | _Buffer
# Documents of an index: texts, or sketches (uint8), which are empty (uint8), and numbers of features (uint32).
Given: TypeAlias = "Texts | tuple[Buffer, Buffer, Buffer]"

TEXT_VERSION: str
SHORT_FEATURES: int
SKETCH_VERSION: int
ISA: str
__version__: str

@type_check_only
class Cut(Protocol):
    """Parts to remove from texts, such as a `likewise.io.source.source.Cut`."""

    @property
    def counts(self) -> NDArray[Any]: ...
    @property
    def starts(self) -> NDArray[Any]: ...
    @property
    def ends(self) -> NDArray[Any]: ...
    @property
    def keeps_words_apart(self) -> bool: ...

def use_isa(name: str | None) -> None:
    """For tests: make all calls use an instruction set (``"plain"``, ``"avx2"``, ...), or the best one for None.

    No result depends on it.
    """

@final
class Array:
    """A read-only 1-D array (uint8, uint16, uint32, uint64, int64 or float64). ``numpy.asarray`` gives a view."""

    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Texts:
    """An immutable batch of texts. Where it came from Arrow it shares the buffers."""

    @staticmethod
    def from_list(texts: Iterable[str]) -> Texts:
        """Copy texts out of a list (or another iterable) of str.

        Parameters
        ----------
        texts : iterable of str
            Lone surrogates become U+FFFD.

        Returns
        -------
        Texts

        Raises
        ------
        InvalidInput
            If an element is no str (the error holds its row), or `texts` is itself a str.
        """

    @staticmethod
    def from_arrow(data: object) -> Texts:
        """Take a column of strings by the Arrow PyCapsule protocol, without a copy.

        Parameters
        ----------
        data : object with ``__arrow_c_stream__`` or ``__arrow_c_array__``
            utf8, large_utf8, utf8_view or dictionaries of them, in any number of chunks; or a table of one such column.

        Returns
        -------
        Texts

        Raises
        ------
        InvalidInput
            If a text is null (the error holds its row), the type is another, or the data is damaged.

        Notes
        -----
        Offsets and UTF-8 are validated: one pass over the text.
        """

    @staticmethod
    def concat(parts: list[Texts]) -> Texts:
        """Put batches of one kind one after another, without a copy."""

    @staticmethod
    def from_bytes(documents: list[bytes]) -> Texts:
        """Copy documents out of a list of bytes."""

    @staticmethod
    def from_encoded(data: object) -> Texts:
        """Take a column of tokens as ``__arrow_c_array__`` gave it (large_binary), without a copy."""

    @staticmethod
    def from_tokens(
        offsets: Buffer, tokens: Texts, weights: Buffer, lengths: Buffer, texts: Texts | None = None
    ) -> Texts:
        """Encode the user's own tokens as documents.

        Parameters
        ----------
        offsets : buffer of int64, length n + 1
            List i is ``tokens[offsets[i]:offsets[i + 1]]``.
        tokens : Texts
            As they are: nothing is normalized.
        weights : buffer of uint8
            One for each token.
        lengths : buffer of uint32, length n
            Unicode scalars of the texts that they were cut from.
        """

    @property
    def kind(self) -> str:
        """What the documents are: text, bytes or tokens."""

    def __len__(self) -> int: ...
    def __getitem__(self, i: int, /) -> str | bytes: ...
    @property
    def num_bytes(self) -> int:
        """Bytes of all documents together, of texts as UTF-8."""

    def to_list(self) -> list[Any]:
        """Return all texts as a list of str; tokens joined by spaces, bytes as bytes."""

    def take(self, rows: Buffer) -> Texts:
        """Select the texts at `rows` (uint32 or int64), in that order; shares, and so keeps alive, their memory."""

    def lengths(self) -> Array:
        """Count the Unicode scalars of each text, the bytes of what is no text: uint32."""

    def hashes(self, seed: int = 0) -> Array:
        """Hash the UTF-8 of each text with XXH3-64: uint64."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Export as ``large_utf8``, tokens and bytes as ``large_binary``, whatever is requested."""

@final
class Dictionary:
    """Words of Chinese text: the standard ones and these, normalized, with their counts (None: just found)."""

    def __new__(cls, words: list[tuple[str, int | None]]) -> Dictionary: ...

@final
class StopWords:
    """Words that do not count, normalized and folded as the texts will be."""

    def __new__(cls, words: list[str]) -> StopWords: ...

@final
class TextRules:
    """What is done to a text beside the default rules.

    Parameters
    ----------
    fields : mapping
        The fields of a recipe, which has checked them. Among them is `fold`; `dictionary` and `stop_words` are classes
        of this module. Those that do not act on texts are ignored.
    """

    def __new__(cls, fields: Mapping[str, object], /) -> TextRules: ...
    def libraries(self, tokens: str) -> list[str]:
        """Return the libraries that have a say in tokens of this kind, with their versions."""

@final
class FeatureRules:
    """What makes the features of a document.

    Parameters
    ----------
    tokens : {"auto", "script", "word", "char", "chinese", "sentence", "line", "paragraph", "bytes", "chunks", "user"}
    shingle : int
        Tokens a shingle, 1 to 64.
    weights : {"none", "count", "log-count", "idf", "log-count-idf", "lexicon", "own"}
    seed : int
        Seed of the token hash, 64 bits.
    table : WeightTable, optional
        What idf, log-count-idf and lexicon are read from.
    hash : {"xxh3", "md5", "sha1", "1000003", "simhash-1e0ng", "datasketch"}
        Hash of a token.
    text_rules : TextRules, optional
    once : bool
        Whether each feature that has a weight counts once.
    siblings : bool
        Whether feature sets hold what names a document, by the table.
    """

    def __new__(
        cls,
        tokens: str,
        shingle: int,
        weights: str = "none",
        seed: int = 0,
        table: WeightTable | None = None,
        hash: str = "xxh3",
        text_rules: TextRules | None = None,
        *,
        once: bool = False,
        siblings: bool = False,
    ) -> FeatureRules: ...
    def normalize(self, text: str) -> str:
        """Return the normalized text by these rules."""

    def cut(self, documents: Texts) -> list[list[Any]]:
        """Return the tokens of each document in order, stop words included: str, or of bytes and chunks bytes."""
    @property
    def tokens(self) -> str: ...
    @property
    def shingle(self) -> int: ...
    @property
    def weights(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def hash(self) -> str: ...

@final
class WeightTable:
    """Integer weights of features, with what makes the features."""

    @staticmethod
    def read(path: str | PathLike[str]) -> WeightTable:
        """Read a file that `write` wrote; InvalidInput if it is none, or damaged."""

    @staticmethod
    def from_terms(features: Buffer, lengths: Buffer, weights: Buffer, rules: str) -> WeightTable:
        """Make a table of terms: keys and lengths of `term_features`, weights 0 to 15 (uint32), each key once."""

    def write(self, path: str | PathLike[str]) -> None:
        """Write the table to a file, complete under its name or not at all."""

    @staticmethod
    def from_bytes(content: bytes) -> WeightTable:
        """Read what `to_bytes` gave; InvalidInput if it is none, or damaged."""

    def to_bytes(self) -> bytes:
        """Return the bytes that `write` writes."""

    def weigh(self, features: Buffer) -> Array:
        """Look up what features (uint64) weigh: uint32."""

    @property
    def rules(self) -> str: ...
    @property
    def weights_id(self) -> str: ...
    @property
    def num_documents(self) -> int: ...
    @property
    def num_features(self) -> int | None: ...
    @property
    def num_listed(self) -> int | None: ...
    @property
    def longest_term(self) -> int: ...
    @property
    def excess(self) -> int: ...
    @property
    def excess_probability(self) -> float: ...
    @property
    def num_bytes(self) -> int: ...

@final
class DocumentCounter:
    """Counts, over documents with distinct feature sets, how many hold each feature. Add from any thread."""

    def __new__(cls, memory_bytes: int, *, names: bool = False) -> DocumentCounter:
        """Return an empty counter; with `names`, words and slots are counted too."""

    def add(self, texts: Texts, rules: FeatureRules, *, threads: int = 1) -> None:
        """Count the features of texts, each once whatever the weights of the rules."""

    def finish(self, rules: str, *, threads: int = 1) -> WeightTable:
        """Return the table of the counts, with `rules` to identify its features. Nothing can be added afterwards."""

@final
class TextSample:
    """The documents of the lowest hashes, up to a number and a sum of their bytes. Add from any thread."""

    def __new__(cls, max_documents: int, max_bytes: int) -> TextSample: ...
    def add(self, texts: Texts) -> None:
        """Add documents, all of one kind."""

    def take(self) -> Texts:
        """Return the documents, in the order of their hashes; they are moved out of the sample."""

def term_features(terms: Texts, rules: FeatureRules) -> tuple[Array, Array]:
    """Return the key of each term (uint64) and how many tokens it has (uint32, 0: none)."""

@final
class SketchBatch:
    """Sketches of n texts."""

    @property
    def sketches(self) -> Array:
        """Fingerprints: uint64, n * words, word 0 lowest. Signatures: uint8, n * num_slots * slot_bits / 8."""

    @property
    def num_features(self) -> Array:
        """Distinct features of each text: uint32.

        With ``sets=False`` repeated features may count each time.
        """

    @property
    def shapes(self) -> Array:
        """Say of each text 0 full, 1 shorter than a shingle, 2 empty: uint8."""

    @property
    def digests(self) -> Array:
        """Two words a text that are equal for equal feature sets: uint64, 2 n; empty with ``sets=False``."""

    @property
    def features_share(self) -> float:
        """Share of the time spent until the features stood, 0 to 1; from one text in sixteen. The rest is sketching."""

def sketch_simhash(texts: Texts, rules: FeatureRules, *, bits: int, sets: bool = True, threads: int = 1) -> SketchBatch:
    """Sketch texts by SimHash; `bits` is a multiple of 32 from 32 to 256."""

def sketch_minhash(
    texts: Texts,
    rules: FeatureRules,
    *,
    num_slots: int,
    slot_bits: int,
    scheme: str,
    sets: bool = True,
    threads: int = 1,
) -> SketchBatch:
    """Sketch texts by MinHash.

    Parameters
    ----------
    num_slots : int
        1 to 65535.
    slot_bits : {8, 16, 32}
    scheme : {"bucket", "classical", "affine32", "legacy"}
    """

def sketch_bloom(
    texts: Texts,
    rules: FeatureRules,
    *,
    filter_bits: int,
    num_hashes: int,
    sets: bool = True,
    threads: int = 1,
) -> SketchBatch:
    """Sketch texts as Bloom filters (uint64); `filter_bits` is a multiple of 64 up to 65,536, `num_hashes` up to 64."""

def bloom_features(
    features: Buffer, weights: Buffer | None, *, filter_bits: int, num_hashes: int, seed: int = 0
) -> Array:
    """Return the filter (uint64) of one list of features (uint64) with weights (uint32; None: all 1)."""

def largest_set(texts: Texts, rules: FeatureRules, *, threads: int = 1) -> int:
    """Return the greatest number of features, weights counted, of a text."""

def bloom_signatures(filters: Buffer, *, filter_bits: int, num_slots: int, seed: int = 0, threads: int = 1) -> Array:
    """Return MinHash signatures (uint8, 16 bits a slot) of the positions of the bits that are set."""

def bloom_similarities(filters: Buffer, filter_bits: int, a: Buffer, b: Buffer, measure: str) -> Array:
    """Return the similarity (float64) of filters `a` and `b` (uint32) by a measure on their bits.

    Parameters
    ----------
    measure : {"hamming", "cosine", "overlap", "dice", "jaccard"}
    """

@final
class BloomJoin:
    """Bloom filters in order of priority, and what is asked of their pairs.

    Parameters
    ----------
    filters : Buffer of uint64
        All filters, one behind the other.
    filter_bits : int
    order : Buffer of uint32
        Row of each position.
    measure : str
    threshold : float
        Of the bits; with a recall of the feature sets.
    recall : float, optional
        P(a pair at the threshold passes).
    """

    def __new__(
        cls,
        filters: Buffer,
        filter_bits: int,
        order: Buffer,
        *,
        measure: str,
        threshold: float,
        recall: float | None = None,
    ) -> BloomJoin: ...
    def searcher(self) -> Searcher:
        """Return the search for all pairs that pass."""

    def passes(self, later: Buffer, earlier: Buffer, *, threads: int = 1) -> Array:
        """Return of each pair of positions whether it passes (uint8)."""

def count_sets(texts: Texts, rules: FeatureRules, rarity: Rarity, *, threads: int = 1) -> SketchBatch:
    """Count in `rarity` the documents of each feature; the batch has no sketches, only what goes with them."""

def digest_texts(texts: Texts, rules: TextRules, *, threads: int = 1) -> SketchBatch:
    """Return digests of the texts as the rules normalize them, in place of those of feature sets, without sketches."""

def sample_sets(
    texts: Texts, rules: FeatureRules, *, kind: str, size: int, threads: int = 1
) -> tuple[Array, Array, Array, Array]:
    """Return samples of sets: offsets (int64), hashes (uint64, ascending in each), totals (uint64), whole (uint8).

    Parameters
    ----------
    kind : {"min-s", "mod-m"}
    size : int
        1 or more: hashes kept, or one hash in so many.
    """

def simhash_features(features: Buffer, weights: Buffer | None, *, bits: int) -> Array:
    """Return the fingerprint (uint64) of one list of features (uint64) with weights (uint32; None: all 1)."""

def minhash_features(
    offsets: Buffer,
    features: Buffer,
    weights: Buffer | None,
    *,
    num_slots: int,
    slot_bits: int,
    scheme: str,
    seed: int,
    threads: int = 1,
) -> Array:
    """Return signatures (uint8) of lists of features (uint64), given by n + 1 offsets (int64)."""

def features(texts: Texts, rules: FeatureRules, *, threads: int = 1) -> tuple[Array, Array, Array]:
    """Return the distinct features of each text, in order of first occurrence.

    Returns
    -------
    offsets : int64, n + 1
    features : uint64
    weights : uint32
        One a feature, also where all are 1.
    """

def normalize(text: str) -> str:
    """Return the normalized text."""

def cut_parts(texts: Texts, unit: str) -> tuple[Texts, Array, Array, Array]:
    """Return lines, paragraphs or sentences of texts where they stand.

    Parameters
    ----------
    unit : {"line", "paragraph", "sentence"}
        A line or a sentence with what ends it, a paragraph with the blank lines behind it; blank ones are no parts.

    Returns
    -------
    parts : Texts
        Text after text.
    counts, starts, ends : uint32
        Parts of each text; where each begins and ends in the UTF-8 of its text.
    """

def cut_texts(texts: Texts, cut: Cut) -> tuple[Texts, Array, int]:
    """Return texts without stretches of them.

    Returns
    -------
    texts : Texts
        What is left of each.
    is_blank : uint8
        Whether that is nothing but whitespace.
    num_removed_bytes : int
        Bytes of text that went.

    Raises
    ------
    InvalidInput
        If a stretch begins or ends inside a character.
    """

def cut_words(texts: Texts) -> tuple[Array, Array, Array, Array]:
    """Return the words of texts, as tokens ``auto`` cuts them, where they stand.

    Returns
    -------
    counts, starts, ends : uint32
        Words of each text; where each begins and ends in the UTF-8 of its text.
    hashes : uint64
        XXH3-64 of each word, normalized by itself.
    """

@final
class ItemTable:
    """The distinct texts of evaluation items, and in how many documents their n-grams and words come.

    An n-gram is five consecutive words of tokens `auto`, each normalized by itself.

    Parameters
    ----------
    texts : Texts
        The texts of items; equal words make one text.
    min_ngrams : int
        A text with fewer distinct n-grams, or only such as come in more than 64 texts, is never found.
    counts : tuple, optional
        What :meth:`counts` gave of a table of the same texts.
    """

    def __new__(
        cls, texts: Texts, *, min_ngrams: int, counts: tuple[Buffer, Buffer, int, int] | None = None
    ) -> ItemTable: ...
    @property
    def distinct(self) -> Array:
        """Number of the distinct text of each text, uint32, by first occurrence."""

    def sizes(self) -> tuple[Array, Array, Array]:
        """Return of each distinct text whether it is never found (uint8), its distinct n-grams and words (uint32)."""

    def scan(self, texts: Texts, *, threads: int = 1) -> tuple[Array, Array, Array, Array, Array, Array, Array, Array]:
        """Count documents, and return windows in which a text may stand, by document, text and place.

        Threads may scan at once. Cost: linear in the documents, and for each window its words times the text's / 64.

        Returns
        -------
        documents, texts : uint32
            Number of the document among `texts`, and of the distinct text.
        starts, ends : uint32
            Bytes of the document from the first aligned word to the last.
        runs : uint32
            Most consecutive words that are equal.
        other_numbers : uint8
            Whether another number is in the place of one of the text.
        present, aligned : uint8
            Of each window, in whole bytes, a bit for each distinct n-gram of the text that is in it, and for each word
            of the text that is aligned.
        """

    def counts(self) -> tuple[Array, Array, int, int]:
        """Return documents with each n-gram, sampled ones with each word (uint32), documents, sampled documents."""

    def judge(self, texts: Buffer, present: Buffer, aligned: Buffer) -> tuple[Array, Array]:
        """Return the weighted share of n-grams and the similarity of each window, float64, by all that was counted."""

@final
class SeenTwice:
    """Which windows of words may have been met more than once; of others a few by chance, never fewer.

    Of each window the least hash of the windows of half as many words inside is counted. Threads may share it.

    Parameters
    ----------
    num_words : int
        Words of a window, at least 2.
    num_expected : int
        Least hashes that will be met, about; 4 to 8 bytes each are held, at most 1 GiB.
    """

    def __new__(cls, num_words: int, num_expected: int) -> SeenTwice: ...
    def count(self, texts: Texts) -> Array:
        """Count the windows of texts.

        Returns
        -------
        counts : uint32
            Words of each text, as :func:`cut_words` cuts them; one of n has ``n - num_words + 1`` windows, or none.
        """

@final
class RepeatedWindows:
    """Windows of words that may repeat one, in memory as far as it goes and then in a file. Threads may share it.

    Parameters
    ----------
    folder : path
        Where the file is made; it goes with this object.
    num_words : int
        Words of a window.
    num_all_words : int
        Words of all documents.
    memory_bytes : int
        Of windows that are held, about; each takes 16.
    """

    def __new__(
        cls, folder: str | PathLike[str], num_words: int, num_all_words: int, *, memory_bytes: int
    ) -> RepeatedWindows: ...
    def add(self, texts: Texts, seen: SeenTwice, first: int) -> None:
        """Put aside the windows of texts that may be met twice; the first word has place `first` among all."""

    def stretches(self, doc_starts: Buffer, *, threads: int = 1) -> tuple[Array, Array, Array]:
        """Return the longest stretches of windows that repeat consecutive ones, once, in order of place.

        A window repeats the first equal one if that is of an earlier document, or of the same one and does not overlap.

        Parameters
        ----------
        doc_starts : ndarray of shape (n + 1,), int64
            Where the words of each document begin among those of all, and where the last one's end.

        Returns
        -------
        places, firsts, num_windows : int64
            Place of the first word, and of that of what it repeats; windows.
        """

def equal_stretches(
    texts: Texts,
    places: tuple[Buffer, Buffer],
    kept_places: tuple[Buffer, Buffer],
    num_words: Buffer,
    is_followed: Buffer,
    num_going: Buffer,
) -> tuple[Array, Array, Array, Array, Array]:
    """Return where stretches of words stand that equal others, word for word.

    Parameters
    ----------
    places, kept_places : pairs of ndarray of shape (m,), uint32
        The text of each and the number of its first word there, and the same of what it should equal.
    num_words : ndarray of shape (m,), uint32
        Words of each.
    is_followed : ndarray of shape (m,), uint8
        Whether another one begins with the word behind it.
    num_going : ndarray of shape (m,), uint32
        How many words from its first on go, those of others too; 0 where the word before the first goes.

    Returns
    -------
    numbers : uint32
        Which of them are equal.
    starts, ends, kept_starts, kept_ends : uint32
        Bytes of the UTF-8 of these, with the marks before that are closed within what goes; up to the next word where
        another one begins there, else with the marks that belong to the last word and the whitespace behind. Of the
        others their words only.
    """

def tokens(text: str, tokens: str) -> list[str]:
    """Return the tokens of a text, in order."""

@final
class Rarity:
    """How many documents hold each feature, about: never too few, and one is exact.

    Parameters
    ----------
    num_text_bytes : int
        Bytes of text to be counted, about; a byte is held for each four of them, at most 64 MiB.
    """

    def __new__(cls, num_text_bytes: int) -> Rarity: ...
    @property
    def num_bytes(self) -> int:
        """Bytes held."""

@final
class ReferenceSets:
    """Feature sets of references, which queries are compared with.

    Parameters
    ----------
    texts : Texts
        The references.
    rules : FeatureRules
        What makes features, of queries too.
    threads : int
    """

    def __new__(cls, texts: Texts, rules: FeatureRules, *, threads: int = 1) -> ReferenceSets: ...
    @property
    def sizes(self) -> Array:
        """Sum of the weights of each reference's features: uint64."""

    def best(
        self, texts: Texts, *, top: int, min_score: float, threads: int = 1
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Return the best references of each text: offsets, references, shared, scores, sizes.

        Those of text i are at ``offsets[i]:offsets[i + 1]`` (uint64), at most `top`, the best first: references
        (uint32), the weight shared (uint64), scores of at least `min_score` (float64). Sizes (uint64) are those of the
        texts.
        """

@final
class RarestFeatures:
    """Rarest features of some documents, and the documents that have each.

    Parameters
    ----------
    texts : Texts
        The documents.
    measure : {"jaccard", "dice", "cosine", "containment", "overlap"}
    threshold, short_margin : float
        Similarity that a pair must reach, and its addition for small documents, as in a recipe.
    """

    def __new__(
        cls,
        texts: Texts,
        rules: FeatureRules,
        *,
        measure: str,
        threshold: float,
        short_margin: float = 0.0,
        threads: int = 1,
    ) -> RarestFeatures: ...
    def may_match(self, texts: Texts, *, threads: int = 1) -> tuple[Array, Array, int]:
        """Return numbers of texts and of documents that they may match, by text (uint32), and the list entries read.

        No pair that reaches the threshold is missing, and each is returned once.
        """

@final
class PrefixJoin:
    """Candidate pairs by the rarest features of documents; none that reaches the threshold is missing.

    Parameters
    ----------
    num_positions : int
        Documents, in order of priority.
    rarity : Rarity
        Counts of all of them.
    measure : {"jaccard", "dice", "cosine", "containment", "overlap"}
    threshold : float
        Above 0, up to 1.
    short_margin : float, default 0
        What short documents need in addition, as in the recipe.
    siblings : bool, default False
        Whether pairs with different names need more; those that never reach it may be missing.
    """

    def __new__(
        cls,
        num_positions: int,
        rules: FeatureRules,
        rarity: Rarity,
        *,
        measure: str,
        threshold: float,
        short_margin: float = 0.0,
        siblings: bool = False,
    ) -> PrefixJoin: ...
    @property
    def needs_marks(self) -> bool:
        """Whether all texts must be given to `mark` before they are given to `add`."""

    def mark(self, texts: Texts, *, threads: int = 1) -> None:
        """Note which features are in the prefix of any of the texts."""

    def add(self, positions: Buffer, texts: Texts, *, threads: int = 1) -> None:
        """Take the texts of these positions (uint32), each once."""

    def finish(self, *, threads: int = 1) -> Searcher:
        """Return the search; nothing can be added afterwards."""

@final
class Candidates:
    """Candidate pairs, sorted by (later, earlier)."""

    @property
    def later(self) -> Array:
        """Positions of lower priority: uint32."""

    @property
    def earlier(self) -> Array:
        """Positions of higher priority: uint32."""

    @property
    def num_considered(self) -> int:
        """Number of distinct pairs before any was omitted."""

    @property
    def end(self) -> int:
        """Later positions from here on were not searched."""

@final
class Searcher:
    """A search for candidate pairs in documents in order of priority."""

    def candidates(
        self,
        lo: int,
        hi: int,
        states: Buffer | None = None,
        max_pairs: int = ...,
        *,
        min_equal: int = 0,
        threads: int = 1,
    ) -> Candidates:
        """Return the pairs whose later position is in ``lo:hi``, up to `max_pairs` or a few more.

        Pairs with a removed (2) earlier one in `states` (uint8, one for each position) are omitted, and so are pairs of
        signatures with fewer than `min_equal` equal slots. At least one position is searched. A search of feature sets
        starts where the last one ended.
        """

    def pass_over(self, end: int) -> None:
        """List positions up to `end` as earlier ones, in place of asking for their pairs."""

    @property
    def num_capped(self) -> int:
        """Number of times that a document found its last bucket full."""

    @property
    def crowded(self) -> Array:
        """Positions that found a bucket of the first level full, in some band, ascending: uint32."""

    @property
    def num_bytes(self) -> int:
        """Bytes held, in memory or in files, excluding sketches."""

def search_bands(
    signatures: Buffer,
    num_slots: int,
    slot_bytes: int,
    order: Buffer,
    *,
    bands: int,
    rows: int,
    num_levels: int = 3,
    folder: str | PathLike[str] | None = None,
    scratch_bytes: int = 0,
    threads: int = 1,
) -> Searcher:
    """Put documents into buckets by their bands: in memory, or in unnamed files of `folder` with about `scratch_bytes`.

    Position i is row ``order[i]`` (uint32) of `signatures` (uint8), which are kept: shared if read-only.
    """

def plan_bands(num_slots: int, threshold: float, recall: float) -> tuple[int, int, float]:
    """Return bands, rows a band, and the recall at the threshold."""

def s_curve(similarity: float, bands: int, rows: int) -> float:
    """Return the probability that a pair of this similarity shares a band."""

def min_equal_slots(num_slots: int, threshold: float) -> int:
    """Return the number of equal slots below which a pair is not measured."""

def num_equal(signatures: Buffer, num_slots: int, slot_bytes: int, a: Buffer, b: Buffer) -> Array:
    """Count the equal slots of the rows ``a[i]`` and ``b[i]`` (uint32): uint32."""

@final
class SampledBands:
    """The bands of two slots of sampled signatures, of `num_slots` slots of `slot_bytes` bytes."""

    def __new__(cls, signatures: Buffer, num_slots: int, slot_bytes: int) -> SampledBands: ...
    def without(self, gone: Buffer) -> SampledBands:
        """Return the bands without those of some signatures (uint32, ascending)."""

    def pairs(self, signatures: Buffer, min_equal: int) -> tuple[Array, Array, Array]:
        """Return pairs of a sampled signature and one of these that share a band and have enough equal slots.

        Each pair once: the numbers of both, and the number of their equal slots (uint32).
        """

@final
class ManualClock:
    """The clocks of a machine that stand still until they are moved."""

    def __new__(cls, unix_s: int) -> ManualClock: ...
    @property
    def unix_s(self) -> int: ...
    def pass_time(self, seconds: int) -> None:
        """Let time pass."""

    def set(self, unix_s: int) -> None:
        """Set the clock that can be set."""

    def restart(self, seconds: int) -> None:
        """Start the machine again after some seconds without power."""

@final
class ClusterRule:
    """The rule of an index on a cluster: packs operations, decides on them, and names what they change."""

    def __new__(
        cls,
        recipe: dict[str, Any],
        rules: FeatureRules,
        plan: bytes,
        *,
        partitions: int,
        ttl_seconds: int | None = None,
    ) -> ClusterRule: ...
    @staticmethod
    def plan_for(recipe: dict[str, Any], expected: int) -> bytes: ...
    def plan_facts(self) -> dict[str, float]: ...
    def add(self, ids: Texts, documents: Given, *, threads: int = 1) -> bytes: ...
    def remove(self, doc_id: str) -> bytes: ...
    def get(self, doc_id: str) -> bytes: ...
    def group(self, doc_id: str) -> bytes: ...
    def listing(self, first_row: int, num_rows: int) -> bytes: ...
    def audit(self, first_row: int, num_rows: int) -> bytes: ...
    def records(self, first_row: int, num_rows: int) -> bytes: ...
    def without_texts(self, documents: MovedDocuments) -> MovedDocuments: ...
    def sweep(self, first_row: int, num_rows: int) -> bytes | None: ...
    def check(self, documents: Given, *, threads: int = 1) -> bytes: ...
    def neighbors(self, documents: Given, limit: int, min_similarity: float, *, threads: int = 1) -> bytes: ...
    def num_rows(self, payload: bytes) -> int: ...
    def ids(self, payload: bytes) -> list[str]: ...
    def lost_ids(self, records: list[bytes]) -> list[str]: ...
    def decide(
        self,
        payload: bytes,
        arrival: tuple[int, int, bytes],
        tail: list[tuple[int, bytes, int, int, int, int, bytes, bytes]],
        low_row: int,
        below: bytes,
    ) -> ClusterDecision: ...
    def effects(
        self, payload: bytes, arrival: tuple[int, int, bytes], verdict: bytes
    ) -> list[tuple[int, int, int, bytes, bytes, bytes, bytes, bytes, bytes]]: ...
    def answer(self, payload: bytes, row: int, verdict: bytes) -> Any: ...
    def counts(self, verdict: bytes) -> tuple[int, int, int, int]: ...
    def rejected(self, reason: str) -> bytes: ...

def cluster_gets(tag: bytes, names: bytes) -> tuple[bytes, int]:
    """Return the commands that read strings of a partition, as a server reads them, and their number."""

@final
class ClusterRestoring:
    """Makes the operations that fill a new index with documents that have verdicts."""

    def __new__(cls, rule: ClusterRule) -> ClusterRestoring: ...
    def operations(self, documents: MovedDocuments) -> list[tuple[bytes, int]]: ...

@final
class MovedDocuments:
    """Consecutive documents with their verdicts, on their way to another index. It has the Arrow PyCapsule protocol."""

    @staticmethod
    def from_arrow(data: Any, recipe: dict[str, Any]) -> MovedDocuments: ...
    @staticmethod
    def none(recipe: dict[str, Any]) -> MovedDocuments: ...
    def __len__(self) -> int: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...
    def checksum(self, before: int) -> int: ...
    def rest_from(self, row: int) -> MovedDocuments: ...
    def last_kept_row(self) -> int | None: ...

@final
class RowNumbers:
    """The rows of an index that move, and the number of each among them: at first `num` rows from 0 on."""

    def __new__(cls, num: int) -> RowNumbers: ...
    def __len__(self) -> int: ...
    def add(self, documents: MovedDocuments, oldest_s: int) -> None: ...
    def count(self) -> None: ...
    def renumbered(self, documents: MovedDocuments) -> MovedDocuments: ...

@final
class ClusterDecision:
    """A decision on one operation: reads what is wanted until nothing is, then has a verdict."""

    def wanted(self) -> list[tuple[int, bytes, bytes]]: ...
    def take(
        self, partition: int, found: list[bytes | None], records: list[bytes | None], changes: list[bytes]
    ) -> None: ...
    def searched(self) -> tuple[int, int]: ...
    def verdict(self) -> bytes: ...
    def answer(self) -> Any: ...

@final
class OnlineIndex:
    """The index in a directory. Verdicts are dicts of columns: is_new, kept_ids, similarity, distance, seq, added."""

    def __new__(
        cls,
        path: Path,
        mode: str,
        recipe: dict[str, Any],
        rules: FeatureRules,
        *,
        sync_seconds: float | None = None,
        ttl_seconds: int | None = None,
        is_renewed: bool = False,
        flush_rows: int | None = None,
        accept_loss: bool = False,
        accept_clock: bool = False,
        clock: ManualClock | None = None,
    ) -> OnlineIndex:
        """Open it; `mode` is create, write or read."""

    @staticmethod
    def describe(path: Path) -> tuple[str, str, str, str]:
        """Return recipe as JSON, its id, the sketch's id, and what is kept."""

    def __len__(self) -> int: ...
    def check(self, documents: Given, *, end: int | None = None, threads: int = 1) -> dict[str, Any]: ...
    def check_text(self, text: str) -> tuple[str | None, float, int | None]: ...
    def add_text(self, doc_id: str, text: str) -> tuple[tuple[str | None, float, int | None], int, bool]: ...
    def add(
        self,
        ids: Texts,
        documents: Given,
        *,
        run: tuple[bytes, int] | None = None,
        threads: int = 1,
    ) -> dict[str, Any]: ...
    def are_known(self, ids: Texts) -> list[bool]: ...
    def first_of_other_text(self, ids: Texts, texts: Given, *, threads: int = 1) -> int | None: ...
    def first_row_of_run(self, identity: bytes) -> int: ...
    def get(self, doc_id: str) -> tuple[int, str | None, float, int | None, int] | None: ...
    def text(self, doc_id: str) -> str | None: ...
    def group(self, doc_id: str) -> tuple[str, bool, list[str]]: ...
    def neighbors(
        self, documents: Given, limit: int, min_similarity: float, *, among: str | None = None, threads: int = 1
    ) -> list[list[tuple[str, float, int | None, bool]]]: ...
    def ids_from(self, row: int) -> tuple[list[str], int] | None: ...
    def check_ids_of(self, other: OnlineIndex, row: int, *, threads: int = 1) -> int | None: ...
    def add_from(
        self, other: OnlineIndex, row: int, *, threads: int = 1
    ) -> tuple[list[str], list[str | None], dict[str, Any], int] | None: ...
    def remove(self, doc_id: str) -> tuple[bool, list[str], list[tuple[str, str]]]: ...
    def remove_expired(self, row: int) -> tuple[bool, list[str], list[tuple[str, str]]]: ...
    def records_of(self, ids: Texts) -> list[tuple[int, int, str]]: ...
    def purge(self, *, threads: int = 1) -> tuple[bool, list[str]]: ...
    def facts(self) -> dict[str, Any]: ...
    def verify(self, full: bool = False) -> list[str]: ...
    def compact(self, *, threads: int = 1) -> int: ...
    def rebuild(self, *, threads: int = 1) -> None: ...
    def snapshot(self, path: Path) -> None: ...
    def standing(self) -> tuple[str, int, int, int]: ...
    def moving_rows(self) -> RowNumbers: ...
    def moved_from(self, row: int, numbers: RowNumbers) -> tuple[MovedDocuments, int] | None: ...
    def restore(self, documents: MovedDocuments) -> None: ...
    def export(self, write: Callable[[str], object]) -> None: ...
    def close(self) -> None: ...

@final
class HammingSet:
    """Fingerprints by row, found by distance; they come and go while they are searched.

    Parameters
    ----------
    fingerprints : uint64
        ceil(bits / 64) words each.
    within : int
        Radius in bits.
    rows : uint32, optional
        Row of each, ascending; its position where None.
    with_rows : bool
        Whether rows are kept.
    scan : bool
        Whether there are no tables. The cheapest plan where not.
    """

    def __new__(
        cls,
        fingerprints: Buffer,
        bits: int,
        *,
        within: int,
        rows: Buffer | None = None,
        with_rows: bool = True,
        scan: bool = False,
        memory_bytes: float | None = None,
        threads: int = 1,
    ) -> HammingSet: ...
    def __len__(self) -> int: ...
    @property
    def within(self) -> int:
        """Return the radius of the plan."""
    @property
    def bits(self) -> int:
        """Return the bits of a fingerprint."""
    @property
    def keys(self) -> list[tuple[list[int], int]]:
        """Return (mask, radius) of each table."""
    def insert(self, fingerprints: Buffer, rows: Buffer | None = None, *, threads: int = 1) -> int:
        """Insert fingerprints under ascending rows above all before; return the row above them."""
    def remove(self, rows: Buffer) -> int:
        """Remove rows and return how many were there."""
    def holds(self, rows: Buffer) -> Array:
        """Return whether each row is there: 1 or 0, uint8."""
    def search(self, queries: Buffer, within: int, *, threads: int = 1) -> tuple[Array, Array, Array, Array]:
        """Return offsets (int64), rows (uint32), fingerprints where rows are not kept (uint64), distances (uint16)."""
    def nearest(self, queries: Buffer, num: int, *, threads: int = 1) -> tuple[Array, Array, Array, Array]:
        """Return as :meth:`search` the nearest of each query, by distance."""
    def facts(self) -> dict[str, Any]:
        """Return sizes by name."""
    def save(self, path: str, extra: str, ids: bytes | None = None) -> None:
        """Write to one file, complete under its name or not at all."""
    @staticmethod
    def open(path: str, *, verify: bool = False) -> tuple[HammingSet, str, bytes | None]:
        """Open a file: the set, the text and the ids that were given to :meth:`save`."""

def join_fingerprints(
    left: tuple[Buffer, Buffer | None],
    right: tuple[Buffer, Buffer | None] | None,
    bits: int,
    *,
    within: int,
    max_pairs: int,
    threads: int = 1,
) -> tuple[Array, Array] | None:
    """Return rows (int64: left, right, left, ...) and distances (uint16) of all pairs within the radius, sorted.

    A side is its fingerprints (uint64) and a byte for each that is not 0 where the text was empty. Returns None if
    there are more than `max_pairs`.
    """

def predicted_join_seconds(sample: Buffer, bits: int, *, within: int, num: int) -> float:
    """Return the estimated seconds on one core to join `num` fingerprints like those of a sample."""

def stream_joined_fingerprints(
    left: tuple[Buffer, Buffer | None],
    right: tuple[Buffer, Buffer | None] | None,
    bits: int,
    *,
    within: int,
    consumer: Callable[[Array, Array, Array], object],
    threads: int = 1,
) -> None:
    """Call `consumer` with left (uint32), right (uint32) and distance (uint16), at most 65,536 pairs at a time."""

def build_hamming_file(
    source: tuple[Path, int, int, Buffer],
    bits: int,
    path: str,
    extra: str,
    ids: bytes | None = None,
    *,
    within: int,
    table_bytes: float | None,
    with_rows: bool,
    memory_bytes: int,
    check: Callable[[int, int], None],
    progress: Callable[[int, int], None],
    threads: int = 1,
) -> bool:
    """Build an index file out of core, unless the cheapest plan has no tables; return whether it was built.

    `check` is told the bytes of the file and of what stands beside it, before anything is written; `progress` the rows
    read and to be read.
    """

def stream_joined_files(
    left: tuple[Path, int, int, Buffer],
    right: tuple[Path, int, int, Buffer] | None,
    bits: int,
    *,
    within: int,
    memory_bytes: int,
    folder: Path,
    consumer: Callable[[Array, Array, Array], object],
    threads: int = 1,
) -> None:
    """As `stream_joined_fingerprints` for flat files: path, first byte, fingerprints, rows of empty texts (uint32)."""

def radius_for(bits: int, threshold: float, recall: float) -> tuple[int, float]:
    """Return the least radius that finds a pair at the threshold with this probability, and that probability."""

def bit_statistics(fingerprints: Buffer, bits: int) -> tuple[Array, float]:
    """Return the share of fingerprints with a one at each bit (float64), and how far their differing is dependent."""

def plan_limits() -> tuple[int, int]:
    """Return how many fingerprints one index holds, and how many rows are joined at once."""

def survey_plans(
    num_fingerprints: int,
    bits: int,
    within: int,
    *,
    memory_bytes: float | None = None,
    id_bits: int | None = None,
    bit_frequencies: list[float] | None = None,
    bit_dependence: float = 0.0,
) -> tuple[list[dict[str, Any]], int | None]:
    """Return the plans of Hamming search by size, and the number of the one that is taken."""

def distances(fingerprints: Buffer, bits: int, a: Buffer, b: Buffer) -> Array:
    """Return the Hamming distances of the fingerprints ``a[i]`` and ``b[i]`` (uint32): uint32."""

@final
class FeatureSets:
    """Feature sets by position, for exact measures. Several threads may use it at once."""

    def __new__(cls, capacity: int, rules: FeatureRules) -> FeatureSets: ...
    def add(self, positions: Buffer, texts: Texts, *, bitmaps: bool = True, threads: int = 1) -> None:
        """Make the feature sets of texts and hold them at `positions` (uint32); for few pairs, without bitmaps."""

    def missing(self, positions: Buffer) -> Array:
        """Return those of the positions that have no set: uint32, sorted, each once."""

    def discard(self, positions: Buffer) -> None:
        """Drop the sets at `positions`; one that is not there is no error."""

    @property
    def num_bytes(self) -> int:
        """Bytes held."""

    def verify(
        self,
        later: Buffer,
        earlier: Buffer,
        places: Buffer | None = None,
        states: Buffer | None = None,
        *,
        measure: str,
        threshold: float,
        short_margin: float = 0.0,
        names: tuple[bool, bool, int] | None = None,
        threads: int = 1,
    ) -> tuple[Array, int]:
        """Return the exact similarity of each pair that reaches the threshold, NaN for others, and the number measured.

        A pair must reach `threshold` + `short_margin` / sqrt(distinct features of the smaller document), at most 1.

        Parameters
        ----------
        places : uint32, optional
            The position of each document's set; if missing, a document's number is its position.
        states : uint8, optional
            The state of each document: pairs whose earlier one is removed are passed over, and NaN.

        Raises
        ------
        InvalidParameter
            If a document has no place or its place no set.
        """

    def differences(
        self, later: Buffer, earlier: Buffer, places: Buffer, *, penalties_only: bool = False, threads: int = 1
    ) -> tuple[Array, Array]:
        """Return for each pair of documents the additional similarity that it needs, and in what the later one differs.

        float64 and uint8: 1 nothing but form, 2 numbers, 4 first words, 8 slots, 16 a section; 0 without names.
        """

@final
class Leaders:
    """Verdicts and evidence of n documents in order of priority."""

    def __new__(cls, n: int) -> Leaders: ...
    def decide(
        self,
        lo: int,
        hi: int,
        later: Buffer,
        earlier: Buffer,
        similarity: Buffer,
        distance: Buffer | None = None,
    ) -> None:
        """Decide the positions ``lo:hi``, which begin where the last ones ended.

        Parameters
        ----------
        later, earlier : uint32
            The compared pairs, sorted by later; all of the range.
        similarity : float64
            NaN where a pair does not match.
        distance : uint32, optional
        """

    @property
    def states(self) -> Array:
        """0 undecided, 1 kept, 2 removed: uint8, a copy."""

    @property
    def best_earlier(self) -> Array:
        """The kept position that removed each one, 2**32 - 1 where none did: uint32, a copy."""

    @property
    def best_similarity(self) -> Array:
        """Similarity to it, NaN where not removed: float64, a copy."""

    @property
    def best_distance(self) -> Array:
        """Distance to it, 2**32 - 1 where there is none: uint32, a copy."""

def decide_range(
    states: Buffer,
    hi: int,
    later: Buffer,
    earlier: Buffer,
    similarity: Buffer,
    distance: Buffer | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Decide the positions behind those of `states`, up to `hi`.

    Parameters are those of :meth:`Leaders.decide`; returned are, for these positions alone, state, kept position,
    similarity and distance.
    """

@final
class EqualKeys:
    """Finds items whose key, of one or more words, equals that of an earlier item.

    With several shares, each of which takes the same items, only the keys of one share are stored and compared.
    """

    def __new__(cls, num_words: int, share: int = 0, num_shares: int = 1) -> EqualKeys: ...
    def add(self, keys: Buffer) -> tuple[Array, Array]:
        """Add the keys of the next items, one after another: uint64.

        Returns some of the items whose key is that of an earlier one, and the first item with it: uint64, in no order.
        """

    def finish(self) -> tuple[Array, Array]:
        """Return the other items, as :meth:`add` does. Call it once, at the end: the keys are consumed."""

@final
class Components:
    """Connected components of n positions that grow as pairs come."""

    def __new__(cls, n: int) -> Components: ...
    def join(self, later: Buffer, earlier: Buffer) -> None:
        """Join the positions of pairs, uint32."""

    def smallest(self) -> Array:
        """Return the smallest position of each one's component, uint32; call it once, at the end."""

def components(n: int, later: Buffer, earlier: Buffer) -> Array:
    """Return the smallest position of each position's connected component: uint32."""

def align_texts(a: str, b: str) -> tuple[str, int, int, int, int, bool]:
    """Return how two texts align: ``(unit, units of a, units of b, edit distance, common subsequence, is_exact)``.

    The unit is ``character``, ``token`` or ``line``, by the size of the longer text. Where not exact the distance is an
    upper bound, the length of the common subsequence a lower one.
    """

def align_sequences(a: Buffer, b: Buffer) -> tuple[int, int, bool]:
    """Return ``(edit distance, common subsequence, is_exact)`` of two sequences of numbers (uint32)."""

def distinct_documents(a: Buffer, b: Buffer, num_documents: int) -> Array:
    """Return the documents below `num_documents` that either list (uint32) names: uint32, sorted, each once."""

def aligned_diff(a: list[str], b: list[str]) -> list[tuple[int, int, int, int]]:
    """Return where two lists of tokens differ: ``(a0, a1, b0, b1)``, ``a[a0:a1]`` standing where ``b[b0:b1]`` does."""

@final
class JsonlRules:
    """What to take from each row of a JSON Lines file.

    Parameters
    ----------
    text_fields : list of str
        Joined by a newline in this order; ``a.b`` is field b of the object in field a, ``a[].b`` that of each
        object in list a.
    id_field : str, optional
        A string or an integer, taken as it is written.
    id_required : bool
        Whether a row without an id is bad.
    fields : list of str
        Further fields, wanted as raw JSON.
    max_document : int
        Longest line in bytes, below 2**32.
    takes_tokens : bool
        Whether the only text field holds a list of tokens, which is encoded.
    are_weighted : bool
        Whether its entries are [token, weight] pairs.
    weight_scale : float, optional
        What real weights are multiplied by before they are rounded; whole numbers where None.
    roles : list of str
        Values of ``role`` or ``from``, in lower case, of items of lists that do not count.
    are_roles_counted : bool
        Whether only these count instead.
    """

    def __new__(
        cls,
        text_fields: list[str],
        id_field: str | None = None,
        id_required: bool = False,
        fields: list[str] = ...,
        max_document: int = ...,
        *,
        takes_tokens: bool = False,
        are_weighted: bool = False,
        weight_scale: float | None = None,
        text_without_tokens: list[str] = ...,
        roles: list[str] = ...,
        are_roles_counted: bool = False,
    ) -> JsonlRules: ...

@final
class JsonlPiece:
    """The rows of a piece of a file, the bad ones apart."""

    @property
    def texts(self) -> Texts: ...
    @property
    def ids(self) -> Texts:
        """Ids, "" where a row has none."""

    @property
    def has_id(self) -> Array:
        """1 where a row has an id: uint8."""

    @property
    def offsets(self) -> Array:
        """First byte of each row in the file: uint64."""

    @property
    def lengths(self) -> Array:
        r"""Bytes of each row without its newline (a ``\r`` counts): uint32."""

    @property
    def line_numbers(self) -> Array:
        """Line of each row in the piece, from 0: uint32."""

    @property
    def num_lines(self) -> int:
        """Lines of the piece: rows, bad rows and blank lines."""

    @property
    def num_blank(self) -> int:
        """Lines of whitespace only."""

    @property
    def fields(self) -> list[Texts]:
        """The further fields as raw JSON, "" where a row has none."""

    @property
    def errors(self) -> list[tuple[int, int, int, str, int]]:
        """Bad rows: line in the piece, offset, length, reason."""

def index_attached(path: Path, name: str) -> bytes | None:
    """Return what was attached to an index when it was made."""

def jsonl_pieces(path: str | PathLike[str], piece_bytes: int) -> list[tuple[int, int]]:
    """Cut a file into (offset, length) of about `piece_bytes` (up to 1 GiB), each ending behind a line end."""

def read_jsonl_piece(path: str | PathLike[str], offset: int, length: int, rules: JsonlRules) -> JsonlPiece:
    """Read and parse one piece."""

def read_jsonl_texts(
    path: str | PathLike[str], offsets: Buffer, lengths: Buffer, rules: JsonlRules, *, threads: int = 1
) -> Texts:
    """Read the texts of rows again, in the order asked.

    Parameters
    ----------
    offsets : uint64
    lengths : uint32
        As `JsonlPiece` gave them.

    Raises
    ------
    InvalidInput
        If a row is no longer one: the file changed.
    """

def rewrite_jsonl_rows(
    path: str | PathLike[str],
    offsets: Buffer,
    lengths: Buffer,
    rules: JsonlRules,
    cut: Cut,
    *,
    threads: int = 1,
) -> tuple[Array, Array, int]:
    """Write rows anew without stretches of their texts; all else stays byte for byte.

    Parameters
    ----------
    offsets : uint64
    lengths : uint32
        As `JsonlPiece` gave them.
    rules : JsonlRules
        With one text field.

    Returns
    -------
    lines : uint8
        The lines, each with a newline.
    ends : uint64
        Where the line of each row ends.
    num_removed_bytes : int
        Bytes of text that went.

    Raises
    ------
    InvalidInput
        If a row is no longer one: the file changed.
    """

def rewrite_csv_rows(
    reader: CsvReader,
    offsets: Buffer,
    lengths: Buffer,
    cut: Cut,
    *,
    threads: int = 1,
) -> tuple[Array, Array, int]:
    """Write records anew without stretches of their texts, as `rewrite_jsonl_rows`; other fields stay byte for byte.

    A quoted field stays quoted; another one gets quotes if what is left begins with one.
    """

def copy_lines(
    source: str | PathLike[str],
    target: str | PathLike[str],
    offsets: Buffer,
    lengths: Buffer,
    *,
    threads: int = 1,
) -> int:
    """Write byte ranges of `source` one after another into `target`, a new or emptied file.

    Parameters
    ----------
    offsets, lengths : uint64
        Line ends included. A range may reach one byte beyond the end of the source (a last line without a newline).

    Returns
    -------
    int
        Bytes written.
    """

@final
class PackedFile:
    """A gzip or zstd file that is being unpacked into a plain one, `spool`.

    Parameters
    ----------
    path, spool : path
        The packed file, and the plain one to make.
    codec : {"gzip", "zstd"}
        How it is packed.
    max_bytes, max_ratio : int
        Most plain bytes in all, and for each byte read (looked at beyond the first 64 MB).
    threads : int
        Threads that unpack frames of Zstandard which tell their size; all else is unpacked by one.
    """

    def __new__(
        cls,
        path: str | PathLike[str],
        spool: str | PathLike[str],
        *,
        codec: str,
        max_bytes: int,
        max_ratio: int,
        threads: int = 1,
    ) -> PackedFile: ...
    def next_piece(self, piece_bytes: int) -> tuple[int, int, int] | None:
        """Unpack about `piece_bytes` more: (offset, length, packed bytes) of whole lines; None at the end.

        Raises
        ------
        InvalidInput
            If the file unpacks to more than the limits allow.
        """

    def damage(self) -> tuple[str, int] | None:
        """Return why the file cannot be unpacked to its end, and how many plain bytes there are; None where it can.

        Known when all pieces are given. The last of them ends with the last whole line.
        """

@final
class ParquetJoin:
    """Parquet files of one schema joined into one: their row groups in order, under one footer.

    The joined file is the magic ``PAR1``, the ranges that :meth:`add` names, and what :meth:`finish` returns.

    Parameters
    ----------
    footer : bytes, optional
        Of the file that the rows come from: its columns are described as there, where they are laid out alike.
    """

    def __new__(cls, footer: bytes | None = None) -> ParquetJoin: ...
    def add(self, file: Buffer) -> tuple[int, int]:
        """Join one more file, given whole; return (start, stop) of its bytes that come next.

        Raises
        ------
        InvalidInput
            If it is no Parquet file, has another schema, or has a page index or a Bloom filter.
        """

    def finish(self) -> bytes:
        """Return the last bytes of the joined file: the footer of the first one with all row groups."""

def pack_lines(
    source: str | PathLike[str],
    target: str | PathLike[str],
    offsets: Buffer,
    lengths: Buffer,
    *,
    codec: str,
    threads: int = 1,
) -> int:
    """Write byte ranges as `copy_lines`, packed: gzip at level 6, zstd at level 1 with checksums; return the bytes."""

def checksum(data: Buffer) -> int:
    """Return XXH3-64 with seed 0 of uint8 data."""

def range_checksum(path: str | PathLike[str], offset: int, length: int) -> int:
    """Return `checksum` of a range of bytes of a file.

    Raises
    ------
    InvalidInput
        If the file ends before.
    """

def csv_header(path: str | PathLike[str], delimiter: int, has_quotes: bool) -> tuple[list[str], int, int]:
    """Return the columns of a file, the bytes up to the end of its header, and the blank lines before it."""

@final
class CsvReader:
    """What is read of the records of a CSV file.

    Parameters
    ----------
    path : path
        The file.
    delimiter : int
        The byte between fields.
    has_quotes : bool
        Whether a quote at the beginning of a field opens a quoted one.
    text_columns : list of int
        Joined by a newline in this order.
    id_column : int, optional
    id_required : bool
        Whether a record with an empty id is bad.
    field_columns : list of (int or None)
        Further columns, wanted as JSON.
    max_document : int
        Longest record in bytes, below 2**32.
    """

    def __new__(
        cls,
        path: str | PathLike[str],
        *,
        delimiter: int,
        has_quotes: bool,
        text_columns: list[int],
        id_column: int | None,
        id_required: bool,
        field_columns: list[int | None],
        max_document: int,
    ) -> CsvReader: ...
    def read(self, offset: int, length: int, stray_lines: list[int], num_lines_before: int = 0) -> JsonlPiece:
        """Return the records of a piece as `CsvSplitter` gave it; safe from several threads. Stray lines are bad rows.

        A record counts as one line. Lines before the piece that belong to it, such as the header, are counted with it.
        """

@final
class CsvSplitter:
    """Cuts a CSV file into pieces of whole records, from byte `start`, where a record begins.

    The file may still be written to while it is cut. A quoted field that holds a line end must be closed by a quote
    before a delimiter, a line end or the end of the file; if it is not, the first line of its record is a stray line,
    and the next record begins behind it.
    """

    def __new__(cls, path: str | PathLike[str], *, delimiter: int, has_quotes: bool, start: int) -> CsvSplitter: ...
    def next_piece(self, limit: int, piece_bytes: int, is_end: bool) -> tuple[int, int, list[int]] | None:
        """Return (offset, length, where stray lines begin) of the next piece; None if none ends before byte `limit`.

        A piece has at least `piece_bytes`.

        With `is_end` the file ends at `limit`, and what is left is a piece.
        """

def read_csv_texts(reader: CsvReader, offsets: Buffer, lengths: Buffer, *, threads: int = 1) -> Texts:
    """Read the texts of records again, in the order asked, as `read_jsonl_texts`; safe from several threads."""
