"""Draw the figures of the README and the concept pages from benchmark results and code: `python tools/docs_figures.py`.

Writes `docs/images/concepts/NAME.svg`. Each figure has its own background, light or dark by the reader's setting,
so that it is legible anywhere. The tests compare the files with this tool's output.
"""

import itertools
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import likewise
from likewise.io.html import Html, element
from likewise.stages.bands import band_pairs
from likewise.stages.features import features
from likewise.stages.weights import count_weights

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "images" / "concepts"
WIDTH = 720
STYLE = """
text{font:13px system-ui,sans-serif;fill:#1c2430}
.ground{fill:#fff;stroke:#d5dbe5}.quiet{fill:#5a6678}.small{font-size:11px}.tiny{font-size:9.5px}.code{font-family:ui-monospace,monospace}
.plus{fill:#2f6fd6}.minus{fill:#dfe5ee}.mark{fill:#c2410c}.gone{fill:#b42318}.stay{fill:#1f7a4d}.on{fill:#fff}
.line{fill:none;stroke:#2f6fd6;stroke-width:2}.second{fill:none;stroke:#c2410c;stroke-width:2}
.edge{stroke:#5a6678;stroke-width:1.5}.faint{stroke:#d5dbe5;stroke-width:1}.near{fill:#dbe7fb}.box{fill:none;stroke:#c2410c;stroke-width:2}
.middle{text-anchor:middle}.end{text-anchor:end}
@media(prefers-color-scheme:dark){text{fill:#e5e9f0}.ground{fill:#161b22;stroke:#2d3643}.quiet{fill:#9aa6b8}
.plus{fill:#5f92ea}.minus{fill:#2d3643}.mark{fill:#ff9a6b}.gone{fill:#ff9d97}.stay{fill:#8fdcab}.on{fill:#0e1217}
.line{stroke:#82aefb}.second{stroke:#ff9a6b}.edge{stroke:#9aa6b8}.faint{stroke:#2d3643}.near{fill:#20304d}.box{stroke:#ff9a6b}}
"""


def text(x: float, y: float, content: object, *classes: str) -> Html:
    """Return a line of text; y is its baseline."""
    return element("text", str(content), x=number(x), y=number(y), class_=" ".join(classes) or None)


def box(x: float, y: float, width: float, height: float, *classes: str, round_: int = 2) -> Html:
    """Return a rectangle."""
    place = {"x": number(x), "y": number(y), "width": number(width), "height": number(height)}
    return element("rect", class_=" ".join(classes), rx=round_, **place)


def cells(corners: Sequence[tuple[float, float]], width: float, height: float, name: str) -> Html:
    """Return equal rectangles as one path, which takes a third of the bytes."""
    step = f"h{number(width)}v{number(height)}h{number(-width)}z"
    return element("path", d="".join(f"M{number(x)} {number(y)}{step}" for x, y in corners), class_=name)


def path(points: Sequence[tuple[float, float]], name: str) -> Html:
    """Return a line through points."""
    steps = "".join(f"{'L' if i else 'M'}{number(x)} {number(y)}" for i, (x, y) in enumerate(points))
    return element("path", d=steps, class_=name)


def number(value: float) -> str:
    """Return a coordinate rounded to tenths."""
    return f"{round(float(value), 1):g}"


def figure(height: float, title: str, parts: Sequence[object]) -> str:
    """Return a complete file."""
    ground = box(0.5, 0.5, WIDTH - 1, height - 1, "ground", round_=10)
    inside = [element("title", title), Html(f"<style>{STYLE.strip()}</style>"), ground, *parts]
    view = f"0 0 {WIDTH} {number(height)}"
    whole = element("svg", inside, xmlns="http://www.w3.org/2000/svg", viewBox=view, width=WIDTH, role="img")
    return f"{whole}\n".replace("><", ">\n<").replace("viewbox", "viewBox")


def bits_of(value: int, count: int) -> list[int]:
    """Return the lowest bits of a number, highest first."""
    return [value >> place & 1 for place in reversed(range(count))]


# ---- SimHash, step by step


