"""The online index as plain Python: the decision document by document, removal, promotion and expiry.

Written from docs/concepts/online-index.md and the definitions, based only on the slow oracle. Lists keep all documents
forever, every search visits every document, and nothing is fast.
"""

import functools
import itertools
from typing import NamedTuple

from tests.oracle import candidates, decide, measures
from tests.oracle.candidates import LEVELS, MEMBERS


class Verdict(NamedTuple):
    """The verdict on a document; `kept_id`, `similarity` and `distance` are None if it is new."""

    doc_id: str | None
    is_new: bool
    kept_id: str | None
    similarity: float | None
    distance: int | None
    seq: int | None
    added: bool


class Removal(NamedTuple):
    doc_id: str
    was_kept: bool
    promoted: tuple
    moved: tuple


class Refused(Exception):
    """Ids that exist with a different text, or do not exist."""


class Evidence(NamedTuple):
    """The kept document that a document matches, with similarity and distance."""

    kept_row: int
    similarity: float
    distance: int | None


class Row:
    """One document and its current state."""

    def __init__(self, row, doc_id, text, document, arrival_s):
        self.row, self.doc_id, self.text, self.document, self.arrival_s = row, doc_id, text, document, arrival_s
        self.evidence = None
        self.gone = False
        self.stands = False  # whether it represents its class and is in the tables
        self.places = None  # band -> level of the bucket that it is in, or would be in if it were in the tables

    @property
    def kept(self):
        return self.evidence is None and not self.gone


@functools.lru_cache(maxsize=4096)
def sketched(recipe, text):
    return decide.Online(recipe).document(-1, text)


