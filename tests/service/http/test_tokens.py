"""Lists of tokens over HTTP: collections whose recipe takes tokens decide on them as an index does."""

import json

import pytest

import likewise
from tests.index.classic import RECIPE, check_verdicts, documents
from tests.service.http.answers import PAGES, problem

WORDS = {"method": "minhash", "tokens": "user", "tokenizer": "words 1", "threshold": 0.5, "shingle": 1}
OF_WORDS = likewise.Recipe.minhash(0.5, tokens="user", tokenizer="words 1", shingle=1)


def test_pairs_of_token_and_weight(begin, tmp_path):
    client = begin(recipe=RECIPE.to_dict())
    pages = documents()
    batch = [{"doc_id": i, "text": page} for i, page in enumerate(pages)]
    found = client.post(f"{PAGES}/add/batch", json={"documents": batch}).json()["verdicts"]
    with likewise.Index(tmp_path / "alone", RECIPE) as index:
        own = index.check_and_add_batch([str(i) for i in range(len(pages))], pages)
        assert [(one["kept_id"], one["distance"]) for one in found] == [(one.kept_id, one.distance) for one in own]
        near = client.post(f"{PAGES}/neighbors", json={"text": pages[1]}).json()["neighbors"]
        assert near == [one._asdict() for one in index.neighbors(pages[1])]
    lines = "\n".join(json.dumps({"text": page}) for page in pages[:3])
    answers = client.post(f"{PAGES}/check/batch", content=lines, headers={"content-type": "application/x-ndjson"})
    assert [json.loads(line)["is_new"] for line in answers.text.splitlines()] == [False] * 3
    for text, wanted in [("solar", "a list of [token, weight] pairs"), (["a"], "pairs"), ([["a", 1e6]], "when scaled")]:
        answer = client.post(f"{PAGES}/check", json={"text": text})
        problem(answer, "invalid", "text")
        assert wanted in answer.json()["detail"]


def test_tokens_without_weights(begin):
    client = begin(recipe=WORDS)
    documents = [{"doc_id": "a", "text": ["near", "copies"]}, {"doc_id": "b", "text": ["copies", "near"]}]
    found = client.post(f"{PAGES}/add/batch", json={"documents": documents}).json()["verdicts"]
    assert [one["kept_id"] for one in found] == [None, "a"]
    documents[1]["text"] = [["near", 1]]
    problem(client.post(f"{PAGES}/add/batch", json={"documents": documents}), "invalid", "documents.1.text")
    problem(client.post(f"{PAGES}/check/batch", json={"texts": [["a"], "a"]}), "invalid", "texts.1")
    problem(client.post(f"{PAGES}/neighbors", json={"text": "a"}), "invalid", "text")
    problem(client.post(f"{PAGES}/check", json={"text": [1]}), "invalid", "text")


# The third is the first after normalization; the last has neither tokens nor a text.
UNCUT = [
    {"tokens": [], "text": "Библиотека открыта"},
    {"text": "Паром ходит", "tokens": [""]},
    {"tokens": ["", ""], "text": " библиотека\nОТКРЫТА"},
    {"tokens": ["паром"], "text": "Библиотека открыта"},
    {"tokens": []},
    {"tokens": [], "text": None},
    ["паром"],
]
UNCUT_KEPT = [None, None, "0", None, None, "4", "3"]


