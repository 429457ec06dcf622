#!/usr/bin/env bash
# Claim: trafilatura returns a page twice when its text is in an element whose class begins with comment, such as commentary, or contains comments, such as no-comments.
# Package: trafilatura 2.3.1 (PyPI)
# Expected: The text of a page is extracted once, as the main text or as comments.
# Happens: The element is taken for the comments, and its paragraphs are also the main text, so both are returned. include_comments=False returns it once, or not at all.
# Seen: class commentary, no-comments, post-comments-open: each paragraph twice; class opinion: once (2026-11-28)
# Matters: Opinion pages are repeated text for a deduplication of paragraphs, and their lengths, shingles and fingerprints differ from those of another extractor.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile trafilatura==2.3.1 lxml_html_clean==0.4.6
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import trafilatura

TEXT = "The ferry to the eastern pier leaves every twenty minutes until midnight. Passengers with bicycles wait at gate two."
PARAGRAPHS = "".join(f"<p>{TEXT} Paragraph {number} says more.</p>" for number in range(4))
for name in ("opinion", "commentary", "no-comments", "post-comments-open"):
    page = f"<html><body><h1>Ferry</h1><div class='{name}'>{PARAGRAPHS}</div></body></html>"
    counts = [trafilatura.extract(page, include_comments=given).count("Paragraph 1 ") for given in (True, False)]
    print(name, "times:", counts[0], "without comments:", counts[1])
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
opinion times: 1 without comments: 1
commentary times: 2 without comments: 1
no-comments times: 2 without comments: 1
post-comments-open times: 2 without comments: 0
SEEN
