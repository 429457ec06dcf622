#!/usr/bin/env bash
# Claim: Two MediaWiki strippers return category names as text, glued to the last word, and one of them drops formulas.
# Package: mwparserfromhell 0.7.2 and wikitextparser 3.0.0 (PyPI)
# Expected: The plain text has neither categories nor links to other languages, and a formula stays or leaves a mark.
# Happens: Category and language links become text without a space before them. mwparserfromhell removes the contents of <math> and keeps "thumb|left|" of pictures; wikitextparser keeps the formula and drops the caption. Both remove numbers in templates and leave -{zh-hans:...}- as it is.
# Seen: 'Ferries stop.Category:Ferries' from both; two pages with different formulas are equal by mwparserfromhell (2026-11-28)
# Matters: Stubs of one category are more alike than their texts, articles that differ in a formula or a value are copies, and a collection made by two tools does not match itself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile mwparserfromhell==0.7.2 wikitextparser==3.0.0
env/bin/python > seen.txt <<'PYTHON'
import mwparserfromhell
import wikitextparser

for page in (
    "Ferries stop.[[Category:Ferries]][[fr:Bac]]",
    "The area is <math>\\pi r^2</math>.",
    "[[File:Ferry.jpg|thumb|left|At noon]] It runs.",
    "{{convert|5|km|mi}} long",
    "-{zh-hans:计算机;zh-hant:電腦}-",
):
    print(repr(mwparserfromhell.parse(page).strip_code()), repr(wikitextparser.parse(page).plain_text()))
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
'Ferries stop.Category:Ferriesfr:Bac' 'Ferries stop.Category:Ferriesfr:Bac'
'The area is .' 'The area is \\pi r^2.'
'thumb|left|At noon It runs.' ' It runs.'
' long' ' long'
'-{zh-hans:计算机;zh-hant:電腦}-' '-{zh-hans:计算机;zh-hant:電腦}-'
SEEN
