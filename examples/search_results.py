"""Near-duplicate search results grouped: `python examples/search_results.py`.

A search engine has ranked twelve pages for one query. Mirrors, reprints with another headline and pages that differ in
a date push everything else off the first screen. Each group is shown once, under its best-ranked page; the others fold
away beneath it.
"""

import likewise

STORY = (
    "The town library reopens on Monday after a year of works. The reading room has new windows to the river, the "
    "children's floor has doubled, and loans of tools and seeds join those of books. Opening hours stay as they were."
)
RECIPE = (
    "Wash the lentils and let them simmer with a bay leaf for twenty minutes. Fry onions until golden, add cumin and "
    "a spoon of tomato paste, stir both together and serve with yoghurt and plenty of lemon."
)
RESULTS = [
    ("news.example/library-reopens", STORY),
    ("mirror.example/2041/library", "Updated 3 May. " + STORY),
    ("daily.example/town", "Library opens its doors again. " + STORY + " Read more in our local pages."),
    ("cook.example/lentils", RECIPE),
    ("news.example/library-reopens?print=1", STORY.upper()),
    ("town.example/minutes", "The council heard a report on the works at the library and moved to the next item."),
    ("recipes.example/lentil-stew", RECIPE.replace("twenty", "twenty-five")),
    ("tools.example/lend", "How to lend tools: a guide for libraries that want to start a shelf of drills and saws."),
    ("feed.example/item/7", STORY.replace("Monday", "Tuesday")),
    ("river.example/windows", "Windows to the river: an architect explains how a reading room takes its light."),
    ("cook.example/lentils?ref=home", RECIPE + " Comments (2)"),
    ("old.example/library", "The library closes for a year. Books may be fetched from the van on the market square."),
]


def grouped(results: list[tuple[str, str]]) -> dict[str, list[tuple[str, float]]]:
    """Return for each shown page those folded away under it, with their similarity, in the order of the ranking."""
    found = likewise.dedup([text for _, text in results], likewise.Recipe.minhash(threshold=0.6))
    groups: dict[str, list[tuple[str, float]]] = {
        address: [] for (address, _), is_kept in zip(results, found.kept.tolist(), strict=True) if is_kept
    }
    # A page goes only for a better-ranked one that it was measured against, so a group never chains.
    for row in found.removed.to_pylist():
        groups[results[row["kept_row"]][0]].append((results[row["row"]][0], row["similarity"]))
    return groups


def main() -> None:
    """Show the ranking with near-duplicates folded."""
    groups = grouped(RESULTS)
    print(f"{len(RESULTS)} results, {len(groups)} shown:")
    for address, folded in groups.items():
        print(f"  {address}")
        for other, similarity in folded:
            print(f"      {similarity:.2f}  {other}")


if __name__ == "__main__":
    main()