def simhash() -> str:
    """Draw how words vote on every bit; two texts that share most words agree in most bits."""
    recipe = likewise.Recipe.simhash(bits=32, tokens="word", shingle=1, weights="count", within=3)
    both = ["the library opens again on friday after the repair", "the library opens again on sunday after the repair"]
    found = [int(value) for value in likewise.sketch(both, recipe).array]
    left, cell, parts, y = 128, 17, [], 30
    parts.append(
        text(20, y, "Each word has a hash. Blue adds its weight to the sum of the bit, gray takes it away.", "quiet")
    )
    y += 16
    for which, line in enumerate(both):
        words = list(dict.fromkeys(line.split()))
        sums = np.zeros(32, int)
        for word in words:
            value, weight = int(features([word], recipe).features[0]), line.split().count(word)
            row = bits_of(value, 32)
            sums += np.where(np.array(row) == 1, weight, -weight)
            is_changed = word in ("friday", "sunday")
            said = f"{word} × {weight}" if weight > 1 else word
            parts.append(text(left - 10, y + 13, said, "end", *(["mark"] if is_changed else [])))
            for wanted, name in ((1, "plus"), (0, "minus")):
                corners = [(left + i * cell, y) for i, bit in enumerate(row) if bit == wanted]
                parts.append(cells(corners, cell - 2, 15, name))
            y += 18
        parts.append(text(left - 10, y + 14, "sum", "end", "quiet"))
        parts += [text(left + i * cell + 7.5, y + 14, f"{total:d}", "small", "middle") for i, total in enumerate(sums)]
        y += 22
        parts.append(text(left - 10, y + 13, "fingerprint", "end"))
        made = (sums > 0).astype(int).tolist()
        if made != bits_of(found[which], 32):
            raise AssertionError("the figure and the code disagree")
        parts += [text(left + i * cell + 7.5, y + 13, bit, "code", "middle") for i, bit in enumerate(made)]
        if which:
            other = bits_of(found[0], 32)
            parts += [box(left + i * cell, y - 1, cell - 2, 18, "box") for i in range(32) if made[i] != other[i]]
        y += 40
    distance = (found[0] ^ found[1]).bit_count()
    said = f"One word of nine has changed: {distance} of 32 bits differ (framed). A sum above 0 makes a 1."
    parts.append(text(20, y - 6, said, "quiet"))
    return figure(y + 8, "SimHash of two texts, word by word", parts)


# ---- The pigeonhole, and permuted tables


def near_fingerprints() -> tuple[int, int]:
    """Return two fingerprints at distance 3, of two texts that differ in one word of 120."""
    recipe = likewise.Recipe.simhash(bits=64, within=3, shingle=1, tokens="word")
    words = [f"word{i}" for i in range(120)]
    first = int(likewise.sketch([" ".join(words)], recipe).array[0])
    for i in range(120):
        changed = " ".join([*words[:i], "other", *words[i + 1 :]])
        value = int(likewise.sketch([changed], recipe).array[0])
        if (first ^ value).bit_count() == 3:
            return first, value
    raise AssertionError("no such text")


