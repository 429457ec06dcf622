"""The names in an output directory."""

from likewise.recipe.weights import RECIPE

UNFINISHED = ".unfinished"
PARTS = "parts"
# Finished stages of an engine other than this machine, among the parts.
ENGINE_STAGES = "engine.stages"
IDENTITY = "identity.json"
KEPT = "kept"
ANNOTATED = "annotated"
UNIQUE = "unique"
GROUPS = "groups.parquet"
EVIDENCE = "removed.parquet"
OVERRULED = "overruled.parquet"
PAIRS = "pairs.parquet"
LEAKS = "leaks.parquet"
COPIES = "copies.parquet"
GIVEN = "given.parquet"
LISTS = "delete"
CONTAMINATED = "contaminated.parquet"
ITEMS = "items.parquet"
ERRORS = "errors.jsonl"
EMPTIED = "emptied.jsonl"
SITES = "sites.parquet"
REPORT = "report.html"
# The documents of a result in memory that was saved.
DOCUMENTS = "documents.parquet"
AUDIT = "audit.json"
REVIEW = "review.csv"
DECISIONS = "decisions.csv"
VIEW = ".view"
SUMMARY = "summary.json"
SKETCHES = "sketches"
# In the order in which they are renamed into place: when the summary exists, all others do.
FINAL_NAMES = (
    *(
        RECIPE,
        KEPT,
        ANNOTATED,
        UNIQUE,
        GROUPS,
        SKETCHES,
        EVIDENCE,
        OVERRULED,
        PAIRS,
        LEAKS,
        COPIES,
        GIVEN,
        LISTS,
        CONTAMINATED,
        ITEMS,
    ),
    *(ERRORS, EMPTIED, SITES, REPORT, AUDIT, DOCUMENTS),
    SUMMARY,
)
