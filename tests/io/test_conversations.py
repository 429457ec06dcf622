"""Texts in lists: conversations in both forms, roles, parts of messages, lists of strings, in every kind of input."""

import gzip
import json
import random

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.parts import PartRules, dedup_parts
from likewise.errors import InvalidInput, InvalidParameter
from likewise.job.reading import FileRun
from likewise.runs.audit.parts import audit_parts
from tests.batch.labels import grouped_texts
from tests.command import likewise_command
from tests.files import jsonl
from tests.oracle import turns

FORMS = {"messages[].content": ("role", "user", "assistant"), "conversations[].value": ("from", "human", "gpt")}
ROLES = [None, ("user",), ("assistant",), ("assistant", "system", "user"), ("tool",)]
RECIPE = likewise.Recipe.minhash(threshold=0.6)


def conversation(chance, path, text):
    """Return a row whose turns have the words of a text, with a system prompt and a tool call."""
    (column, key), (name, user, assistant) = path.split("[]."), FORMS[path]
    words = text.split() or [""]
    half = chance.randint(0, len(words))
    items = [
        {name: "system", key: chance.choice(["You are helpful.", "Answer in French, and only in French."])},
        {name: user, key: " ".join(words[:half])},
        {name: assistant, key: None},
        {name: chance.choice(["tool", "function"]), key: "result: 17"},
        {name: assistant.upper(), key: " ".join(words[half:])},
        *([{name: user, key: "yes"}] if chance.random() < 0.5 else []),
    ]
    return {column: items[chance.randint(0, 1) :]}


def conversations(path, num_groups=25):
    """Return rows of near-copies."""
    chance = random.Random(5)
    return [{"id": f"d{i}"} | conversation(chance, path, text) for i, text in enumerate(grouped_texts(num_groups, 5))]


def write(path, rows):
    """Write rows in the format that the name of the file says; return the path."""
    table = pa.Table.from_pylist(rows)
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=17)
    elif path.suffix == ".arrow":
        feather.write_feather(table, path, chunksize=11)
    else:
        jsonl(path, rows)
    return path


def evidence(out):
    """Return the removed documents and what they match."""
    found = pq.read_table(out / "removed.parquet").to_pylist()
    return [(row["doc_id"], row["kept_id"], row["similarity"]) for row in found]


@pytest.mark.parametrize("roles", ROLES)
@pytest.mark.parametrize("path", FORMS)
def test_both_forms_have_the_verdicts_of_their_texts(tmp_path, path, roles):
    rows = conversations(path)
    texts = [turns.text(row, path, roles) for row in rows]
    plain = [{"id": row["id"], "text": text} for row, text in zip(rows, texts, strict=True) if text is not None]
    run = FileRun(on_error="skip", max_bad_rows=1.0)
    likewise.dedup_files(jsonl(tmp_path / "plain.jsonl", plain), tmp_path / "plain", RECIPE, run=run)
    wanted = evidence(tmp_path / "plain")
    assert len(wanted) > 5 or roles == ("tool",)
    for name in ("a.jsonl", "a.jsonl.zst", "a.parquet", "a.arrow"):
        file = write(tmp_path / name.removesuffix(".zst"), rows)
        out = tmp_path / f"out-{name}"
        asked = FileRun((path,), on_error="skip", max_bad_rows=1.0)
        summary = likewise.dedup_files(file, out, RECIPE.replace(roles=roles), run=asked)
        assert evidence(out) == wanted, name
        assert summary["num_bad_rows"] == texts.count(None)
    kept = [json.loads(line) for line in (tmp_path / "out-a.jsonl/kept/a.jsonl").read_text().splitlines()]
    gone = {row[0] for row in wanted}
    assert kept == [row for row, text in zip(rows, texts, strict=True) if text is not None and row["id"] not in gone]
    table = pa.Table.from_pylist(rows)
    found = likewise.dedup(table, RECIPE.replace(roles=roles), text_field=path, nulls="drop")
    assert found.removed.column("doc_id").to_pylist() == [row[0] for row in wanted]
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(13))
    found = likewise.dedup(stream, RECIPE.replace(roles=roles), text_field=path, nulls="drop")
    assert found.removed.column("doc_id").to_pylist() == [row[0] for row in wanted]


