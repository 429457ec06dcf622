#!/usr/bin/env bash
# Claim: For a Word document with tracked changes, python-docx returns a text that is neither the old nor the new one, and docx2txt and docx2python return moved text twice.
# Package: python-docx 1.2.0, docx2txt 0.9, docx2python 3.7.1, mammoth 1.13.0, pypandoc_binary 1.17 (Pandoc 3.9) (PyPI)
# Expected: A reader returns the document as it is with all changes accepted, or as it was before.
# Happens: python-docx leaves out deletions, insertions and both places of moved text, also whole moved paragraphs. docx2txt and docx2python leave out deletions, but return moved text at its old and its new place, because its old place is stored as text, not as deleted text. Pandoc and mammoth return the new version.
# Seen: 18 words before the changes, 20 after: python-docx 12, docx2txt and docx2python 25, mammoth and Pandoc the 20 new ones; Jaccard similarity of word 3-grams with the new text .40, .73 and 1 (2026-11-29)
# Matters: Contracts and drafts are stored with their changes. A draft is not found as a copy of the accepted file, and a paragraph that was moved is a repeat inside its document. Accept the changes first, or take Pandoc or mammoth.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile python-docx==1.2.0 docx2txt==0.9 docx2python==3.7.1 mammoth==1.13.0 pypandoc_binary==1.17
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import zipfile

import docx
import docx2txt
import mammoth
import pypandoc
from docx2python import docx2python

OFFICE = "http://schemas.openxmlformats.org"
SPACES = {
    "r": f"{OFFICE}/officeDocument/2006/relationships",
    "w": f"{OFFICE}/wordprocessingml/2006/main",
}
TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{OFFICE}/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{TYPE}"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{OFFICE}/package/2006/relationships"><Relationship Id="rId1" '
    f'Type="{OFFICE}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
}


def run(text, tag="t"):
    return f'<w:r><w:{tag} xml:space="preserve">{text}</w:{tag}></w:r>'


def change(kind, number, content=""):
    return f'<w:{kind} w:id="{number}" w:author="A" w:date="2026-01-01T00:00:00Z">{content}</w:{kind}>'


def paragraph(*runs, mark=""):
    mark = mark and f"<w:pPr><w:rPr>{mark}</w:rPr></w:pPr>"
    return f"<w:p>{mark}{''.join(runs)}</w:p>"


def moved(end, number, text):
    start = f'<w:move{end}RangeStart w:id="{number}" w:author="A" w:date="2026-01-01T00:00:00Z" w:name="move"/>'
    whole = paragraph(start, change(f"move{end}", number + 1, run(text)), mark=change(f"move{end}", number + 2))
    return whole + f'<w:move{end}RangeEnd w:id="{number}"/>'


def words(text):
    return text.replace(".", "").lower().split()


def jaccard(first, second):
    first, second = (set(zip(text, text[1:], text[2:], strict=False)) for text in (first, second))
    return len(first & second) / len(first | second)


OLD = ["The fee is due in May.", "Bicycles travel free of charge.", "The ferry leaves the island at nine."]
NEW = ["The fee is due in June each year.", "The ferry leaves the island at nine.", "Bicycles travel free of charge."]
BODY = [
    paragraph(
        run("The fee is due in "),
        change("del", 1, run("May", "delText")),
        change("ins", 2, run("June each year")),
        run("."),
    ),
    moved("From", 10, OLD[1]),
    paragraph(run(OLD[2])),
    moved("To", 20, OLD[1]),
]
NAMES = "".join(f' xmlns:{name}="{space}"' for name, space in SPACES.items())
PARTS["word/document.xml"] = f"<w:document{NAMES}><w:body>{''.join(BODY)}<w:sectPr/></w:body></w:document>"
with zipfile.ZipFile("terms.docx", "w") as archive:
    for name, part in PARTS.items():
        archive.writestr(name, part)

READERS = {
    "python-docx": lambda: "\n".join(part.text for part in docx.Document("terms.docx").paragraphs),
    "docx2txt": lambda: docx2txt.process("terms.docx"),
    "docx2python": lambda: docx2python("terms.docx").text,
    "mammoth": lambda: mammoth.extract_raw_text(open("terms.docx", "rb")).value,
    "Pandoc": lambda: pypandoc.convert_file("terms.docx", "plain", extra_args=["--wrap=none"]),
}
old, new = words(" ".join(OLD)), words(" ".join(NEW))
print(f"before: {len(old)} words, after: {len(new)} words")
for name, read in READERS.items():
    text = words(read())
    print(
        f"{name}: {len(text)} words, the old text {text == old}, the new text {text == new},"
        f" Jaccard with old {jaccard(text, old):.2f}, with new {jaccard(text, new):.2f}"
    )
    print("  " + " | ".join(line.strip() for line in read().splitlines() if line.strip()))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
before: 18 words, after: 20 words
python-docx: 12 words, the old text False, the new text False, Jaccard with old 0.44, with new 0.40
  The fee is due in . | The ferry leaves the island at nine.
docx2txt: 25 words, the old text False, the new text False, Jaccard with old 0.57, with new 0.73
  The fee is due in June each year. | Bicycles travel free of charge. | The ferry leaves the island at nine. | Bicycles travel free of charge.
docx2python: 25 words, the old text False, the new text False, Jaccard with old 0.57, with new 0.73
  The fee is due in June each year. | Bicycles travel free of charge. | The ferry leaves the island at nine. | Bicycles travel free of charge.
mammoth: 20 words, the old text False, the new text True, Jaccard with old 0.48, with new 1.00
  The fee is due in June each year. | The ferry leaves the island at nine. | Bicycles travel free of charge.
Pandoc: 20 words, the old text False, the new text True, Jaccard with old 0.48, with new 1.00
  The fee is due in June each year. | The ferry leaves the island at nine. | Bicycles travel free of charge.
SEEN