def pigeonhole() -> str:
    """Draw why three errors cannot affect all of four blocks."""
    a, b = near_fingerprints()
    parts: list[object] = [
        text(20, 30, "64 bits in four blocks, 3 bits differ: at least one block is untouched.", "quiet")
    ]
    left, cell = 34, 10
    for side, value in enumerate((a, b)):
        parts.append(text(left - 8, 68 + side * 24, "AB"[side], "end"))
        places = [(left + i * cell + i // 16 * 8, 55 + side * 24) for i in range(64)]
        for wanted, name in ((1, "plus"), (0, "minus")):
            corners = [place for place, bit in zip(places, bits_of(value, 64), strict=True) if bit == wanted]
            parts.append(cells(corners, cell - 2, 17, name))
    errors = bits_of(a ^ b, 64)
    for block in range(4):
        x = left + block * (16 * cell + 8)
        count = sum(errors[block * 16 : block * 16 + 16])
        parts += [box(x + i * cell - 2, 51, cell + 2, 49, "box") for i in range(16) if errors[block * 16 + i]]
        said = "equal: found here" if count == 0 else f"{count} differ" if count > 1 else "1 differs"
        parts.append(text(x + 8 * cell, 122, said, "middle", "stay" if count == 0 else "quiet"))
    parts.append(
        text(
            20,
            152,
            "So a table sorted by each block finds every pair within 3 bits: look up the query's own 16 bits in each.",
            "quiet",
        )
    )
    return figure(168, "The pigeonhole", parts)


def tables() -> str:
    """Draw the same fingerprints sorted four ways; the query is next to its neighbor in one of them."""
    draw = np.random.RandomState(7)
    codes = [int(value) for value in draw.randint(0, 1 << 16, 7)]
    query = codes[3] ^ (1 << 13) ^ (1 << 6) ^ (1 << 2)
    parts: list[object] = [
        text(
            20,
            30,
            "Seven fingerprints of 16 bits, in four tables, each with another block in front and sorted by it.",
            "quiet",
        )
    ]
    parts.append(
        text(20, 50, f"The query {query:016b} differs in 3 bits from number 4, and shares block 2 with it.", "quiet")
    )
    for table in range(4):
        x = 20 + table * 172

        def turned(value: int, table: int = table) -> str:
            spelled = f"{value:016b}"
            front = spelled[table * 4 : table * 4 + 4]
            return front + " " + " ".join(spelled[i * 4 : i * 4 + 4] for i in range(4) if i != table)

        parts.append(text(x, 80, f"block {table + 1} in front", "small"))
        for i, (key, row) in enumerate(sorted((turned(value), row) for row, value in enumerate(codes))):
            y = 100 + i * 20
            is_read = key[:4] == turned(query)[:4]
            if is_read:
                parts.append(box(x - 4, y - 14, 164, 19, "near"))
            parts.append(text(x, y, f"{row + 1}", "small", *(["mark"] if is_read and row == 3 else ["quiet"])))
            parts.append(text(x + 14, y, key, "code", "small", *(["mark"] if is_read and row == 3 else [])))
        parts.append(text(x, 252, "query", "small", "quiet"))
        parts.append(text(x, 268, turned(query), "code", "small"))
    parts.append(
        text(
            20,
            296,
            "Shaded rows share the front block with the query and are compared; all others are never looked at.",
            "quiet",
        )
    )
    return figure(312, "Permuted tables", parts)


# ---- MinHash


def minhash() -> str:
    """Draw two signatures: equal slots estimate the resemblance, a band of equal slots makes a candidate."""
    recipe = likewise.Recipe.minhash(0.5, num_slots=24, bands=6, rows=4)
    rest = "passengers with bicycles wait at the second gate as long as the water stands below the old mark"
    starts = ("from monday on the ferry runs every twenty minutes", "from monday on the ferry runs every hour")
    both = [f"{starts[0]}; {rest}", f"{starts[1]}; {rest} of last year"]
    sketches = likewise.sketch(both, recipe)
    a, b = sketches.array.tolist()
    exact = likewise.compare(*both, recipe).measures.jaccard
    left, cell = 32, 26
    parts: list[object] = [text(20, 30, "Two signatures of 24 slots, in hexadecimal. Equal slots are shaded.", "quiet")]
    for band in range(6):
        start = left + band * (4 * cell + 9)
        shared = [i for i in range(4) if a[band * 4 + i] == b[band * 4 + i]]
        for side, slots in enumerate((a, b)):
            y = 50 + side * 26
            parts += [box(start + i * cell, y, cell - 2, 22, "near") for i in shared]
            for i in range(4):
                x = start + i * cell + cell / 2 - 1
                parts.append(text(x, y + 15, f"{slots[band * 4 + i]:04x}", "tiny", "middle", "code"))
        if len(shared) == 4:
            parts.append(box(start - 3, 46, 4 * cell + 3, 56, "box"))
        said = "a bucket" if len(shared) == 4 else f"{len(shared)} of 4"
        parts.append(text(start + 2 * cell, 120, said, "middle", "small", "stay" if len(shared) == 4 else "quiet"))
    for side in range(2):
        parts.append(text(22, 66 + side * 26, "AB"[side], "end"))
    num_equal = sum(x == y for x, y in zip(a, b, strict=True))
    if len(band_pairs(sketches)) != 1:
        raise AssertionError("the figure and the code disagree")
    said = (
        f"{num_equal} of 24 slots are equal: the estimate is {num_equal / 24:.2f}. Counted on the texts: {exact:.2f}."
    )
    parts.append(text(20, 150, said, "quiet"))
    return figure(166, "MinHash signatures of two texts", parts)


# ---- The S-curve


def axes(
    x_ticks: Sequence[tuple[float, str]], y_ticks: Sequence[tuple[float, str]], x_name: str, y_name: str
) -> list[object]:
    """Return a frame of 600 by 240 at (70, 50), with ticks at shares of its sides."""
    parts: list[object] = [text(70, 32, y_name, "quiet"), text(670, 330, x_name, "quiet", "end")]
    for share, name in x_ticks:
        parts.append(text(70 + 600 * share, 308, name, "small", "middle", "quiet"))
    for share, name in y_ticks:
        y = 290 - 240 * share
        parts.append(element("line", x1=70, x2=670, y1=number(y), y2=number(y), class_="faint"))
        parts.append(text(62, y + 4, name, "small", "end", "quiet"))
    return parts


def found_share(similarity: float, plan: object, num_pairs: int = 300) -> float:
    """Return the share of random pairs of exactly this similarity that share a bucket."""
    shared, size = round(300 * 2 * similarity / (1 + similarity)), 300
    documents = []
    for pair in range(num_pairs):
        common = [(f"{pair} {i}", 1) for i in range(shared)]
        for side in "ab":
            documents.append(common + [(f"{pair} {side} {i}", 1) for i in range(size - shared)])
    recipe = likewise.Recipe.minhash(0.01, weights="own", shingle=1, bands=plan.bands, rows=plan.rows)
    pairs = band_pairs(likewise.sketch(documents, recipe))
    return float(np.mean(np.isin(np.arange(num_pairs) * 2, pairs[(pairs[:, 1] == pairs[:, 0] + 1)][:, 0])))


def curve() -> str:
    """Draw what two plans find at every similarity: by the model, and as counted."""
    ticks = [(i / 5, f"{i / 5:g}") for i in range(6)]
    parts = axes(ticks, ticks, "Jaccard similarity of a pair", "found, as a share")
    for name, threshold, label in (("line", 0.55, "plus"), ("second", 0.8, "mark")):
        plan = likewise.Recipe.minhash(threshold).resolve().sketch
        parts.append(path([(70 + 6 * i, 290 - 240 * plan.found(i / 100)) for i in range(101)], name))
        for similarity in (0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
            y = 290 - 240 * found_share(similarity, plan)
            parts.append(element("circle", cx=number(70 + 600 * similarity), cy=number(y), r=4, class_=label))
        x = 70 + 600 * threshold
        parts.append(element("line", x1=number(x), x2=number(x), y1=290, y2=50, class_="edge", stroke_dasharray="3 4"))
    parts.append(text(392, 46, "threshold 0.55", "small", "end"))
    parts.append(text(556, 46, "threshold 0.8", "small"))
    low, high = (likewise.Recipe.minhash(threshold).resolve().sketch for threshold in (0.55, 0.8))
    parts.append(text(196, 168, f"{low.bands} bands of {low.rows}", "small"))
    parts.append(text(452, 220, f"{high.bands} bands of {high.rows}", "small"))
    parts.append(text(20, 330, "Lines: the model. Dots: counted on 300 pairs each.", "quiet", "small"))
    return figure(346, "The S-curve of bands", parts)


# ---- Leaders against components


def leaders() -> str:
    """Draw a chain: each document resembles the next, but the ends do not resemble each other."""
    words = [f"w{i}" for i in range(60)]
    chain = [" ".join(words[start : start + 30]) for start in (0, 4, 8, 12, 16)]
    names, xs = "ABCDE", [80, 220, 360, 500, 640]
    recipe = likewise.Recipe.minhash(0.6)
    likeness = [likewise.compare(a, b, recipe).measures.jaccard for a, b in itertools.pairwise(chain)]
    ends = likewise.compare(chain[0], chain[-1], recipe).measures.jaccard
    parts: list[object] = []
    for panel, group in enumerate(("leaders", "components")):
        y = 92 + panel * 168
        result = likewise.dedup(chain, recipe.replace(group=group))
        kept_for = dict(zip(result.removed["row"].to_pylist(), result.removed["kept_row"].to_pylist(), strict=True))
        said = {
            "leaders": "leaders: each that goes was measured against one that stays",
            "components": "components: whole chains become one",
        }
        parts.append(text(20, y - 56, said[group], "quiet"))
        for i, value in enumerate(likeness):
            parts.append(element("line", x1=xs[i] + 22, x2=xs[i + 1] - 22, y1=y, y2=y, class_="edge"))
            parts.append(text((xs[i] + xs[i + 1]) / 2, y - 8, f"{value:.2f}", "small", "middle"))
        for i, stays in enumerate(result.kept.tolist()):
            parts.append(element("circle", cx=xs[i], cy=y, r=22, class_="stay" if stays else "minus"))
            parts.append(text(xs[i], y + 5, names[i], "middle", *(["on"] if stays else [])))
            similarity = {row["row"]: row["similarity"] for row in result.removed.to_pylist()}
            why = "stays" if stays else f"goes for {names[kept_for[i]]}, {similarity[i]:.2f}"
            is_below = not stays and similarity[i] < 0.6
            parts.append(
                text(xs[i], y + 44, why, "small", "middle", "stay" if stays else "gone" if is_below else "quiet")
            )
    parts.append(
        text(
            20,
            336,
            f"Threshold 0.6. A and E have {ends:.2f} in common. Red: below the threshold, marked so in the evidence.",
            "quiet",
        )
    )
    return figure(352, "Leaders against components", parts)


# ---- Rarity


def rarity() -> str:
    """Draw the weight of a feature by how many of 1,000 documents contain it."""
    frequencies = sorted({round(1000 ** (i / 60)) for i in range(61)})
    documents = [[f"own{i}"] + [f"shared{df}" for df in frequencies if i < df] for i in range(1000)]
    recipe = likewise.Recipe.minhash(tokens="user", tokenizer="figure 1", shingle=1, weights="idf")
    counted = recipe.with_table(count_weights(documents, recipe))
    weights = [int(features([[f"shared{df}"]], counted).weights[0]) for df in frequencies]
    parts = axes([(i / 3, f"{10**i:,}") for i in range(4)], [(i / 15, str(i)) for i in (0, 5, 10, 15)],
                 "documents of 1,000 that hold the feature", "its weight")  # fmt: skip
    points: list[tuple[float, float]] = []
    for df, weight in zip(frequencies, weights, strict=True):
        x, y = 70 + 600 * math.log10(df) / 3, 290 - 240 * weight / 15
        points += [(x, points[-1][1]), (x, y)] if points else [(x, y)]
    parts.append(path(points, "line"))
    places = [
        (1, "a name", 70, 5, None),
        (30, "a phrase of the trade", 10, -9, None),
        (1000, "the template", -4, -42, "end"),
    ]
    for df, name, dx, dy, side in places:
        weight = weights[frequencies.index(min(frequencies, key=lambda known: abs(known - df)))]
        x, y = 70 + 600 * math.log10(df) / 3, 290 - 240 * weight / 15
        parts.append(element("circle", cx=number(x), cy=number(y), r=5, class_="mark"))
        parts.append(text(x + dx, y + dy, f"{name}: {weight}", *([side] if side else [])))
    return figure(346, "Weights by rarity", parts)


# ---- The front page


def speed() -> str:
    """Draw the seconds for 100,000 documents next to other packages, from the last benchmark run."""
    measured = json.loads((ROOT / "bench" / "results" / "rivals.json").read_text(encoding="utf-8"))
    rows = {
        row["tool"]: row
        for row in measured["files"]
        if (row["method"], row["num_documents"]) == ("minhash", 100_000) and row["tool"] in SPEED_TOOLS
    }
    ours, slowest = rows["likewise"]["seconds"], max(row["seconds"] for row in rows.values())
    left, widest = 112, 330
    parts = [
        text(
            20, 32, "Seconds to deduplicate 100,000 documents, by MinHash at Jaccard 0.8 (JSONL in, kept documents out)"
        ),
        text(WIDTH - 20, 62, "removed without a match at 0.8", "end", "quiet", "small"),
    ]
    y = 72
    for tool in SPEED_TOOLS:
        row, name = rows[tool], "plus" if tool == "likewise" else "minus"
        length = max(2, widest * row["seconds"] / slowest)
        times = "" if tool == "likewise" else f"  ({row['seconds'] / ours:.0f} times as long)"
        removed = f"{row['num_removed_without_kept_0.8']:,}"
        parts += [
            text(left - 10, y + 15, tool, "end"),
            box(left, y, length, 20, name),
            text(left + length + 8, y + 15, f"{row['seconds']:.1f} s{times}"),
            text(WIDTH - 20, y + 15, removed, "end"),
        ]
        y += 28
    facts, repeats = measured["machine"], measured["repeats"]
    rounds = "1 round" if repeats == 1 else f"medians of {repeats} rounds"
    made = (
        f"python bench/rivals/run.py; English documents; {facts['cpu']}, {facts['num_cores']} cores, {facts['isa']}; "
        f"{rounds} in one run, {facts['date'][:10]}"
    )
    versions = ", ".join(f"{tool} {measured['versions'][tool]}" for tool in SPEED_TOOLS if tool in measured["versions"])
    parts += [text(20, y + 18, f"{made}.", "small", "quiet"), text(20, y + 34, f"{versions}.", "small", "quiet")]
    return figure(y + 48, "Seconds for 100,000 documents", parts)


#: Packages in the chart, fastest first.
SPEED_TOOLS = ("likewise", "gaoya", "rensa", "datasketch", "text-dedup")

FIGURES: dict[str, Callable[[], str]] = {
    "speed": speed,
    "simhash": simhash,
    "minhash": minhash,
    "pigeonhole": pigeonhole,
    "tables": tables,
    "s-curve": curve,
    "leaders": leaders,
    "rarity": rarity,
}

if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    for figure_name in sys.argv[1:] or FIGURES:
        (OUT / f"{figure_name}.svg").write_text(FIGURES[figure_name](), encoding="utf-8")
