#!/usr/bin/env bash
# Claim: Pandoc drops the paragraph that a text box of a Word document is anchored in, and returns only the text of the box; docx2txt and docx2python return the box twice.
# Package: pypandoc_binary 1.17 (Pandoc 3.9), docx2txt 0.9, docx2python 3.7.1, mammoth 1.13.0, python-docx 1.2.0 (PyPI)
# Expected: The paragraph is text of the document in any reader; a box is read once, or left out.
# Happens: Word stores a box inside a run of its paragraph, once as a drawing and once as a fallback for old readers. Pandoc replaces the whole paragraph by the box, also in a table cell, and by nothing if the box is empty. docx2txt and docx2python return both forms, in two orders. mammoth returns paragraph and box once, python-docx the paragraph.
# Seen: 4 paragraphs, 2 of them with a box: Pandoc returns 15 of their 29 words, the others 29; each box is in the text once (Pandoc, mammoth), twice (docx2txt, docx2python) or not at all (python-docx) (2026-11-29)
# Matters: Reports and templates anchor boxes in titles and first paragraphs. Collections that two tools extracted do not match, documents with equal boxes become copies, and repeats inside a document are the reader's.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pypandoc_binary==1.17 docx2txt==0.9 docx2python==3.7.1 mammoth==1.13.0 python-docx==1.2.0
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import zipfile

import docx
import docx2txt
import mammoth
import pypandoc
from docx2python import docx2python

OFFICE = "http://schemas.openxmlformats.org"
SHAPE = "http://schemas.microsoft.com/office/word/2010/wordprocessingShape"
SPACES = {
    "r": f"{OFFICE}/officeDocument/2006/relationships",
    "w": f"{OFFICE}/wordprocessingml/2006/main",
    "mc": f"{OFFICE}/markup-compatibility/2006",
    "wp": f"{OFFICE}/drawingml/2006/wordprocessingDrawing",
    "a": f"{OFFICE}/drawingml/2006/main",
    "wps": SHAPE,
    "v": "urn:schemas-microsoft-com:vml",
}
TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{OFFICE}/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{TYPE}"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{OFFICE}/package/2006/relationships"><Relationship Id="rId1" '
    f'Type="{OFFICE}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
}


def run(text):
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*runs):
    return f"<w:p>{''.join(runs)}</w:p>"


def box(number, text):
    content = f"<w:txbxContent>{paragraph(run(text))}</w:txbxContent>"
    return (
        '<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:inline>'
        f'<wp:extent cx="914400" cy="914400"/><wp:docPr id="{number}" name="Text Box {number}"/>'
        f'<a:graphic><a:graphicData uri="{SHAPE}"><wps:wsp><wps:cNvSpPr txBox="1"/><wps:spPr/>'
        f"<wps:txbx>{content}</wps:txbx><wps:bodyPr/></wps:wsp></a:graphicData></a:graphic></wp:inline></w:drawing>"
        '</mc:Choice><mc:Fallback><w:pict><v:shape style="width:72pt;height:72pt">'
        f"<v:textbox>{content}</v:textbox></v:shape></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )


BOXES = ["Draft for members.", "Phone at the pier."]
LINES = [
    "The ferry leaves the island at nine.",
    "It returns before the tide turns again.",
    "Tickets are sold on board, never online.",
    "Bicycles travel free, dogs pay half the price.",
]
BODY = [
    paragraph(run(LINES[0]), box(1, BOXES[0])),
    paragraph(run(LINES[1])),
    paragraph(box(2, BOXES[1]), run(LINES[2])),
    paragraph(run(LINES[3])),
]
NAMES = "".join(f' xmlns:{name}="{space}"' for name, space in SPACES.items())


def write(*body):
    text = f"<w:document{NAMES}><w:body>{''.join(body)}<w:sectPr/></w:body></w:document>"
    with zipfile.ZipFile("ferry.docx", "w") as archive:
        for name, part in PARTS.items():
            archive.writestr(name, part)
        archive.writestr("word/document.xml", text)


def pandoc():
    return pypandoc.convert_file("ferry.docx", "plain", extra_args=["--wrap=none"])


READERS = {
    "Pandoc": pandoc,
    "docx2txt": lambda: docx2txt.process("ferry.docx"),
    "docx2python": lambda: docx2python("ferry.docx").text,
    "mammoth": lambda: mammoth.extract_raw_text(open("ferry.docx", "rb")).value,
    "python-docx": lambda: "\n".join(part.text for part in docx.Document("ferry.docx").paragraphs),
}
write(*BODY)
total = sum(len(line.split()) for line in LINES)
for name, read in READERS.items():
    text = read()
    words = sum(len(line.split()) for line in LINES if line in text)
    counts = [text.count(line) for line in BOXES]
    print(f"{name}: {words} of {total} words of the paragraphs, boxes {counts} times")
    print("  " + " | ".join(line.strip() for line in text.splitlines() if line.strip()))
write(paragraph(run(LINES[0]), box(1, "")), paragraph(run(LINES[1])))
print("Pandoc, an empty box:", pandoc().split("\n\n"))
cell = f'<w:tc><w:tcPr><w:tcW w:w="2000" w:type="dxa"/></w:tcPr>{paragraph(run(LINES[0]), box(1, BOXES[0]))}</w:tc>'
grid = '<w:tblPr/><w:tblGrid><w:gridCol w:w="2000"/></w:tblGrid>'
write(f"<w:tbl>{grid}<w:tr>{cell}</w:tr></w:tbl>", paragraph(run(LINES[1])))
print("Pandoc, a table cell:", pandoc().replace("-", "").split())
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
Pandoc: 15 of 29 words of the paragraphs, boxes [1, 1] times
  Draft for members. | It returns before the tide turns again. | Phone at the pier. | Bicycles travel free, dogs pay half the price.
docx2txt: 29 of 29 words of the paragraphs, boxes [2, 2] times
  The ferry leaves the island at nine. | Draft for members. | Draft for members. | It returns before the tide turns again. | Phone at the pier. | Phone at the pier.Tickets are sold on board, never online. | Bicycles travel free, dogs pay half the price.
docx2python: 29 of 29 words of the paragraphs, boxes [2, 2] times
  Draft for members. | Draft for members. | The ferry leaves the island at nine. | It returns before the tide turns again. | Phone at the pier. | Phone at the pier. | Tickets are sold on board, never online. | Bicycles travel free, dogs pay half the price.
mammoth: 29 of 29 words of the paragraphs, boxes [1, 1] times
  The ferry leaves the island at nine. | Draft for members. | It returns before the tide turns again. | Tickets are sold on board, never online. | Phone at the pier. | Bicycles travel free, dogs pay half the price.
python-docx: 29 of 29 words of the paragraphs, boxes [0, 0] times
  The ferry leaves the island at nine. | It returns before the tide turns again. | Tickets are sold on board, never online. | Bicycles travel free, dogs pay half the price.
Pandoc, an empty box: ['It returns before the tide turns again.\n']
Pandoc, a table cell: ['Draft', 'for', 'members.', 'It', 'returns', 'before', 'the', 'tide', 'turns', 'again.']
SEEN