def test_roles_are_part_of_the_recipe():
    assert RECIPE.roles is None
    by_name = RECIPE.replace(roles="human,GPT")
    assert by_name.roles == ("assistant", "user")
    assert by_name.recipe_id == RECIPE.replace(roles=["user", "assistant"]).recipe_id != RECIPE.recipe_id
    assert likewise.Recipe.from_json(by_name.to_json()) == by_name
    assert likewise.Recipe.exact(roles="critic").roles == ("critic",)
    for wrong in ("", ",", 3, [1], []):
        with pytest.raises(InvalidParameter, match="is not a list of roles"):
            RECIPE.replace(roles=wrong)
    with pytest.raises(InvalidParameter, match="roles does not apply to tokens bytes"):
        likewise.Recipe.minhash(tokens="bytes", roles="user")
    with pytest.raises(InvalidParameter, match="is a list; name a field with one value"):
        likewise.Recipe.minhash(only_within="messages[].name")


CONTENTS = {
    "text": "text",
    "parts": [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": "x"}}, {"text": "two\n"}],
    "strings": ["a \\ b", None, "\u00e9\U0001f600"],
    "null": None,
    "empty": "",
    "no parts": [],
    "image": [{"type": "image"}],
}


def read(tmp_path, rows, path, **options):
    """Return the texts that the reader of JSON Lines takes from rows, and the reasons of bad ones."""
    from likewise.io.lines.jsonl import JsonlFile
    from likewise.io.source.source import ReadRules, each_piece

    file = jsonl(tmp_path / "rows.jsonl", rows)
    reader = JsonlFile(file, "rows.jsonl", file.stat().st_size, ReadRules((path,), **options))
    pieces = [piece for _, piece in each_piece(reader, 1 << 20, tmp_path)]
    again = [reader.read_texts(piece.offsets, piece.lengths).to_list() for piece in pieces]
    texts = [piece.texts.to_list() for piece in pieces]
    assert again == texts
    return [text for some in texts for text in some], [bad.reason for piece in pieces for bad in piece.bad_rows]


@pytest.mark.parametrize("path", ["m[].c", "a.m[].c", "m[].a.c", "m[][].c", "m[]", "m", "a.m"])
def test_each_path_and_each_content(tmp_path, path):
    chance = random.Random(1)
    rows = []
    for _ in range(40):

        def item():
            content = chance.choice(list(CONTENTS.values()))
            fields = list(
                (
                    {"c": content, "n": 1.5} | chance.choice([{}, {"role": "System"}, {"role": None, "from": "x"}])
                ).items()
            )
            chance.shuffle(fields)
            return dict(fields)

        items = [item() for _ in range(chance.randint(0, 3))]
        if path == "m[].a.c":
            items = [
                {"a": {"c": one["c"]}} | {name: one[name] for name in ("role", "from") if name in one} for one in items
            ]
        elif path in ("m[]", "m", "a.m"):
            items = [one["c"] if isinstance(one["c"], str) or path == "m[]" else None for one in items]
        elif path == "m[][].c":
            items = [items, [item()], None]
        rows.append({"a": {"m": items}} if path.startswith("a.") else {"m": items})
    wanted = [turns.text(row, path) for row in rows]
    texts, reasons = read(tmp_path, rows, path, roles=_default_roles())
    assert texts == [text for text in wanted if text is not None]
    assert reasons == [f'no text in "{path}"'] * wanted.count(None)
    assert len(texts) > 10
    # A column has one type.
    plain = [row for row in rows if _is_plain(row)]
    table = pa.Table.from_pylist(plain)
    from likewise.io.tables.paths import text_of

    if plain and path not in ("m[][].c",):
        found = text_of(table, path, _default_roles()).to_pylist()
        assert found == [turns.text(row, path) for row in plain]


def _default_roles():
    from likewise.recipe.rules import role_names

    return role_names(None)


def _is_plain(row):
    return "[" not in json.dumps(row).replace('"m": [', "", 1)


def test_parts_in_columns():
    from likewise.io.tables.paths import text_of

    parts = [{"type": "text", "text": "one"}, {"type": "image", "text": None}, None, {"type": "text", "text": "two"}]
    rows = [{"m": [{"role": "user", "c": parts}, {"role": "system", "c": parts}, None]}, {"m": None}, {"m": []}]
    for size in (2, 3):
        some = pa.concat_tables(
            [pa.Table.from_pylist(rows[:size]), pa.Table.from_pylist(rows, None)], promote_options="permissive"
        )
        wanted = [turns.text(row, "m[].c") for row in (*rows[:size], *rows)]
        assert text_of(some, "m[].c", _default_roles()).to_pylist() == wanted
    large = pa.table({"p": pa.array([["a", None], [], None, ["b", "c"]], pa.large_list(pa.string_view()))})
    assert text_of(large, "p[]").to_pylist() == ["a", None, None, "b\nc"]
    fixed = pa.table(
        {"p": pa.array([["a", "b"], None, ["c", None]], pa.list_(pa.dictionary(pa.int8(), pa.string()), 2))}
    )
    assert text_of(fixed.slice(1), "p").to_pylist() == [None, "c"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"m": 3}, 'field "m[].c" is a number, not a string'),
        ({"m": None}, 'no text in "m[].c"'),
        ({}, 'no field "m[].c"'),
        ({"m": ["x"]}, 'field "m[].c": invalid type: string "x", expected an object'),
        ({"m": [{"c": 3}]}, 'field "m[].c": a number in the list, not a string'),
        ({"m": [{"c": {"text": "x"}}]}, 'field "m[].c": an object in the list, not a string'),
        ({"m": [{"c": [["x"]]}]}, 'field "m[].c": a list in the list, not a string'),
        ({"m": [{"c": [{"text": ["x"]}]}]}, 'field "m[].c": a list in the list, not a string'),
        ({"m": [{"d": "x"}]}, 'no text in "m[].c"'),
    ],
)
def test_bad_conversations(tmp_path, row, reason):
    texts, reasons = read(tmp_path, [row], "m[].c")
    assert (texts, reasons) == ([], [reason])


