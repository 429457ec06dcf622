"""A run to view: families of texts, some hostile, in any format."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq

from likewise import Recipe, dedup_files
from tests.unit.test_siblings import forms, recipe

HOSTILE = (
    "<script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\"> </textarea></title> "
    "a text that wants to be more than a text, with some words behind it so that it is long enough to be compared"
)
TURNED = "the file is named photo_high_re\u202egpj.exe and nobody should be fooled by what it seems to be in the end"


def rows():
    """Return rows of documents: a family of six, pairs, a hostile pair, single ones."""
    base = "the old mill by the river was sold on monday to a baker who wants to grind her own flour again this year"
    texts = {"mill": base}
    for number, word in enumerate(["tuesday", "friday", "sunday", "saturday", "thursday"]):
        texts[f"mill-{number}"] = base.replace("monday", word)
    for number in range(8):
        text = f"notice {number}: " + " ".join(f"word{number}x{i}" for i in range(40))
        texts[f"pair-{number}"], texts[f"pair-{number}-again"] = text, text + " and one more"
        texts[f"single-{number}"] = " ".join(f"alone{number}y{i}" for i in range(30))
    texts["<b>hostile</b>"] = HOSTILE
    texts["hostile \u202etwo"] = HOSTILE + " again"
    texts["turned"], texts["turned-2"] = TURNED, TURNED + " really"
    texts["chinese"] = "今天天气很好我们去公园散步看见很多花和鸟还有一只小猫在草地上睡觉大家都很高兴"
    texts["chinese-2"] = texts["chinese"] + "真的"
    texts["lines"] = (
        'first line, with "quotes"\nsecond line\n' + "words of the third line that go on for a while and end"
    )
    texts["lines-2"] = texts["lines"] + " here"
    texts["wide"] = "a page whose only picture became one very long word " + "w" * 5000 + " with more words behind it"
    texts["wide-2"] = texts["wide"] + " once more"
    sources = ["wire", "<b>copy</b>", "w" * 300]
    return [
        {"id": doc_id, "text": text, "source": sources[number * 3 // 2 % 3]}
        for number, (doc_id, text) in enumerate(texts.items())
    ]


def write(folder, form, rows):
    """Write rows in a format; return the path."""
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path = folder / f"in.{form}"
    if form == "jsonl":
        path.write_bytes(lines)
    elif form == "jsonl.gz":
        path.write_bytes(gzip.compress(lines))
    elif form == "csv":
        quoted = [",".join('"' + row[name].replace('"', '""') + '"' for name in ("id", "text")) for row in rows]
        path.write_bytes("\n".join(["id,text", *quoted, ""]).encode())
    elif form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=10)
    else:
        path.mkdir()
        for row in rows:
            name = "".join(c if c.isascii() and c.isalnum() else "_" for c in row["id"])
            (path / f"{name}.txt").write_text(row["text"])
    return path


def make_run(folder, form="jsonl", recipe=None, **options):
    """Finish a run over these rows; return the output directory."""
    path = write(folder, form, rows())
    dedup_files(path, folder / "out", recipe or Recipe.minhash(0.5), **options)
    return folder / "out"


def make_named_run(folder, **options):
    """Finish a run that compares names, over forms with subjects, their copies and different numbers."""
    texts = forms(1, 300)
    texts += [text.replace("version", "Version!") for text in texts[:3]]
    texts += [text.replace("version ", "version 1") for text in texts[10:40]]
    path = folder / "in.jsonl"
    path.write_text("".join(json.dumps({"id": f"d{row}", "text": text}) + "\n" for row, text in enumerate(texts)))
    dedup_files(path, folder / "out", recipe(), **options)
    return folder / "out"
