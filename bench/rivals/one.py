"""Run one rival once, in this process, for run.py.

one.py dedup NAME METHOD TOKENS INPUT OUTPUT     kept ids go to OUTPUT.ids
one.py sketch NAME METHOD TOKENS CORPUS NUM      prints the seconds of a pass over NUM documents
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from rivals import registry
from rivals.protocol import pass_seconds, read_rows


def main() -> None:
    """Run the rival."""
    what, name, method, tokens, path, last = sys.argv[1:]
    rival = registry.find(name, method)
    if what == "dedup":
        ids = rival.dedup_jsonl(Path(path), Path(last), tokens)
        Path(f"{last}.ids").write_text("\n".join(ids), encoding="utf-8")
        return
    _, _, texts = read_rows(Path(path))
    texts = texts[: int(last)]
    seconds = pass_seconds(lambda: rival.sketch_text(texts, tokens))
    print(json.dumps({"seconds": seconds, "text_bytes": sum(len(text.encode()) for text in texts)}))


if __name__ == "__main__":
    main()
