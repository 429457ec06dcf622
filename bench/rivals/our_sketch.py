"""Likewise in the sketching rows, called like one.py: prints the seconds of a pass."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from likewise import _native
from rivals.protocol import pass_seconds, read_rows

RULES = {"minhash": ("none", 5), "simhash": ("count", 1)}


def main() -> None:
    """Sketch Python strings on one thread, keeping nothing."""
    _, _, method, tokens, path, num = sys.argv[1:]
    texts = read_rows(Path(path))[2][: int(num)]
    weights, width = RULES[method]
    rules = _native.FeatureRules("word" if tokens == "word" else "auto", width, weights, 0)

    def sketch(texts: list[str]) -> None:
        made = _native.Texts.from_list(texts)
        if method == "simhash":
            _native.sketch_simhash(made, rules, bits=64, sets=False, threads=1)
        else:
            _native.sketch_minhash(made, rules, num_slots=128, slot_bits=32, scheme="bucket", sets=False, threads=1)

    seconds = pass_seconds(lambda: sketch(texts))
    print(json.dumps({"seconds": seconds, "text_bytes": sum(len(text.encode()) for text in texts)}))


if __name__ == "__main__":
    main()