def test_numbers_that_json_lacks_and_repeated_keys(tmp_path):
    twice = '{"c": "x", "c": "y", "role": "system", "role": "user"}'
    line = f'{{"m": [{{"weight": NaN, "c": "a\\u00e9", "role": "user"}}, {twice}]}}'
    (tmp_path / "a.jsonl").write_text(line + "\n")
    from likewise.io.lines.jsonl import JsonlFile
    from likewise.io.source.source import ReadRules, each_piece

    reader = JsonlFile(tmp_path / "a.jsonl", "a.jsonl", len(line), ReadRules(("m[].c",), roles=_default_roles()))
    ((_, piece),) = each_piece(reader, 1 << 20, tmp_path)
    assert piece.texts.to_list() == ["a\u00e9\ny"]


def test_errors_name_the_path(tmp_path):
    rows = conversations("messages[].content", 3)
    for name in ("a.jsonl", "a.parquet"):
        ran = likewise_command("dedup", str(write(tmp_path / name, rows)), "-o", str(tmp_path / "out"))
        assert ran.status == 2
        assert "messages[].content" in ran.err, ran.err
    table = pa.Table.from_pylist(rows)
    for field in ("text", "messages", "messages[]"):
        with pytest.raises(InvalidInput, match=r"messages\[\]\.content"):
            likewise.dedup(table, text_field=field)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet", "a.arrow"])
