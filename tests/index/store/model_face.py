"""The plain model with the Python interface of an index, to run the conformance suite on it, and on faulty versions."""

from types import SimpleNamespace

import numpy as np

import likewise
from tests.index.store.model import ModelIndex, Refused
from tests.recipes import oracle_recipe


class _Verdicts(list):
    """Columns of a list of verdicts."""

    is_new = property(lambda self: np.array([verdict.is_new for verdict in self], bool))
    kept_ids = property(lambda self: [verdict.kept_id for verdict in self])
    similarity = property(lambda self: [verdict.similarity for verdict in self])
    distance = property(lambda self: [verdict.distance for verdict in self])
    seq = property(lambda self: [verdict.seq for verdict in self])
    added = property(lambda self: [verdict.added for verdict in self])


class ModelFace:
    """An index with the plain model. It keeps its documents when it is closed, as long as the test holds it."""

    def __init__(self, recipe):
        self.recipe, self.model = recipe, ModelIndex(oracle_recipe(recipe))

    def _asked(self, verb, *given):
        try:
            return getattr(self.model, verb)(*given)
        except Refused as refused:
            raise likewise.errors.InvalidInput(f"refused: {refused}") from refused

    def _seen(self, verdict):
        return SimpleNamespace(**verdict._asdict(), measure=None if verdict.is_new else self.recipe.measure)

    def check(self, text):
        return self._seen(self.model.check(text))

    def check_batch(self, texts):
        return _Verdicts(map(self._seen, self.model.check_batch(texts)))

    def check_and_add(self, doc_id, text):
        return self._seen(self._asked("check_and_add", doc_id, text))

    def check_and_add_batch(self, ids, texts):
        return _Verdicts(map(self._seen, self._asked("check_and_add_batch", ids, texts)))

    add, add_batch = check_and_add, check_and_add_batch

    def get(self, doc_id):
        found = self.model.get(doc_id)
        return None if found is None else self._seen(found)

    def group(self, doc_id):
        found = self.model.group(doc_id)
        if found is None:
            raise likewise.errors.InvalidInput(f"unknown: {doc_id}")
        return SimpleNamespace(leader_id=found[0], member_ids=found[1])

    def remove(self, doc_id):
        return self._asked("remove", doc_id)

    def erase(self, ids):
        stored = {row.doc_id for row in self.model.rows}
        kept_ids = self.model.erase(ids)
        return SimpleNamespace(
            erased=tuple(doc_id for doc_id in ids if doc_id in stored),
            absent=tuple(doc_id for doc_id in ids if doc_id not in stored),
            promoted=tuple(doc_id for doc_id, kept_id in kept_ids.items() if kept_id is None),
            moved=tuple((doc_id, kept_id) for doc_id, kept_id in kept_ids.items() if kept_id is not None),
        )

    def neighbors(self, text, k=10, min_similarity=0.0, *, among="candidates"):
        found = self.model.neighbors(text, k, min_similarity)
        return [SimpleNamespace(doc_id=i, similarity=s, distance=d, matches=m) for i, s, d, m in found]

    def ids(self):
        return iter(self.model.ids())

    def __contains__(self, doc_id):
        return self.model.get(doc_id) is not None

    def close(self):
        pass

    def __len__(self):
        return len(self.model)
