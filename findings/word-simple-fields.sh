#!/usr/bin/env bash
# Claim: python-docx, mammoth and Pandoc leave out the results of Word's simple fields, so a hundred letters with other names, amounts and dates are one text.
# Package: python-docx 1.2.0, mammoth 1.13.0, pypandoc_binary 1.17 (Pandoc 3.9), docx2txt 0.9, docx2python 3.7.1 (PyPI)
# Expected: The result of a field is text of the document as the reader of a page sees it, and is stored as ordinary runs; all five return it from a complex field.
# Happens: The format has two forms for one field: marks in the runs before and after the result (fldChar), or an element around the result (fldSimple). Three readers do not look inside that element. mammoth reports it as a message next to the text, the others report nothing.
# Seen: of 8 fields python-docx, mammoth and Pandoc return 0 if they are simple and 8 if they are complex, docx2txt and docx2python 8 and 8; 100 letters with three fields each: 1 text by the first three, 100 by the others: "Please pay  kroner for your season ticket before ." (2026-11-30)
# Matters: Fields hold what differs between documents of one template: names, amounts, totals, dates, numbers of captions. Letters and invoices become exact copies, and all but one are removed. Extract such documents with docx2txt or docx2python.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile pypandoc_binary==1.17 docx2txt==0.9 docx2python==3.7.1 mammoth==1.13.0 python-docx==1.2.0
env/bin/python > seen.txt <<'PYTHON'
import zipfile
from xml.sax.saxutils import escape, quoteattr

import docx
import docx2txt
import mammoth
import pypandoc
from docx2python import docx2python

OFFICE = "http://schemas.openxmlformats.org"
SPACES = {"r": f"{OFFICE}/officeDocument/2006/relationships", "w": f"{OFFICE}/wordprocessingml/2006/main"}
TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{OFFICE}/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{TYPE}"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{OFFICE}/package/2006/relationships"><Relationship Id="rId1" '
    f'Type="{OFFICE}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
}


def run(text):
    return f'<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'


def simple(code, result):
    return f"<w:fldSimple w:instr={quoteattr(code)}>{run(result)}</w:fldSimple>"


def marked(code, result):
    begin, middle, end = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end"))
    return f'{begin}<w:r><w:instrText xml:space="preserve">{escape(code)}</w:instrText></w:r>{middle}{run(result)}{end}'


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
FORMS = {simple: "simple", marked: "complex"}
FIELDS = {
    'DATE \\@ "d MMMM yyyy"': "3 May 2026",
    "MERGEFIELD Name": "Ada",
    "DOCPROPERTY Amount": "512",
    "=SUM(ABOVE)": "640",
    "SEQ Table \\* ARABIC": "7",
    "REF deadline \\h": "Friday",
    "FORMTEXT": "Bergen",
    'STYLEREF "Heading 1"': "Ferries",
}
for field in FORMS:
    paragraphs = [[run("Before "), field(f" {code} ", result), run(" and after.")] for code, result in FIELDS.items()]
    write("fields.docx", paragraphs)
    for reader, read in READERS.items():
        text = read("fields.docx")
        kept = sum(result in text for result in FIELDS.values())
        assert text.count("Before ") == text.count("after.") == len(FIELDS)
        print(f"{FORMS[field]} fields, {reader}: results read {kept} of {len(FIELDS)}")

NAMES = ["Ada", "Bo", "Cleo", "Dan", "Eve", "Finn", "Gro", "Hal", "Ines", "Jon"]
for field in FORMS:
    texts = {reader: [] for reader in READERS}
    for number in range(100):
        name, amount = field(" MERGEFIELD Name ", NAMES[number % 10]), field(" DOCPROPERTY Amount ", str(100 + number))
        date = field(" DOCPROPERTY Due ", f"{1 + number % 28} June")
        write(
            "letter.docx",
            [
                [run("Dear "), name, run(", thank you for travelling with the eastern ferry this year.")],
                [run("Please pay "), amount, run(" kroner for your season ticket before "), date, run(".")],
            ],
        )
        for reader, read in READERS.items():
            texts[reader].append(read("letter.docx"))
    for reader, read in texts.items():
        print(f"letters with {FORMS[field]} fields, {reader}: {len(set(read))} texts of {len(read)}")
    print(texts["mammoth"][0].split("\n")[2])
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
simple fields, python-docx: results read 0 of 8
simple fields, mammoth: results read 0 of 8
simple fields, Pandoc: results read 0 of 8
simple fields, docx2txt: results read 8 of 8
simple fields, docx2python: results read 8 of 8
complex fields, python-docx: results read 8 of 8
complex fields, mammoth: results read 8 of 8
complex fields, Pandoc: results read 8 of 8
complex fields, docx2txt: results read 8 of 8
complex fields, docx2python: results read 8 of 8
letters with simple fields, python-docx: 1 texts of 100
letters with simple fields, mammoth: 1 texts of 100
letters with simple fields, Pandoc: 1 texts of 100
letters with simple fields, docx2txt: 100 texts of 100
letters with simple fields, docx2python: 100 texts of 100
Please pay  kroner for your season ticket before .
letters with complex fields, python-docx: 100 texts of 100
letters with complex fields, mammoth: 100 texts of 100
letters with complex fields, Pandoc: 100 texts of 100
letters with complex fields, docx2txt: 100 texts of 100
letters with complex fields, docx2python: 100 texts of 100
Please pay 100 kroner for your season ticket before 1 June.
SEEN