def test_roles_that_no_message_has_are_met_with_those_there(tmp_path, name):
    """Case counts, but for ASCII letters, in files and in tables alike."""
    turn = {"role": "Автор", "content": "one two three four"}
    rows = [{"id": str(i), "messages": [{"role": "User", "content": f"text {i}"}, turn]} for i in range(3)]
    file = write(tmp_path / name.removesuffix(".gz"), rows)
    if name.endswith("gz"):
        file = tmp_path / name
        file.write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    table, path = pa.Table.from_pylist(rows), "messages[].content"
    for roles, num_kept in {"uSER": 3, "Автор": 1}.items():
        recipe = RECIPE.replace(roles=roles)
        summary = likewise.dedup_files(file, tmp_path / "out", recipe, text_field=path, overwrite=True)
        assert summary["num_kept"] == num_kept
        assert likewise.dedup(table, recipe, text_field=path).kept.sum() == num_kept
    for roles in ("автор", "assistent"):
        recipe = RECIPE.replace(roles=roles)
        with pytest.raises(InvalidInput, match=r"\(roles found: User, Автор\); choose roles with --roles, or skip"):
            likewise.dedup_files(file, tmp_path / "other", recipe, text_field=path)
        with pytest.raises(InvalidInput, match=rf"has the roles {roles} \(found: User, Автор\); choose"):
            likewise.dedup(table, recipe, text_field=path)


def test_frames_may_mix_texts_and_parts():
    pd = pytest.importorskip("pandas")
    text, other = "the quick brown fox jumps over", "a lazy dog sleeps near the old river"
    parts = [{"type": "text", "text": other}, {"type": "x"}]
    contents = [text, [{"type": "text", "text": text}], [text], other, parts, None]
    wanted = [True, False, False, True, False, True]
    frame = pd.DataFrame({"text": contents})
    assert likewise.dedup(frame, RECIPE, nulls="keep").kept.tolist() == wanted
    frame = pd.DataFrame({"messages": [[{"role": "user", "content": content}] for content in contents]})
    path = "messages[].content"
    assert likewise.dedup(frame, RECIPE, nulls="keep", text_field=path).kept.tolist() == wanted
    with pytest.raises(InvalidInput, match="types that Arrow has, one type each"):
        likewise.dedup(pd.DataFrame({"text": [text, 7]}), RECIPE)


def test_ids_and_fields_are_in_no_list(tmp_path):
    table = pa.Table.from_pylist(conversations("messages[].content", 3))
    for options in ({"ids": "messages[].role"}, {"keep": "max:messages[].role"}):
        with pytest.raises(InvalidInput, match=r"'messages\[\]\.role' is in a list; name a field with one value"):
            likewise.dedup(table, text_field="messages[].content", **options)


STORY = "Once upon a time there was a king who had a horse that could speak five languages."
CHATS = [
    {"id": i, "messages": [{"role": "user", "content": first}, {"role": "assistant", "content": second}], "n": 1.50}
    for i, (first, second) in enumerate(
        [
            ("yes", f"Sure!\n{STORY}"),
            ("yes", f"{STORY}\nAnd then \u00e9t\u00e9 came."),
            (f"{STORY} Go on.", "yes"),
            ("Tell me more about it", STORY),
            (STORY, STORY),
        ]
    )
]


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "a.arrow"])
@pytest.mark.parametrize("unit", ["line", "sentence", "span"])
def test_repeated_parts_of_turns(tmp_path, name, unit):
    file = write(tmp_path / name, CHATS)
    run = FileRun(("messages[].content",))
    summary = dedup_parts(file, tmp_path / "out", PartRules(unit, 10 if unit == "span" else None), run=run)
    assert (summary["num_kept"], summary["num_emptied"]) == (5, 0)
    kept = tmp_path / "out/kept" / name
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if name == "a.jsonl" else None
    if rows is None:
        table = pq.read_table(kept) if name == "a.parquet" else feather.read_table(kept)
        assert table.schema == pa.Table.from_pylist(CHATS).schema
        rows = table.to_pylist()
    got = [[turn["content"] for turn in row["messages"]] for row in rows]
    # A line is removed as a whole, with its newline.
    third = {"line": f"{STORY} Go on.", "sentence": "Go on.", "span": "Go on."}[unit]
    assert got == [
        ["yes", f"Sure!\n{STORY}"],
        ["yes", "And then \u00e9t\u00e9 came."],
        [third, "yes"],
        ["Tell me more about it", ""],
        ["", ""],
    ]
    assert [row["id"] for row in rows] == [0, 1, 2, 3, 4]
    assert [row["messages"][0]["role"] for row in rows] == ["user"] * 5
    found = audit_parts(tmp_path / "out")
    assert found.passed, found.checks


