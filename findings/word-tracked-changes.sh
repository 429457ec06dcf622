#!/usr/bin/env bash
# Claim: python-docx reads a Word document with tracked changes as neither the old nor the new version, and docx2txt and docx2python return each moved paragraph twice.
# Package: python-docx 1.2.0, docx2txt 0.9, docx2python 3.7.1, mammoth 1.13.0, pypandoc_binary 1.17 (Pandoc 3.9) (PyPI)
# Expected: A reader returns the version with all changes, as mammoth and Pandoc do, or the one without them.
# Happens: Word stores a change as an element around the runs: ins, del, moveFrom, moveTo. python-docx reads runs that are directly in a paragraph, so it leaves out all that was inserted, deleted or moved. In a deletion the text has an element of its own, which docx2txt and docx2python leave out; in the old place of a move it has the ordinary one, so they return both places.
# Seen: two replaced values and a moved paragraph: python-docx "The ferry leaves at  from the eastern pier. A season ticket costs  kroner.", without the moved paragraph; docx2txt and docx2python return it twice; 50 documents with other new values: 1 text by python-docx, 50 by the others (2026-11-30)
# Matters: Contracts and manuals circulate with tracked changes. Two versions that differ in all tracked words and numbers are one text for python-docx, and an edited copy of a document is unlike the accepted one. A moved paragraph counts as a repeat inside the document. Accept the changes first, or read with mammoth or Pandoc.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pypandoc_binary==1.17 docx2txt==0.9 docx2python==3.7.1 mammoth==1.13.0 python-docx==1.2.0
env/bin/python > seen.txt <<'PYTHON'
import zipfile
from itertools import count
from xml.sax.saxutils import escape

import docx
import docx2txt
import mammoth
import pypandoc
from docx2python import docx2python

OFFICE = "http://schemas.openxmlformats.org"
SPACES = {"r": f"{OFFICE}/officeDocument/2006/relationships", "w": f"{OFFICE}/wordprocessingml/2006/main"}
TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
numbers = count(1)
PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{OFFICE}/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{TYPE}"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{OFFICE}/package/2006/relationships"><Relationship Id="rId1" '
    f'Type="{OFFICE}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
}


def run(text):
    return f'<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'


def changed(kind, runs):
    """Return runs in the element of a tracked change; one around nothing marks the end of a paragraph."""
    return f'<w:{kind} w:id="{next(numbers)}" w:author="Editor" w:date="2026-05-03T10:00:00Z">{runs}</w:{kind}>'


def replaced(old, new):
    deleted = run(old).replace("w:t", "w:delText")
    return changed("del", deleted) + changed("ins", run(new))


def moved(kind, text):
    """Return a paragraph in its old place (moveFrom) or its new one (moveTo)."""
    number = next(numbers)
    mark = f"<w:pPr><w:rPr>{changed(kind, '')}</w:rPr></w:pPr>"
    start = f'<w:{kind}RangeStart w:id="{number}" w:author="Editor" w:date="2026-05-03T10:00:00Z" w:name="move1"/>'
    return [mark, start, changed(kind, run(text)), f'<w:{kind}RangeEnd w:id="{number}"/>']


def write(name, paragraphs):
    body = "".join(f"<w:p>{''.join(runs)}</w:p>" for runs in paragraphs)
    spaces = " ".join(f'xmlns:{prefix}="{url}"' for prefix, url in SPACES.items())
    with zipfile.ZipFile(name, "w") as archive:
        for part, text in PARTS.items():
            archive.writestr(part, text)
        archive.writestr("word/document.xml", f"<w:document {spaces}><w:body>{body}<w:sectPr/></w:body></w:document>")


def read_mammoth(name):
    with open(name, "rb") as file:
        return mammoth.extract_raw_text(file).value


READERS = {
    "python-docx": lambda name: "\n".join(paragraph.text for paragraph in docx.Document(name).paragraphs),
    "mammoth": read_mammoth,
    "Pandoc": lambda name: pypandoc.convert_file(name, "plain", "docx", extra_args=["--wrap=none"]),
    "docx2txt": docx2txt.process,
    "docx2python": lambda name: docx2python(name).text,
}
MOVED = "Tickets are sold on board and at the machines on both piers."


def document(*values):
    """Return the paragraphs with tracked changes, and the words of the old and of the new version."""
    first = [run("The ferry leaves at "), replaced(values[0], values[1]), run(" from the eastern pier.")]
    second = [run("A season ticket costs "), replaced(values[2], values[3]), run(" kroner.")]
    tracked = [moved("moveFrom", MOVED), first, second, moved("moveTo", MOVED)]
    old = f"{MOVED} The ferry leaves at {values[0]} from the eastern pier. A season ticket costs {values[2]} kroner."
    new = f"The ferry leaves at {values[1]} from the eastern pier. A season ticket costs {values[3]} kroner. {MOVED}"
    return tracked, old.split(), new.split()


paragraphs, old, new = document("noon", "ten", "500", "640")
write("tracked.docx", paragraphs)
for reader, read in READERS.items():
    words = read("tracked.docx").split()
    version = "new version" if words == new else "old version" if words == old else "neither version"
    times = " ".join(words).count(MOVED)
    print(f"{reader}: {version}, moved paragraph {times} times: {' '.join(words)[:150]}")

texts = {reader: set() for reader in READERS}
for number in range(50):
    write("tracked.docx", document("noon", f"{number % 24}:00", "500", str(510 + number))[0])
    for reader, read in READERS.items():
        texts[reader].add(read("tracked.docx"))
for reader, found in texts.items():
    print(f"{reader}: 50 documents with other new hours and prices are {len(found)} texts")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
python-docx: neither version, moved paragraph 0 times: The ferry leaves at from the eastern pier. A season ticket costs kroner.
mammoth: new version, moved paragraph 1 times: The ferry leaves at ten from the eastern pier. A season ticket costs 640 kroner. Tickets are sold on board and at the machines on both piers.
Pandoc: new version, moved paragraph 1 times: The ferry leaves at ten from the eastern pier. A season ticket costs 640 kroner. Tickets are sold on board and at the machines on both piers.
docx2txt: neither version, moved paragraph 2 times: Tickets are sold on board and at the machines on both piers. The ferry leaves at ten from the eastern pier. A season ticket costs 640 kroner. Tickets 
docx2python: neither version, moved paragraph 2 times: Tickets are sold on board and at the machines on both piers. The ferry leaves at ten from the eastern pier. A season ticket costs 640 kroner. Tickets 
python-docx: 50 documents with other new hours and prices are 1 texts
mammoth: 50 documents with other new hours and prices are 50 texts
Pandoc: 50 documents with other new hours and prices are 50 texts
docx2txt: 50 documents with other new hours and prices are 50 texts
docx2python: 50 documents with other new hours and prices are 50 texts
SEEN
