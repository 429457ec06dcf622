#!/usr/bin/env bash
# Claim: A ZIM archive of six pages has nine "articles" and ten entries, and reading its entries gives four texts twice.
# Package: libzim 3.13.1 (PyPI)
# Expected: article_count is the number of pages with text.
# Happens: article_count includes redirects and aliases that are front articles, and leaves out a page that is not a front article. The item of a redirect is the target's, an alias has a path of its own and the same text.
# Seen: entry_count 10, article_count 9, six different texts (2026-11-28)
# Matters: Reading the entries one after another passes exact copies to deduplication, and a share of removed documents computed from article_count is wrong.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile libzim==3.13.1
env/bin/python > log.txt 2>&1 <<'PYTHON'
from collections import Counter

from libzim.reader import Archive
from libzim.writer import Creator, Hint, Item, StringProvider


class Page(Item):
    def __init__(self, name, text, front):
        super().__init__()
        self.name, self.text, self.front = name, text, front

    def get_path(self):
        return self.name

    def get_title(self):
        return self.name

    def get_mimetype(self):
        return "text/html"

    def get_contentprovider(self):
        return StringProvider(self.text)

    def get_hints(self):
        return {Hint.FRONT_ARTICLE: self.front}


front = {Hint.FRONT_ARTICLE: True}
with Creator("pages.zim") as creator:
    for number in range(5):
        creator.add_item(Page(f"page{number}", f"<p>text {number}</p>", True))
    creator.add_item(Page("part", "<p>a part</p>", False))
    for number in range(3):
        creator.add_redirection(f"also{number}", f"Also {number}", f"page{number}", front)
    creator.add_alias("alias", "Alias", "page4", front)
archive = Archive("pages.zim")
texts = Counter()
for number in range(archive.entry_count):
    texts[bytes(archive._get_entry_by_id(number).get_item().content)] += 1
with open("seen.txt", "w") as seen:
    print("entry_count", archive.entry_count, "article_count", archive.article_count, file=seen)
    print("different texts", len(texts), "read twice", sum(count == 2 for count in texts.values()), file=seen)
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
entry_count 10 article_count 9
different texts 6 read twice 4
SEEN
