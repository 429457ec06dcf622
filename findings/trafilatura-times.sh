#!/usr/bin/env bash
# Claim: trafilatura leaves out the text of <time>, <math>, <output> and <label> elements inside sentences, so notices of other days and hours are one text, and a short page has them while a long one has not.
# Package: trafilatura 2.3.1 (PyPI)
# Expected: Elements around words of a sentence, such as a date or a formula, are text of the paragraph; options that favor recall keep more of it.
# Happens: These elements are in a list that is removed from the page with scripts, forms and navigation before paragraphs are looked for, with favor_recall=True too. A list item of a time only is removed, and a table keeps an empty cell. If less than some 250 characters are found, the text of the whole page is returned, which has them. The datetime attribute is not read.
# Seen: "The council meets on at .", "The answer is for all ferries.", "The total is kroner."; 40 notices of other days and hours: 1 text with each of five sets of options, 40 by html2txt or with the tags removed first; pages of one to three paragraphs with the time, of four without (2026-11-30)
# Matters: Timetables, minutes, news and lessons with formulas become copies of each other when what distinguishes them is left out. Take the tags out first and keep their text: lxml.etree.strip_tags(tree, "time", "math", ...), and pass the tree.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile trafilatura==2.3.1 lxml_html_clean==0.4.6
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import lxml.etree
import lxml.html
import trafilatura

TEXT = "The ferry to pier {} carries passengers, bicycles and dogs across the bay, and tickets are sold on board."


def page(body, length=6):
    paragraphs = "".join(f"<p>{TEXT.format(number)}</p>" for number in range(length))
    return f"<!doctype html><html><body><main><article><h1>Harbor</h1>{body}{paragraphs}</article></main></body></html>"


def lines(text):
    """Return the extracted text without the paragraphs that all pages have."""
    for number in range(60):
        text = text.replace(TEXT.format(number), "")
    return " / ".join(line.strip() for line in text.replace("Harbor", "").split("\n") if line.strip())


def council(day, hour):
    return f"<p>The council meets on <time datetime='2026-05-{day:02}'>{day} May</time> at <time>{hour}:00</time>.</p>"


MATH = "<math><mi>x</mi><mo>=</mo><mn>{}</mn></math>"
bodies = {
    "time": council(3, 10),
    "math": f"<p>The answer is {MATH.format(5)} for all ferries.</p>",
    "output": "<p>The total is <output>512</output> kroner.</p>",
    "label": "<p>Platform <label>4</label> is closed.</p>",
    "span": "<p>The council meets on <span>3 May</span> at <b>10:00</b>.</p>",
    "list of times": "<ul><li>Departures</li><li><time>10:00</time></li><li><time>11:00</time></li></ul>",
    "table": "<table><tr><th>Ferry</th><th>Leaves</th></tr><tr><td>East</td><td><time>10:00</time></td></tr></table>",
}
for name, body in bodies.items():
    print(f"{name}: {lines(trafilatura.extract(page(body)))}")

pages = [page(council(day, hour)) for day in range(1, 29) for hour in range(9, 19)]
for options in ({}, {"favor_recall": True}, {"fast": True}, {"output_format": "markdown"}, {"output_format": "xml"}):
    found = {trafilatura.extract(html, **options) for html in pages[::7]}
    print(f"{len(pages[::7])} notices, {options}: {len(found)} texts")
print(f"{len(pages[::7])} notices, html2txt: {len({trafilatura.html2txt(html) for html in pages[::7]})} texts")


def stripped(html):
    tree = lxml.html.fromstring(html)
    lxml.etree.strip_tags(tree, "time", "math", "output", "label")
    return tree


found = {trafilatura.extract(stripped(html)) for html in pages[::7]}
print(f"{len(pages[::7])} notices, tags removed first: {len(found)} texts, {lines(max(found))}")

for length in range(4):
    text = trafilatura.extract(page(council(3, 10), length))
    print(f"page of {1 + length} paragraphs: {'with' if '3 May' in text else 'without'} the time")
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
time: The council meets on at .
math: The answer is for all ferries.
output: The total is kroner.
label: Platform is closed.
span: The council meets on 3 May at 10:00.
list of times: - Departures
table: | Ferry | Leaves | / |---|---| / | East |  |
40 notices, {}: 1 texts
40 notices, {'favor_recall': True}: 1 texts
40 notices, {'fast': True}: 1 texts
40 notices, {'output_format': 'markdown'}: 1 texts
40 notices, {'output_format': 'xml'}: 1 texts
40 notices, html2txt: 40 texts
40 notices, tags removed first: 40 texts, The council meets on 9 May at 13:00.
page of 1 paragraphs: with the time
page of 2 paragraphs: with the time
page of 3 paragraphs: with the time
page of 4 paragraphs: without the time
SEEN
