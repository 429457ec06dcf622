"""Tuning: measures the grid on labeled pairs, chooses a candidate, and evaluates it."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ColumnData, TextData
from likewise.batch.in_memory import Nulls, document_source, null_option_named
from likewise.errors import InvalidInput, InvalidParameter, counted, num_threads
from likewise.io.output.whole import write_whole
from likewise.io.source.source import Source
from likewise.job.reading import FileRun, RunRules, found_inputs
from likewise.progress import Progress, no_progress, shows_progress, stage, taken
from likewise.recipe.fields import Tokens
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import USER_TOKENS
from likewise.recipe.word_lists import Words
from likewise.stages.text import TextField
from likewise.tuning.choice import (
    Chosen,
    Evidence,
    Measured,
    Proposal,
    Tried,
    are_told_apart,
    choices,
    cross_validated,
    measured,
)
from likewise.tuning.collection import Collection, open_collection
from likewise.tuning.grid import BITS, Candidate, Sample, grid
from likewise.tuning.labels import Label, Labels, as_labels
from likewise.tuning.questions import Questions, ranked_pairs

MOST_DOCUMENTS = 1000
# Minimum number of labels of each kind; with fewer, a threshold is a guess.
LEAST_LABELS = 5
# A lower bound of precision below this adds a note.
_LEAST_PRECISION = 0.5
# Diverse recipes that together rank the pairs to ask about.
RANKING = (("jaccard", 2, "none"), ("jaccard", 2, "idf"), ("jaccard", 5, "none"), ("cosine", 1, "log-count-idf"))
# Number of intervals of the distribution.
_STEPS = 20
_FEW_SETTINGS = 21


class Tuner:
    """Measures the grid on a collection. Created by :func:`open_tuner`."""

    def __init__(self, collection: Collection, candidates: Sequence[Candidate], seed: int) -> None:
        self._collection, self._candidates, self._seed = collection, list(candidates), seed
        self._place = {doc_id: i for i, doc_id in enumerate(collection.doc_ids)}
        self._shared_ids = {name for name, num in Counter(collection.doc_ids).items() if num > 1}
        self._pairs = collection.sample_pairs
        self._ranked: tuple[NDArray[np.int64], NDArray[np.float64]] | None = None
        self._sample: Sample | None = None
        self._of_sample: dict[int, NDArray[np.float32]] = {}

    @property
    def num_documents(self) -> int:
        """Number of documents in the inputs."""
        return self._collection.num_documents

    @property
    def num_sampled(self) -> int:
        """Number of documents for which all pairs are measured."""
        return int(np.count_nonzero(self._collection.is_sampled))

    def doc_id(self, place: int) -> str:
        """Return the id of a document by its position in the pairs of the questions."""
        return self._collection.doc_ids[place]

    def text(self, doc_id: str) -> str | bytes:
        """Return the text of a document by its id."""
        found: str | bytes = self._collection.texts[self._place[doc_id]]
        return found

    @property
    def first_name(self) -> str:
        """Short description of the first candidate, whose similarities :meth:`distribution` counts."""
        return self._candidates[0].name

    def distribution(self, candidate: int = 0) -> list[tuple[float, int]]:
        """Return the number of pairs of the sample in each interval of 0.05: (lower edge, pairs), ascending."""
        counts = np.histogram(self.similarities(candidate), np.arange(_STEPS + 1) / _STEPS)[0]
        return [(i / _STEPS, int(count)) for i, count in enumerate(counts)]

    def questions(self, seed: int | None = None) -> Questions:
        """Return the pairs of the sample to ask about. By default, they are drawn with the tuner's seed."""
        sample = self._sampled()
        if self._ranked is None:
            numbers = [
                number
                for number, candidate in enumerate(self._candidates)
                if (candidate.measure, candidate.shingle, candidate.weights) in RANKING
            ]
            ranked = ranked_pairs([self.similarities(number) for number in numbers or [0]], self.num_sampled)
            alike = np.stack([self.similarities(number)[ranked] for number in range(len(self._candidates))])
            self._ranked = ranked, sample.features(alike)
        drawn_by = self._seed if seed is None else seed
        ranked, features = self._ranked
        return Questions(ranked, self._pairs, self._collection.doc_ids, drawn_by, sample, features)

    def propose(self, labels: Labels) -> Proposal:
        """Return the recipe that fits the labels best.

        Raises
        ------
        InvalidInput
            If fewer than five pairs of either kind are labeled, or no recipe separates them better than chance.
        """
        used, notes = self._known(labels)
        is_duplicate = np.array([label.is_duplicate for label in used], bool)
        num_duplicates = int(is_duplicate.sum())
        num_others = len(used) - num_duplicates
        if min(num_duplicates, num_others) < LEAST_LABELS:
            raise InvalidInput(
                f"{counted(num_duplicates, 'pair is labeled a duplicate', 'pairs are labeled duplicates')} and "
                f"{counted(num_others, 'is', 'are')} not; at least {LEAST_LABELS} of each are required, and about 60 "
                f"in total are recommended" + "".join(f"; {note}" for note in notes)
            )
        pairs = np.array([[self._place[label.a], self._place[label.b]] for label in used], np.int64)
        evidence = self._evidence(
            pairs, is_duplicate, np.array([label.weight for label in used]), self._pairs_labeled_as_neither(labels)
        )
        chosen, found = choices(evidence)
        tried = self._tried(evidence, found)
        candidate = self._candidates[chosen.candidate]
        held_out, is_told_held_out = cross_validated(evidence)
        # The model can also learn that duplicates are less similar, which no threshold can express.
        if not is_told_held_out or not are_told_apart(evidence.similarity[chosen.candidate], is_duplicate):
            raise InvalidInput(
                "no recipe separates your labels better than chance; check the labels, or try other --tokens"
                + "".join(f"; {note}" for note in notes)
            )
        best = next(one for one in tried if one.candidate is candidate)
        notes += self._doubts(evidence, chosen, held_out)
        return Proposal(
            candidate.recipe(chosen.setting),
            best,
            held_out,
            tried,
            self.num_documents,
            self.num_sampled,
            num_duplicates,
            num_others,
            notes,
        )

    def _known(self, labels: Labels) -> tuple[list[Label], list[str]]:
        """Return the labels of documents in the collection, and notes about all others."""
        notes = list(labels.notes)
        said = [label for label in labels.labels if label.is_duplicate is not None]
        if len(said) < len(labels):
            notes.append(f"{counted(len(labels) - len(said), 'pair was', 'pairs were')} skipped")
        unknown = [label for label in said if label.a not in self._place or label.b not in self._place]
        if unknown:
            first = next(name for name in (unknown[0].a, unknown[0].b) if name not in self._place)
            named = counted(len(unknown), "label names a document that is", "labels name documents that are")
            notes.append(f"{named} not in the input, such as {first!r}")
        clear = [label for label in said if self._is_clear(label)]
        if num_shared := len(said) - len(unknown) - len(clear):
            shared = (
                "label with an id that several documents share was",
                "labels with ids that several documents share were",
            )
            notes.append(f"{counted(num_shared, *shared)} ignored")
        return clear, notes

    def _is_clear(self, label: Label) -> bool:
        """Return whether each id of a label belongs to one document."""
        ids = {label.a, label.b}
        return ids <= self._place.keys() and not ids & self._shared_ids

    def _evidence(
        self,
        pairs: NDArray[np.int64],
        is_duplicate: NDArray[np.bool_],
        weight: NDArray[np.float64],
        neither: NDArray[np.int64],
    ) -> Evidence:
        similarity = self._of_each(partial(self._measured, pairs=pairs))
        excluded = self._numbers_in_sample(neither)
        return Evidence(
            np.array(similarity),
            is_duplicate,
            weight,
            self._sampled(),
            self._numbers_in_sample(pairs),
            excluded[excluded >= 0],
        )

    def _pairs_labeled_as_neither(self, labels: Labels) -> NDArray[np.int64]:
        """Return the pairs of documents that were labeled as neither duplicates nor different: shape (m, 2)."""
        found = [
            [self._place[label.a], self._place[label.b]]
            for label in labels.labels
            if label.is_duplicate is None and self._is_clear(label)
        ]
        return np.array(found, np.int64).reshape(-1, 2)

    def _numbers_in_sample(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of each pair of documents among all pairs of the sample; -1 if it is not in the sample."""
        is_sampled = self._collection.is_sampled
        rank = np.cumsum(is_sampled) - 1
        num = int(is_sampled.sum())
        first, second = rank[pairs.min(axis=1)], rank[pairs.max(axis=1)]
        found: NDArray[np.int64] = first * num - first * (first + 1) // 2 + second - first - 1
        return np.where(is_sampled[pairs].all(axis=1), found, -1)

    def _of_each(self, measure: Callable[[int], NDArray[Any]]) -> list[NDArray[Any]]:
        """Return what a function measures of each candidate, whose number it takes."""
        found = []
        with stage(self._collection.progress, "measuring", len(self._candidates), "recipes") as advance:
            for number in range(len(self._candidates)):
                found.append(measure(number))
                advance(number + 1)
        return found

    def _sampled(self) -> Sample:
        """Return the sample, with similarities by the whole grid."""
        if self._sample is None:
            is_measured = len(self._of_sample) == len(self._candidates)
            each = map(self.similarities, range(len(self._candidates)))
            sampled = list(each) if is_measured else self._of_each(self.similarities)
            self._sample = Sample(sampled, [one.settings for one in self._candidates], self.num_sampled)
        return self._sample

    def _measured(self, number: int, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the similarities of pairs; unknown ones of the sample are measured in the same pass."""
        candidate = self._candidates[number]
        if number in self._of_sample:
            return self._collection.similarity(candidate, pairs)
        both = self._collection.similarity(candidate, np.concatenate([self._pairs, pairs]))
        self._of_sample[number] = both[: len(self._pairs)].astype(np.float32)
        return both[len(self._pairs) :]

    def similarities(self, number: int) -> NDArray[np.float32]:
        """Return the similarities of all pairs of the sample by a candidate of the grid."""
        if number not in self._of_sample:
            found = self._collection.similarity(self._candidates[number], self._pairs)
            self._of_sample[number] = found.astype(np.float32)
        return self._of_sample[number]

    def _tried(self, evidence: Evidence, found: Sequence[Chosen]) -> list[Tried]:
        tried = [
            Tried(
                self._candidates[one.candidate],
                one.setting,
                one.score,
                measured(evidence.similarity[one.candidate] >= one.setting, evidence.is_duplicate, evidence.weight),
                _curve(evidence, one.candidate),
            )
            for one in found
        ]
        return sorted(tried, key=lambda one: -one.score)

    def _doubts(self, evidence: Evidence, chosen: Chosen, held_out: Measured) -> list[str]:
        notes = []
        similarity = evidence.similarity[chosen.candidate]
        taken = similarity[evidence.is_duplicate]
        left = similarity[~evidence.is_duplicate]
        if taken.min() > left.max():
            notes.append(
                f"no labeled pair has a similarity from {left.max():.2f} to {taken.min():.2f} by the proposed recipe; "
                "label pairs in this range to refine the threshold"
            )
        if not held_out.precision.low >= _LEAST_PRECISION:
            notes.append(
                f"precision may be as low as {held_out.precision.low:.0%}; label more pairs (--questions N asks for N "
                "in total), and check what a run removes before you rely on it"
            )
        if held_out.f1.high - held_out.f1.low > 0.2:
            notes.append("the interval of F1 is wider than 0.2; label more pairs (--questions N) to narrow it")
        if self.num_sampled < self.num_documents:
            notes.append(
                f"all pairs of {self.num_sampled:,} of the {self.num_documents:,} documents were measured; the whole "
                "collection has more unrelated pairs, so precision may be lower"
            )
        return notes


@contextmanager
def open_tuner(
    inputs: Sequence[str | Path] | str | Path,
    labels: Labels | None = None,
    *,
    run: FileRun | None = None,
    method: str | None = None,
    tokens: str | None = None,
    weights: str | None = None,
    rules: dict[str, Any] | None = None,
    most_documents: int = MOST_DOCUMENTS,
    seed: int = 0,
    output: Path | None = None,
    progress: Progress | None = None,
) -> Iterator[Tuner]:
    """Open a collection for tuning by the candidates of ``likewise.tuning.grid.grid``, as a context."""
    run, report = run or FileRun(), progress or no_progress
    names = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    if run.tokens_field is not None and tokens not in (None, USER_TOKENS):
        raise InvalidParameter("tokens", f"--tokens-field requires tokens {USER_TOKENS}, not {tokens}")
    tried = _Tried(method, tokens or (None if run.tokens_field is None else USER_TOKENS), weights, rules or {})
    with (
        found_inputs(names, tried.fold, run, output, report) as found,
        _opened(found.files, run.run_rules(), labels, tried, most_documents, seed, report) as tuner,
    ):
        yield tuner


class _Tried:
    """The candidates to try, and how texts are tokenized for the search of neighbors."""

    def __init__(self, method: str | None, tokens: str | None, weights: str | None, rules: dict[str, Any]) -> None:
        if "stop_words" in rules:
            # Stop words apply to words only.
            tokens = tokens or "auto"
        if weights is not None or "tokenizer" in rules:
            tokens = USER_TOKENS
        self.candidates = grid(method=method, tokens=tokens, weights=weights, rules=rules)
        rules = {"weights": weights or "log-count", **_words(tokens), **rules}
        self.fold = Recipe.simhash(within=20, bits=BITS, **rules)


@contextmanager
def _opened(
    sources: Sequence[Source],
    rules: RunRules,
    labels: Labels | None,
    tried: _Tried,
    most_documents: int,
    seed: int,
    progress: Progress,
) -> Iterator[Tuner]:
    ids = {name for label in (labels.labels if labels else ()) for name in (label.a, label.b)}
    with open_collection(
        sources, rules, sorted(ids), most_documents=most_documents, seed=seed, fold=tried.fold, progress=progress
    ) as collection:
        yield Tuner(collection, tried.candidates, seed)


@shows_progress
def tune(
    texts: TextData,
    labels: ColumnData,
    *,
    ids: ColumnData = None,
    text_field: TextField = "text",
    nulls: Nulls = "fail",
    method: Literal["minhash", "simhash"] | None = None,
    tokens: Tokens | None = None,
    markup: Literal["html"] | None = None,
    fold: tuple[str, ...] | list[str] | str | None = None,
    stop_words: Words | None = None,
    tokenizer: str | None = None,
    weights: Literal["own"] | None = None,
    weight_scale: float | None = None,
    most_documents: int = MOST_DOCUMENTS,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | bool | None = None,
) -> Proposal:
    """Choose a recipe and threshold from labeled pairs of documents in memory.

    Parameters
    ----------
    texts, ids, text_field, nulls, threads, progress
        As for :func:`likewise.dedup`. If the documents have no ids, labels refer to row numbers.
    labels : table, list of tuples, str or Path
        A table with the columns ``id_a``, ``id_b``, ``label`` (also ``doc_id_a``, ``doc_id_b``), and optionally
        ``weight``; tuples of two ids and a label; or a file with these columns. A label is 1 or True for duplicates, 0
        or False for other pairs, and null for pairs that are neither.
    method, tokens : str, optional
        Try only these.
    markup, fold, stop_words
        As for :class:`likewise.Recipe`, for all recipes that are tried.
    tokenizer, weights, weight_scale
        For lists of tokens, as for :meth:`likewise.Recipe.own`: the name of the tokenizer, and ``weights="own"`` if
        each token has a weight.
    most_documents : int
        Maximum size of the sample for which all pairs are measured.
    seed : int
        Seed of the sample.

    Returns
    -------
    Proposal
        Pass its `recipe` to :func:`likewise.dedup`. `held_out` has its precision, recall and F1 on held-out labels.

    Raises
    ------
    InvalidInput
        If fewer than five pairs of either kind are labeled, or no recipe separates them better than chance.

    Examples
    --------
    >>> proposal = tune(frame, labels)  # doctest: +SKIP
    >>> result = likewise.dedup(frame, proposal.recipe)  # doctest: +SKIP
    """
    given = as_labels(labels)
    rules: dict[str, Any] = {"markup": markup, "fold": fold, "stop_words": stop_words}
    rules |= {"tokenizer": tokenizer, "weight_scale": weight_scale}
    tried = _Tried(method, tokens, weights, {name: value for name, value in rules.items() if value is not None})
    with null_option_named():
        source = document_source(texts, ids, tried.fold, text_field=text_field, nulls=nulls, is_read_again=True)
    run_rules = RunRules(num_threads(threads), "fail" if nulls == "fail" else "skip")
    with _opened([source], run_rules, given, tried, most_documents, seed, taken(progress)) as tuner:
        return tuner.propose(given)


def tune_files(
    inputs: Sequence[str | Path] | str | Path,
    labels: Labels,
    **options: Any,
) -> Proposal:
    """Choose a recipe and threshold from labeled pairs of documents in files. Raises as :func:`likewise.tune`.

    Parameters
    ----------
    inputs : path or sequence of paths
        Files, directories, globs, or ``-``.
    labels : Labels
        The result of :func:`read_labels`.
    **options
        Options of :func:`open_tuner`.
    """
    with open_tuner(inputs, labels, **options) as tuner:
        return tuner.propose(labels)


def write_recipe(recipe: Recipe, path: Path) -> None:
    """Write a recipe as JSON for ``--recipe``. The file is renamed into place when it is complete."""
    write_whole(path, json.dumps(recipe.to_dict(), indent=2, ensure_ascii=False) + "\n")


def _words(tokens: str | None) -> dict[str, Any]:
    return {"tokens": tokens or "char", "shingle": {None: 5, "char": 5, USER_TOKENS: 1}.get(tokens, 2)}


def _curve(evidence: Evidence, number: int) -> list[tuple[float, float, float]]:
    """Return precision and recall on the labels at every fifth setting, and at all of few."""
    found = []
    settings = evidence.sample.settings[number]
    for setting in settings[:: 5 if len(settings) > _FEW_SETTINGS else 1].tolist():
        verdicts = evidence.similarity[number] >= setting
        here = measured(verdicts, evidence.is_duplicate, evidence.weight)
        if verdicts.any():
            found.append((setting, here.precision.value, here.recall.value))
    return found