@pytest.mark.parametrize("recipe", [WORDS, RECIPE.to_dict()])
def test_tokens_come_with_the_text_that_describes_a_document_without_tokens(begin, tmp_path, recipe):
    if recipe is not WORDS:
        weigh = [[(token, 2.5) for token in (one["tokens"] if isinstance(one, dict) else one)] for one in UNCUT]
        texts = [one | {"tokens": cut} if isinstance(one, dict) else cut for one, cut in zip(UNCUT, weigh, strict=True)]
    else:
        texts = UNCUT
    client = begin(recipe=recipe)
    batch = [{"doc_id": i, "text": text} for i, text in enumerate(texts)]
    found = client.post(f"{PAGES}/add/batch", json={"documents": batch}).json()["verdicts"]
    assert [one["kept_id"] for one in found] == UNCUT_KEPT
    resolved = OF_WORDS if recipe is WORDS else RECIPE
    assert likewise.dedup(texts, resolved).kept.tolist() == [kept is None for kept in UNCUT_KEPT]
    with likewise.Index(tmp_path / "alone", resolved) as index:
        assert index.check_and_add_batch([str(i) for i in range(len(texts))], texts).kept_ids == UNCUT_KEPT
        assert index.check(texts[2]).kept_id == "0"
    lines = "\n".join(json.dumps({"text": text}) for text in texts)
    answers = client.post(f"{PAGES}/check/batch", content=lines, headers={"content-type": "application/x-ndjson"})
    kept = [own or str(i) for i, own in enumerate(UNCUT_KEPT)]
    assert [json.loads(line)["kept_id"] for line in answers.text.splitlines()] == kept
    near = client.post(f"{PAGES}/neighbors", json={"text": texts[2], "among": "kept"}).json()["neighbors"]
    assert [one["doc_id"] for one in near if one["matches"]] == ["0"]
    for text in ({"text": "a"}, {"tokens": [], "words": []}, {"tokens": "a"}, {"tokens": [], "text": 1}, {}):
        problem(client.post(f"{PAGES}/check", json={"text": text}), "invalid")
        with pytest.raises(likewise.errors.InvalidInput):
            likewise.dedup([text], resolved)


def test_the_client_sends_tokens_with_their_text(running):
    with likewise.Client(running.url) as client:
        client.create_collection("uncut", OF_WORDS)
    with likewise.Client(running.url, collection="uncut") as client:
        added = client.check_and_add_batch(list("0123456"), UNCUT)
        assert added.kept_ids == UNCUT_KEPT
        assert client.check({"tokens": ("",), "text": "ПАРОМ ходит \ud800"}).is_new
        assert client.check({"tokens": ("",), "text": "ПАРОМ ходит"}).kept_id == "1"
        for wrong in ({"tokens": 3}, {"text": "a"}):
            with pytest.raises(likewise.errors.LikewiseError):
                client.check_batch([wrong])


def test_a_collection_of_texts_rejects_tokens(begin):
    client = begin(max_document_characters=10)
    problem(client.post(f"{PAGES}/check", json={"text": ["a"]}), "invalid", "text")
    problem(client.post(f"{PAGES}/check", json={"text": ["a" * 6, "b" * 6]}), "invalid", "text")


def test_the_client_sends_tokens(running):
    with likewise.Client(running.url) as client:
        client.create_collection("cut-pages", RECIPE)
    with likewise.Client(running.url, collection="cut-pages") as client:
        check_verdicts(client)
        assert client.neighbors(documents()[0])[0].doc_id == "page-0"


def test_pairs_of_value_and_text(begin):
    recipe = likewise.Recipe.minhash(threshold=0.5, only_within="site")
    client = begin(recipe=recipe.to_dict())
    pages = [["a.example", "one fine day in spring"], ["b.example", "one fine day in spring"]]
    batch = [{"doc_id": i, "text": page} for i, page in enumerate([*pages, *pages])]
    found = client.post(f"{PAGES}/add/batch", json={"documents": batch}).json()["verdicts"]
    assert [one["kept_id"] for one in found] == [None, None, "0", "1"]
    for among, expected in (("all", ["1", "3"]), ("kept", ["1"]), ("candidates", ["1"])):
        near = client.post(f"{PAGES}/neighbors", json={"text": pages[1], "among": among}).json()["neighbors"]
        assert [one["doc_id"] for one in near] == expected
    answer = client.post(f"{PAGES}/check/batch", json={"texts": [pages[0], "one fine day in spring"]})
    problem(answer, "invalid", "texts.1")
    assert "[value, text] pair" in answer.json()["detail"]
