"""Product titles made from public lists of models and packages, as shops would write them, with labels.

    titles_made.py OUT --models usb.ids [pci.ids ...] --packages Packages

An entity is a model of a vendor, with a size where it has one, or a package. Its titles are written in several ways.
Its siblings differ in one number, size or letter: half of the listed pairs are of that kind and must not be joined.
The lists are read from files of this machine (`usb.ids`, `pci.ids`, a package index of Debian); none is part of the
project. Nothing here is shared with the rules of the product, and the set chooses nothing.
"""

import argparse
import gzip
import itertools
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

SEED = 20_261_128
NUM_FAMILIES = 1_200
PACKAGE_SHARE = 0.2
SIZES = (
    ("250 GB", "500 GB", "1 TB", "2 TB"),
    ("1 m", "2 m", "3 m", "5 m"),
    ("size S", "size M", "size L", "size XL"),
    ("2-pack", "3-pack", "5-pack"),
    ("12 V", "24 V"),
)
LEGAL = re.compile(r",?\s+(?:Inc|Corp|Co|Ltd|GmbH|AG|LLC|Limited|Corporation|S\.A|B\.V|Technology|Electronics)\b.*$")
SELLERS = (
    "bulk",
    "OEM",
    "retail box",
    "with cable",
    "boxed",
    "refurbished",
    "genuine",
    "in stock",
    "w/ warranty",
    "NEW!",
)
DIGIT = re.compile(r"\d")
Entity = tuple[str, str, str]