def read_back(path):
    """Return the rows of a file."""
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return (pq.read_table(path) if path.suffix == ".parquet" else feather.read_table(path)).to_pylist()


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet", "a.arrow"])
@pytest.mark.parametrize("path", ["messages[].content", "paragraphs[]"])
def test_rows_stay_with_what_does_not_count(tmp_path, name, path):
    """Whatever repeated lines are removed, no row is, nor any message, role or other field."""
    chance, rows = random.Random(3), []
    lines = [" ".join(chance.choices(STORY.split(), k=9)) for _ in range(40)]
    for i in range(60):
        texts = ["\n".join(chance.sample([*lines, "yes", ""], chance.randint(1, 3))) for _ in range(3)]
        turns_ = [{"role": role, "content": text} for role, text in zip(ROLES[3], texts, strict=True)]
        messages = [*turns_, {"role": "assistant", "content": None, "call": f"f({i})"}]
        rows.append(
            {"id": f"d{i}", "n": i} | ({"messages": messages} if path.startswith("m") else {"paragraphs": texts})
        )
    seen = set()
    wanted = [
        row | {"messages": turns.without_repeats(row["messages"], "content", ("user", "assistant"), seen, 8)}
        if "messages" in row
        else row | {"paragraphs": [turns.without_lines(text, seen, 8) for text in row["paragraphs"]]}
        for row in rows
    ]
    file = write(tmp_path / name.removesuffix(".gz"), rows)
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress(file.read_bytes()))
        file = tmp_path / name
    out, run = tmp_path / "out", FileRun((path,))
    recipe = likewise.Recipe.exact(roles="user,assistant" if path.startswith("m") else None)
    summary = dedup_parts(file, out, PartRules("line"), recipe, run=run)
    assert (summary["num_kept"], summary["num_emptied"], (out / "emptied.jsonl").exists()) == (60, 0, False)
    kept = out / "kept" / name
    if name.endswith(".gz"):
        kept = tmp_path / "kept.jsonl"
        kept.write_bytes(gzip.decompress((out / "kept" / name).read_bytes()))
    # In a table, all messages have the same fields.
    assert read_back(kept) == (wanted if "jsonl" in name else pa.Table.from_pylist(wanted).to_pylist())
    assert sum(not turns.text(row, path, recipe.roles).strip() for row in wanted) > 20
    assert audit_parts(out).passed
    # Without brackets, a list is a text as any other.
    if path == "paragraphs[]":
        summary = dedup_parts(file, tmp_path / "plain", PartRules("line", 8), recipe, run=FileRun(("paragraphs",)))
        assert summary["num_kept"] == 60 - summary["num_emptied"] < 40
        assert audit_parts(tmp_path / "plain").passed