class ModelIndex:
    """An index of documents by an oracle's recipe (`tests.recipes.oracle_recipe`)."""

    def __init__(self, recipe, ttl_s=None, ttl_from="first_seen"):
        assert recipe.method in ("simhash", "minhash")
        self.recipe, self.ttl_s, self.ttl_from = recipe, ttl_s, ttl_from
        self.rows = []
        self.row_of = {}  # ids of present documents
        self.class_of = {}  # key -> rows that represent the class, ascending; several only after removals
        self.buckets = {}
        rule = decide.Online(recipe)
        self.bands = rule.bands if recipe.method == "minhash" else None
        self._match = rule.match

    def __len__(self):
        return len(self.row_of)

    # Documents that a document is compared with.

    def _document(self, text):
        return sketched(self.recipe, text)

    def _members_of(self, document, band, level):
        """Return the members of a document's bucket that are not gone."""
        members = self.buckets.get((band, level, self.bands.key(document.sketch, band, level)), [])
        return [row for row in members if not self.rows[row].gone]

    def _seen(self, document):
        """Return the rows in the tables that a document is compared with, ascending."""
        if not document.weights:
            return []
        if self.bands is None:
            return [
                other.row
                for other in self.rows
                if other.stands
                and other.document.weights
                and candidates.distance(document.sketch, other.document.sketch) <= self.recipe.within
            ]
        places = itertools.product(range(self.bands.bands), range(LEVELS))
        return sorted({row for band, level in places for row in self._members_of(document, band, level)})

    def _stand(self, row):
        """Add a row to the tables as a representative of its class."""
        row.stands = True
        of_class = self.class_of.setdefault(row.document.key, [])
        of_class.append(row.row)
        of_class.sort()
        if self.bands is None or not row.document.weights:
            return
        if row.places is None:
            room = {
                band: [level for level in range(LEVELS) if len(self._members_of(row.document, band, level)) < MEMBERS]
                for band in range(self.bands.bands)
            }
            row.places = {band: min(levels) for band, levels in room.items() if levels}
        for band, level in row.places.items():
            key = self.bands.key(row.document.sketch, band, level)
            self.buckets.setdefault((band, level, key), []).append(row.row)

    def _best(self, document, others):
        """Return the evidence of the best matching kept row: highest similarity, then lowest row."""
        best = None
        for other in others:
            matched = self._match(document, self.rows[other].document) if self.rows[other].kept else None
            if matched and (best is None or matched[0] > best.similarity):
                best = Evidence(other, *matched)
        return best

    def _zero(self):
        return 0 if self.recipe.method == "simhash" else None

    def _decide(self, document):
        """Return the evidence of a document that arrives now, and the row that it collapses into, or None for each."""
        of_class = [self.rows[row] for row in self.class_of.get(document.key, []) if not self.rows[row].gone]
        for other in of_class:
            if other.kept:
                return Evidence(other.row, 1.0, self._zero()), other
        for other in of_class:
            # A row whose leader has expired has no evidence.
            if not self.rows[other.evidence.kept_row].gone:
                return other.evidence, other
        return self._best(document, self._seen(document)), None

    # The interface.

    def check(self, text):
        return self._say(None, self._decide(self._document(text))[0], None)

    def _say(self, doc_id, evidence, row, added=False):
        seq = None if row is None else row + 1
        if evidence is None:
            return Verdict(doc_id, True, None, None, None, seq, added)
        kept_id = self.rows[evidence.kept_row].doc_id
        return Verdict(doc_id, False, kept_id, evidence.similarity, evidence.distance, seq, added)

    def check_and_add(self, doc_id, text, now_s=0):
        self.expire(now_s)
        known = self.row_of.get(doc_id)
        if known is not None:
            if self.rows[known].text != text:
                raise Refused(doc_id)
            return self._say(doc_id, self.rows[known].evidence, known)
        document = self._document(text)
        row = Row(len(self.rows), doc_id, text, document, now_s)
        row.evidence, into = self._decide(document)
        self.rows.append(row)
        self.row_of[doc_id] = row.row
        if into is None:
            self._stand(row)
        else:
            row.places = into.places
        return self._say(doc_id, row.evidence, row.row, added=True)

    add = check_and_add

    def check_and_add_batch(self, ids, texts, now_s=0):
        """Add all documents, or none if an id exists with a different text."""
        texts_by_id = {doc_id: self.rows[row].text for doc_id, row in self.row_of.items()}
        given = zip(ids, texts, strict=True)
        refused = [doc_id for doc_id, text in given if texts_by_id.setdefault(doc_id, text) != text]
        if refused:
            raise Refused(*refused)
        return [self.check_and_add(doc_id, text, now_s) for doc_id, text in zip(ids, texts, strict=True)]

    def check_batch(self, texts):
        return [self.check(text) for text in texts]

    def get(self, doc_id):
        row = self.row_of.get(doc_id)
        return None if row is None else self._say(doc_id, self.rows[row].evidence, row)

    def group(self, doc_id):
        """Return (id of the leader, ids of its members in order of arrival), or None."""
        row = self.row_of.get(doc_id)
        if row is None:
            return None
        evidence = self.rows[row].evidence
        leader = row if evidence is None else evidence.kept_row
        return self.rows[leader].doc_id, tuple(member.doc_id for member in self._members(leader))

    def _members(self, leader):
        return [row for row in self.rows if not row.gone and row.evidence and row.evidence.kept_row == leader]

    def remove(self, doc_id):
        row = self.row_of.pop(doc_id, None)
        if row is None:
            raise Refused(doc_id)
        leader = self.rows[row]
        was_kept = leader.kept
        leader.gone = True
        return Removal(doc_id, was_kept, *(self._reassign(row) if was_kept else ((), ())))

    def _reassign(self, row, newest_first=False):
        """Decide the duplicates of a gone row again. Return ids of promoted ones, and (id, kept id) of moved ones."""
        promoted, moved = [], []
        members = self._members(row)
        for member in reversed(members) if newest_first else members:
            # Documents of one class are compared even without a common bucket, or if their texts are empty.
            others = {*self._seen(member.document)}
            others |= {*self.class_of.get(member.document.key, [])}
            member.evidence = self._best(member.document, sorted(others - {member.row}))
            if member.evidence is not None:
                moved.append((member.doc_id, self.rows[member.evidence.kept_row].doc_id))
                continue
            promoted.append(member.doc_id)
            if not member.stands:
                self._stand(member)
        return tuple(promoted), tuple(moved)

    def erase(self, doc_ids):
        """Remove documents, also expired ones, in order of ids. Return the new kept ids of documents decided again."""
        kept_ids = {}
        for doc_id in dict.fromkeys(doc_ids):
            for row in [row for row in self.rows if row.doc_id == doc_id]:
                promoted, moved = self._reassign(row.row) if row.gone else self.remove(doc_id)[2:]
                kept_ids |= dict.fromkeys(promoted) | dict(moved)
        return {doc_id: kept_id for doc_id, kept_id in kept_ids.items() if doc_id not in doc_ids}

    def expire(self, now_s):
        """Drop documents older than `ttl_s`. From the last sighting, duplicates take their place, the newest first."""
        if self.ttl_s is None:
            return
        expired = [row for row in self.rows if not row.gone and row.arrival_s < now_s - self.ttl_s]
        for row in expired:
            row.gone = True
            del self.row_of[row.doc_id]
        for row in expired if self.ttl_from == "last_seen" else ():
            self._reassign(row.row, newest_first=True)

    def neighbors(self, text, k=10, min_similarity=0.0):
        """Return (id, similarity, distance, whether they match) of the kept documents found, most similar first."""
        document = self._document(text)
        found = []
        for other in sorted({*self._seen(document), *self.class_of.get(document.key, [])}):
            row = self.rows[other]
            if row.kept:
                similarity, distance = self._measured(document, row.document)
                matches = self._match(document, row.document) is not None
                found.append((row.doc_id, similarity, distance, matches))
        found = [neighbor for neighbor in found if neighbor[1] >= min_similarity]
        return sorted(found, key=lambda neighbor: -neighbor[1])[:k]

    def _measured(self, document, other):
        """Return similarity and distance of two documents, regardless of any threshold."""
        distance = candidates.distance(document.sketch, other.sketch) if self.recipe.method == "simhash" else None
        if not document.weights:
            return 1.0, distance
        if self.recipe.measure is None:
            return 1 - distance / self.recipe.bits, distance
        return measures.similarity(document.weights, other.weights, self.recipe.measure), distance

    def ids(self):
        """Return the ids of present documents, in order of arrival."""
        return [row.doc_id for row in self.rows if not row.gone]

    def merge(self, other, now_s=0):
        """Add the documents of another model in order. Return the verdicts of those whose kept document changed."""
        given = [row for row in other.rows if not row.gone]
        refused = [
            row.doc_id
            for row in given
            if row.doc_id in self.row_of and self.rows[self.row_of[row.doc_id]].text != row.text
        ]
        if refused:
            raise Refused(*refused)
        changed = []
        for row in given:
            before = None if row.evidence is None else other.rows[row.evidence.kept_row].doc_id
            verdict = self.check_and_add(row.doc_id, row.text, now_s)
            if verdict.kept_id != before:
                changed.append(verdict)
        return changed

    def is_consistent(self):
        """Return whether P1 and the guarantees of removal hold: evidence names a kept document that matches."""
        for row in self.rows:
            if row.gone or row.evidence is None:
                continue
            leader = self.rows[row.evidence.kept_row]
            if not leader.kept and self.ttl_s is None:
                return False
            if self._match(row.document, leader.document) is None and row.document.key != leader.document.key:
                # A collapsed document has the evidence of the row that it collapsed into.
                stood = [other for other in self.rows if other.row < row.row and other.document.key == row.document.key]
                if not stood:
                    return False
        return True