def models(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (vendor, device) of a list of device numbers."""
    vendor = ""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if re.match(r"[0-9a-f]{4}  ", line):
            vendor = line[6:].strip()
        elif re.match(r"\t[0-9a-f]{4}  ", line) and vendor:
            device = re.sub(r"\s*[\[(].*$", "", line[7:]).strip()
            if device.isascii() and DIGIT.search(device) and 2 <= len(device.split()) <= 6 and len(device) >= 8:
                yield vendor, device
        elif not line.startswith(("\t", "#")) and line:
            vendor = ""  # Classes, at the end of the lists.


def packages(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (name in words, short description) of packages whose name has a number."""
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("Package: "):
            name = line[9:]
        elif line.startswith("Description: ") and DIGIT.search(name) and len(name) < 30:
            words = line[13:].split()
            if 3 <= len(words) <= 8:
                words[0] = words[0].lower()
                yield " ".join(words), name.replace("-", " ")


def sibling(draw: random.Random, device: str) -> str:
    """Return the name of a device that differs in one number or letter."""
    places = [i for i, c in enumerate(device) if c.isdigit()]
    kind = draw.random()
    if kind < 0.6:
        place = draw.choice(places)
        digit = draw.choice([d for d in "0123456789" if d != device[place]])
        return device[:place] + digit + device[place + 1 :]
    end = max(places) + 1
    if kind < 0.85 and not device[end : end + 1].isalpha():
        return device[:end] + draw.choice("ABCDNPSWX") + device[end:]
    return device[:end] + draw.choice((" XL", " Plus", " II", " Pro")) + device[end:]


def families(draw: random.Random, devices: list[tuple[str, str]], named: list[tuple[str, str]]) -> list[list[Entity]]:
    """Return families of entities: (vendor, device, size), of which any two differ in one number, size or letter."""
    found: list[list[Entity]] = []
    forms: dict[tuple[str, str], list[str]] = defaultdict(list)
    for vendor, device in devices:
        # Real neighbors: the same but for one digit of their last number.
        forms[vendor, re.sub(r"\d(\D*)$", r"#\1", device)].append(device)
    real = [(vendor, sorted(set(group))) for (vendor, _), group in sorted(forms.items()) if len(set(group)) > 1]
    draw.shuffle(real)
    num_real = NUM_FAMILIES // 3
    found += [[(vendor, device, "") for device in group[:3]] for vendor, group in real[:num_real]]
    single = [(vendor, group[0]) for (vendor, _), group in sorted(forms.items()) if len(set(group)) == 1]
    draw.shuffle(single)
    num_packages = round(NUM_FAMILIES * PACKAGE_SHARE)
    known = {device.lower() for _, device in [*devices, *named]}
    draw.shuffle(named)
    kinds = [(pair, True) for pair in single[: NUM_FAMILIES - num_real - num_packages]]
    kinds += [(pair, False) for pair in named[:num_packages]]
    for (vendor, device), is_model in kinds:
        if is_model and draw.random() < 0.4:
            sizes = draw.choice(SIZES)
            found.append([(vendor, device, size) for size in draw.sample(sizes, 2)])
        else:
            while (made := sibling(draw, device)).lower() in known:
                pass
            known.add(made.lower())
            found.append([(vendor, device, ""), (vendor, made, "")])
    return found


def title(draw: random.Random, entity: Entity) -> str:
    """Return one way to write an entity: of a shop that has its own habits."""
    vendor, device, size = entity
    is_package = len(vendor.split()) > 2 and not vendor[0].isupper()
    short = " ".join(vendor.split()[:4]) if is_package else LEGAL.sub("", vendor)
    maker = draw.choice((vendor, short, short, "" if is_package else short.split()[0], ""))
    words = device.split()
    plain = [i for i, word in enumerate(words) if word.isalpha() and len(word) > 4]
    habit = draw.random()
    if plain and habit < 0.2:
        words[draw.choice(plain)] = ""
    elif plain and habit < 0.35:
        place = draw.choice(plain)
        words[place] = words[place][:4] + "."
    elif plain and habit < 0.5:
        place = draw.choice(plain)
        cut = draw.randrange(1, len(words[place]) - 1)
        words[place] = words[place][:cut] + words[place][cut + 1 :]
    name = " ".join(word for word in words if word)
    if draw.random() < 0.25:
        name = re.sub(r"(?<=[A-Za-z])[- ](?=\d)", draw.choice(("", "-", " ")), name)
    if size and draw.random() < 0.5:
        size = re.sub(r"(?<=\d)[ -]", draw.choice(("", " ", "-")), size)
    parts = [part for part in (maker, name, size) if part]
    if maker and draw.random() < 0.2:
        parts = [*parts[1:], maker if is_package else f"by {maker}"]
    if draw.random() < 0.4:
        parts.append(draw.choice(SELLERS))
    text = draw.choice((" ", " ", " ", " - ", ", ")).join(parts)
    return draw.choice((text, text, text, text.upper(), text.lower()))


def make(devices: list[tuple[str, str]], named: list[tuple[str, str]]) -> tuple[list[dict[str, str]], list[list[str]]]:
    """Return documents and listed pairs: as many positives as pairs of siblings."""
    draw = random.Random(SEED)
    rows: list[dict[str, str]] = []
    for number, family in enumerate(families(draw, devices, named)):
        for place, entity in enumerate(family):
            titles = {" ".join(title(draw, entity).split()) for _ in range(draw.choice((1, 2, 2, 3)))}
            rows += [{"entity": f"{number}-{place}", "text": text} for text in sorted(titles)]
    texts = Counter(row["text"].lower() for row in rows)
    rows = [row for row in rows if texts[row["text"].lower()] == 1]
    draw.shuffle(rows)
    groups = defaultdict(list)
    for number, row in enumerate(rows):
        row["id"] = f"tm{number:05}"
        groups[row["entity"].split("-")[0]].append(row)
    positive: list[list[str]] = []
    negative: list[list[str]] = []
    for group in groups.values():
        for one, other in itertools.combinations(group, 2):
            is_one = one["entity"] == other["entity"]
            (positive if is_one else negative).append(sorted((one["id"], other["id"])))
    negative = draw.sample(negative, min(len(negative), len(positive)))
    listed = [[*pair, "1", "written otherwise", ""] for pair in positive]
    listed += [[*pair, "0", "one number, size or letter", ""] for pair in negative]
    return rows, sorted(listed)


def main() -> None:
    """Write docs.jsonl.gz, pairs.tsv and clusters.tsv."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--models", type=Path, nargs="+", required=True)
    parser.add_argument("--packages", type=Path, required=True)
    arguments = parser.parse_args()
    devices = [pair for path in arguments.models for pair in models(path)]
    rows, pairs = make(devices, list(packages(arguments.packages)))
    arguments.out.mkdir(parents=True, exist_ok=True)
    with gzip.open(arguments.out / "docs.jsonl.gz", "wt", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps({"id": row["id"], "text": row["text"], "path": row["entity"]}) + "\n")
    lines = ["\t".join(pair) for pair in [["id1", "id2", "label", "kind", "sim"], *pairs]]
    (arguments.out / "pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    clusters = defaultdict(list)
    for row in rows:
        clusters[row["entity"]].append(row["id"])
    together = [group for group in clusters.values() if len(group) > 1]
    (arguments.out / "clusters.tsv").write_text(
        "".join(f"{number}\t{key}\n" for number, group in enumerate(together) for key in group), encoding="utf-8"
    )
    labels = Counter(pair[2] for pair in pairs)
    print(f"{len(rows)} titles, {labels['1']} positive and {labels['0']} negative pairs, {len(together)} clusters")


if __name__ == "__main__":
    main()
