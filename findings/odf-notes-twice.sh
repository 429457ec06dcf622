#!/usr/bin/env bash
# Claim: The paragraphs of an OpenDocument text in odfpy and odfdo hold each footnote and comment twice, once within a sentence, and what an editor deleted as a paragraph of its own.
# Package: odfpy 1.4.1, odfdo 3.27.3, pypandoc_binary 1.17 (Pandoc 3.9) (PyPI)
# Expected: The paragraphs together are the text of the document, each sentence once, without what was deleted.
# Happens: Notes and comments contain paragraphs and are themselves inside one, and deletions are kept in a list at the start of the text. Both packages find paragraphs at any depth, and give the text of all that is inside one: the sentence goes on after the number and the text of the note, or after the name, the date and the text of the comment.
# Seen: a text of two paragraphs with a footnote, a comment and a deleted paragraph: note and comment twice, deletion once by both packages; Pandoc returns the note once and neither of the others; odfpy "on boardEditor2026-05-03T10:00:00Please check the time. and on the pier." (2026-11-30)
# Matters: Notes count as repeats inside the document, draft and final version of a text are unlike, and texts of different authors have their names and dates in common. Read the format with Pandoc, or skip paragraphs inside others.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile odfpy==1.4.1 odfdo==3.27.3 pypandoc_binary==1.17
env/bin/python > seen.txt <<'PYTHON'
import zipfile

import odfdo
import pypandoc
from odf import teletype
from odf import text as odf_text
from odf.opendocument import load

NAMES = "urn:oasis:names:tc:opendocument:xmlns"
SPACES = f'xmlns:office="{NAMES}:office:1.0" xmlns:text="{NAMES}:text:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/"'
BY = "<dc:creator>Editor</dc:creator><dc:date>2026-05-03T10:00:00</dc:date>"
NOTE, COMMENT, DELETED = "In summer only.", "Please check the time.", "Dogs travel free of charge."
FILES = {
    "mimetype": "application/vnd.oasis.opendocument.text",
    "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="{NAMES}:manifest:1.0" manifest:version="1.3">'
    '<manifest:file-entry manifest:full-path="/" manifest:media-type="application/vnd.oasis.opendocument.text"/>'
    '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>',
    "styles.xml": f'<office:document-styles {SPACES} office:version="1.3"><office:styles/>'
    "<office:automatic-styles/><office:master-styles/></office:document-styles>",
}


def write(name, note="", comment="", deleted="", mark=""):
    body = (
        f"{deleted}<text:p>The ferry leaves at ten{note} from the eastern pier.</text:p>"
        f"<text:p>Tickets are sold on board{comment} and on the pier.{mark}</text:p>"
    )
    with zipfile.ZipFile(name, "w") as archive:
        for part, data in FILES.items():
            archive.writestr(part, data)
        archive.writestr(
            "content.xml",
            f'<office:document-content {SPACES} office:version="1.3"><office:automatic-styles/>'
            f"<office:body><office:text>{body}</office:text></office:body></office:document-content>",
        )


READERS = {
    "odfpy": lambda name: [teletype.extractText(found) for found in load(name).getElementsByType(odf_text.P)],
    "odfdo": lambda name: [found.text_recursive for found in odfdo.Document(name).body.get_paragraphs()],
    "Pandoc": lambda name: pypandoc.convert_file(name, "plain", extra_args=["--wrap=none"]).split("\n\n"),
}
write("plain.odt")
write(
    "edited.odt",
    '<text:note text:id="n1" text:note-class="footnote"><text:note-citation>1</text:note-citation>'
    f"<text:note-body><text:p>{NOTE}</text:p></text:note-body></text:note>",
    f"<office:annotation>{BY}<text:p>{COMMENT}</text:p></office:annotation>",
    '<text:tracked-changes><text:changed-region xml:id="c1" text:id="c1"><text:deletion>'
    f"<office:change-info>{BY}</office:change-info><text:p>{DELETED}</text:p></text:deletion>"
    "</text:changed-region></text:tracked-changes>",
    '<text:change text:change-id="c1"/>',
)
for name in ("plain.odt", "edited.odt"):
    for reader, read in READERS.items():
        paragraphs = read(name)
        text = "\n".join(paragraphs)
        times = [text.count(part) for part in (NOTE, COMMENT, DELETED)]
        print(f"{name}, {reader}: note, comment and deletion {times} times")
        for paragraph in paragraphs:
            print(f"  {paragraph.strip()!r}")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
plain.odt, odfpy: note, comment and deletion [0, 0, 0] times
  'The ferry leaves at ten from the eastern pier.'
  'Tickets are sold on board and on the pier.'
plain.odt, odfdo: note, comment and deletion [0, 0, 0] times
  'The ferry leaves at ten from the eastern pier.'
  'Tickets are sold on board and on the pier.'
plain.odt, Pandoc: note, comment and deletion [0, 0, 0] times
  'The ferry leaves at ten from the eastern pier.'
  'Tickets are sold on board and on the pier.'
edited.odt, odfpy: note, comment and deletion [2, 2, 1] times
  'Dogs travel free of charge.'
  'The ferry leaves at ten1In summer only. from the eastern pier.'
  'In summer only.'
  'Tickets are sold on boardEditor2026-05-03T10:00:00Please check the time. and on the pier.'
  'Please check the time.'
edited.odt, odfdo: note, comment and deletion [2, 2, 1] times
  'Dogs travel free of charge.'
  'The ferry leaves at ten1. In summer only. from the eastern pier.'
  'In summer only.'
  'Tickets are sold on boardPlease check the time.\nEditor 2026-05-03 10:00:00 and on the pier.'
  'Please check the time.'
edited.odt, Pandoc: note, comment and deletion [1, 0, 0] times
  'The ferry leaves at ten[1] from the eastern pier.'
  'Tickets are sold on board and on the pier.'
  '[1] In summer only.'
SEEN
