"""simhash (1e0ng): an index that grows when read, a count that overflows, and dissimilar texts at distance 0."""

import logging

from evidence import make_importable, tell

make_importable("simhash")

from simhash import Simhash, SimhashIndex


def grows() -> None:
    """Compare buckets before and after queries that find nothing."""
    index = SimhashIndex([("0", Simhash("the only document of this index"))], k=3, log=logging.getLogger("quiet"))
    before = index.bucket_size()
    for number in range(1000):
        index.get_near_dups(Simhash(f"a question about {number * 7919} and nothing else"))
    after = index.bucket_size()
    tell(
        "Queries make the index grow",
        "simhash",
        [f"{before} buckets, {after} after 1,000 queries"],
        reproduced=after > before,
    )


def overflows() -> None:
    """Count a feature 300 times."""
    try:
        Simhash({"the": 300, "cat": 1})
        seen, failed = ["a weight of 300 was taken"], False
    except OverflowError as error:
        seen, failed = [f"Simhash({{'the': 300, 'cat': 1}}): OverflowError: {error}"], True
    tell("With NumPy 2, a feature that occurs more than 255 times fails", "simhash", seen, reproduced=failed)


def scripts() -> None:
    """Compare texts in scripts and marks that its default pattern does not treat as letters."""
    unlike = [("!!!", "???"), ("。。。", "……"), ("😀😀😀", "🚗🚗")]
    distances = [(a, b, Simhash(a).distance(Simhash(b))) for a, b in unlike]
    near = ("今天天气很好啊朋", "今天天气很坏啊朋")
    changed = Simhash(near[0]).distance(Simhash(near[1]))
    seen = [f"{a} and {b}: distance {distance}" for a, b, distance in distances]
    is_zero = any(distance == 0 for *_, distance in distances)
    tell("Different texts without letters are at distance 0", "simhash", seen, reproduced=is_zero)
    seen = [f"{near[0]} and {near[1]}: distance {changed} of 64"]
    tell(
        "Changing one of eight Chinese characters changes far more bits than the usual radii",
        "simhash",
        seen,
        reproduced=changed > 15,
    )


if __name__ == "__main__":
    grows()
    overflows()
    scripts()