def test_an_audit_misses_a_row_that_is_gone(tmp_path):
    rows = [{"m": [{"role": "system", "content": f"System {i}"}, {"role": "user", "content": STORY}]} for i in range(2)]
    run, out = FileRun(("m[].content",)), tmp_path / "out"
    dedup_parts(write(tmp_path / "a.jsonl", rows), out, PartRules("line"), likewise.Recipe.exact(roles="user"), run=run)
    kept = (out / "kept/a.jsonl").read_text().splitlines()
    assert [json.loads(line)["m"][0]["content"] for line in kept] == ["System 0", "System 1"]
    assert json.loads(kept[1])["m"][1] == {"role": "user", "content": ""}
    (out / "kept/a.jsonl").write_text(kept[0] + "\n")
    assert not audit_parts(out).passed


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_the_items_of_the_last_list_have_roles(tmp_path, name):
    rows = [
        {"thread": {"posts": [{"role": role, "body": {"text": f"{word} {STORY}"}} for role, word in turns]}}
        for turns in ([("user", "one"), ("assistant", "two")], [("user", "one"), ("assistant", "three")])
    ]
    sessions = [{"sessions": [{"messages": row["thread"]["posts"]}, {"messages": []}]} for row in rows]
    for number, (path, given) in enumerate(
        [("thread.posts[].body.text", rows), ("sessions[].messages[].body.text", sessions)]
    ):
        file, out = write(tmp_path / f"{number}{name}", given), tmp_path / f"out{number}"
        summary = likewise.dedup_files(file, out, likewise.Recipe.exact(roles="user"), run=FileRun((path,)))
        assert (summary["num_kept"], summary["num_removed"]) == (1, 1), path
        assert [turns.text(row, path, ("user",)) for row in given] == [f"one {STORY}"] * 2


def test_roles_need_a_list(tmp_path):
    file = write(tmp_path / "a.jsonl", [{"text": "one fine day", "messages": [{"role": "user"}]}])
    recipe = likewise.Recipe.exact(roles="user")
    with pytest.raises(InvalidParameter, match="no text field is in a list"):
        likewise.dedup_files(file, tmp_path / "out", recipe)
    lists = pa.table({"messages": [{"role": ["user"], "content": ["one fine day"]}]})
    with pytest.raises(InvalidParameter, match="no text field is in a list"):
        likewise.dedup(lists, recipe, text_field="messages.content")
    with pytest.raises(InvalidParameter, match="is in a list; name a field with one value"):
        likewise.dedup_files(file, tmp_path / "out", likewise.Recipe.exact(), count_by="messages[].role")


def test_an_index_takes_conversations(tmp_path):
    file = write(tmp_path / "a.jsonl", conversations("conversations[].value", 5))
    index = str(tmp_path / "seen.lw")
    assert likewise_command("index", "create", index, "--roles", "human", "--threshold", "0.6").status == 0
    field = ("--text-field", "conversations[].value")
    assert likewise_command("index", "add", index, str(file), *field).status == 0
    with likewise.Index(index) as seen:
        assert seen.recipe.roles == ("user",)
        row = json.loads(file.read_text().splitlines()[0])
        assert seen.check(turns.text(row, field[1], ("user",))).is_new is False


@pytest.mark.parametrize("library", ["pandas", "polars", "duckdb", "datasets"])
@pytest.mark.parametrize("path", FORMS)
def test_frames_hold_conversations(library, path):
    module = pytest.importorskip(library)
    rows = conversations(path)
    table = pa.Table.from_pylist(rows)
    frames = {
        "pandas": lambda: [module.DataFrame(rows), table.to_pandas(types_mapper=module.ArrowDtype)],
        "polars": lambda: [module.from_arrow(table)],
        "duckdb": lambda: [module.from_arrow(table)],
        "datasets": lambda: [made := module.Dataset.from_list(rows), made.to_iterable_dataset()],
    }
    wanted = likewise.dedup(table, RECIPE, text_field=path).kept.tolist()
    for frame in frames[library]():
        assert likewise.dedup(frame, RECIPE, text_field=path).kept.tolist() == wanted
