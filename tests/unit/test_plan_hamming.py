"""The planner of Hamming search, from Python and from the command line."""

import itertools
import json
import math
import re

import numpy as np
import pytest

from likewise.errors import InvalidParameter
from likewise.hamming.plan import bit_statistics, plan_hamming
from likewise.theory.textbook import textbook_searches
from tests.command import likewise_command


def positions(mask):
    return {bit for bit in range(mask.bit_length()) if mask >> bit & 1}


def test_every_plan_of_the_frontier_finds_every_pattern_of_errors():
    # All patterns of at most two errors in 32 bits, against the masks of the plan.
    plan = plan_hamming(50_000, bits=32, within=2)
    patterns = [set(p) for weight in range(3) for p in itertools.combinations(range(32), weight)]
    searched = [search for search in plan.searches if search.keys]
    assert len(searched) >= 3
    for search in searched:
        keys = [(positions(key.mask), key.radius) for key in search.keys]
        assert all(any(len(bits & p) <= radius for bits, radius in keys) for p in patterns), search.name


def test_sampled_errors_of_wide_fingerprints():
    rng = np.random.default_rng(7)
    plan = plan_hamming(10_000_000, bits=128, within=10)
    for search in plan.searches:
        if not search.keys:
            continue
        masks = [(key.mask, key.radius) for key in search.keys]
        for _ in range(200):
            errors = sum(1 << int(bit) for bit in rng.choice(128, size=10, replace=False))
            assert any((mask & errors).bit_count() <= radius for mask, radius in masks), search.name


def test_the_textbook():
    rows = {search.name: search for search in textbook_searches(2**34)}
    assert rows["all neighbors probed"].num_probes_exactly == math.comb(64, 3) == 41_664
    assert (rows["4 blocks"].num_candidates_a_table, rows["4 blocks"].num_candidates) == (262_144, 1_048_576)
    for name, tables, candidates in [
        ("2 of 5 blocks", 10, 512),
        ("4 blocks, then 4 of the rest", 16, 64),
        ("3 of 6 blocks", 20, 8),
    ]:
        assert (rows[name].num_tables, rows[name].num_candidates_a_table) == (tables, candidates)
        assert rows[name].num_bytes == 8 * tables * 2**34


def test_explain_prints_the_textbook():
    ran = likewise_command("plan", "--n", "17_179_869_184", "--within", "3", "--explain")
    assert (ran.status, ran.err) == (0, "")
    text = ran.out.decode()
    assert all(figure in text for figure in ("41,664", "262,144", "1,048,576", "43,745"))
    ran = likewise_command("plan", "--n", "1e6", "--bits", "128", "--within", "5", "--explain", "--json")
    assert {row["num_tables"] for row in json.loads(ran.out)["textbook"]} == {1, 6, 21, 36, 56}


def test_the_frontier_on_the_command_line():
    ran = likewise_command("plan", "--n", "1e9", "--within", "3", "--memory", "20GB", "--json")
    assert (ran.status, ran.err) == (0, "")
    found = json.loads(ran.out)
    chosen = [search for search in found["searches"] if search["is_chosen"]]
    assert [key["radius"] for key in chosen[0]["keys"]] == [1, 1]
    assert chosen[0]["num_bytes"] <= 20e9
    assert found["searches"][0]["family"] == "scan"
    sizes = [search["num_bytes"] for search in found["searches"]]
    times = [search["batch_us"] for search in found["searches"]]
    assert sizes == sorted(sizes)
    assert times == sorted(times, reverse=True)
    text = likewise_command("plan", "--n", "1e9", "--within", "3", "--memory", "20GB").out.decode()
    assert f"> {chosen[0]['name']}" in text
    assert "nothing fits" not in text


def test_where_rows_do_not_fit_plans_are_made_without_them():
    ran = likewise_command("plan", "--n", "17e9", "--within", "3", "--memory", "128GB")
    text = ran.out.decode()
    assert (ran.status, ran.err) == (0, "")
    assert "without ids" in text
    assert "with ids, no plan fits in 128 GB; the smallest takes" in text
    marked = [line for line in text.splitlines() if line.startswith("> ") and not line.startswith("> chosen")]
    assert len(marked) == 1
    assert f"Without ids, {marked[0][2:].split('  ')[0]} takes" in text
    found = json.loads(likewise_command("plan", "--n", "17e9", "--within", "3", "--memory", "128GB", "--json").out)
    assert found["with_ids"] is False
    assert [search["num_bytes"] <= 128e9 for search in found["searches"] if search["is_chosen"]] == [True]


@pytest.mark.parametrize("options", [[], ["--without-ids"], ["--json"]])
def test_where_nothing_fits_the_smallest_is_named_and_the_status_tells(options):
    ran = likewise_command("plan", "--n", "17e9", "--within", "3", "--memory", "20GB", *options)
    assert ran.status == 1
    assert "no search fits in 20 GB, even without ids: the smallest takes" in ran.err
    assert "\n> 2" not in ran.out.decode()


def test_skew_costs_and_balanced_blocks_help(tmp_path):
    rng = np.random.default_rng(3)
    skewed = rng.random((4000, 64)) < np.where(np.arange(64) < 32, 0.02, 0.5)
    codes = np.packbits(skewed, axis=1, bitorder="little").view(np.uint64).reshape(-1)
    shares, dependence = bit_statistics(codes)
    assert np.allclose(shares, skewed.mean(axis=0))
    assert 0 <= dependence < 0.002
    uniform = plan_hamming(10_000_000)
    balanced = plan_hamming(10_000_000, bit_frequencies=shares, bit_dependence=dependence)
    assert balanced.chosen.batch_us > uniform.chosen.batch_us
    # Every block gets half of its bits from the informative half of the fingerprint.
    assert [sum(bit >= 32 for bit in positions(key.mask)) for key in balanced.chosen.keys] == [16, 16]
    np.save(tmp_path / "sample.npy", codes)
    ran = likewise_command("plan", "--n", "1e7", "--sample", str(tmp_path / "sample.npy"), "--json")
    found = json.loads(ran.out)["searches"]
    assert [search["batch_us"] for search in found] == [search.batch_us for search in balanced.searches]


def test_dependent_bits_are_found_and_priced():
    # Two kinds of text: bits agree more often within a kind than between kinds.
    rng = np.random.default_rng(5)
    kind = rng.random((5000, 1)) < 0.5
    leaning = np.where(kind, 0.65, 0.35) * np.ones(64)
    codes = np.packbits(rng.random((5000, 64)) < leaning, axis=1, bitorder="little").view(np.uint64).reshape(-1)
    shares, dependence = bit_statistics(codes)
    # By hand: P(two bits differ) is .455 within a kind and .545 between, so their covariance is .045^2.
    assert dependence == pytest.approx(0.045**2 / 0.25, rel=0.2)
    independent = plan_hamming(10_000_000, within=6, bit_frequencies=shares)
    dependent = plan_hamming(10_000_000, within=6, bit_frequencies=shares, bit_dependence=dependence)
    compared = [
        next(search.num_compared for search in plan.searches if search.name == independent.chosen.name)
        for plan in (independent, dependent)
    ]
    assert 1.2 * compared[0] < compared[1] < 5 * compared[0]


def test_wide_radii_are_planned_at_once():
    # The core's own tests count the steps; here, no radius may be rejected.
    for bits, within in [(128, 20), (128, 24), (256, 64), (64, 31)]:
        plan = plan_hamming(20_000, bits=bits, within=within)
        assert plan.chosen.family == "scan"
    assert plan_hamming(1_000_000_000, bits=256, within=64).chosen is not None


def test_more_than_an_index_holds_is_said():
    assert len(plan_hamming(4_294_967_294).excess) == 1
    assert plan_hamming(2**31).excess == ()
    assert [sentence.split(" ")[0] for sentence in plan_hamming(2**31 + 1).excess] == ["hamming_pairs"]
    assert len(plan_hamming(17_000_000_000).excess) == 2
    text = likewise_command("plan", "--n", "17e9").out.decode()
    assert "17,000,000,000 fingerprints exceed the limit of one index (4,294,967,294): use 4 indexes" in text
    assert "hamming_pairs finds all pairs among at most 2,147,483,648 fingerprints" in text
    assert "more than" not in likewise_command("plan", "--n", "2e9").out.decode()


@pytest.mark.parametrize(
    "options", [["--within", "12"], ["--within", "0"], ["--bits", "256", "--within", "20"], ["--within", "40"]], ids=str
)
def test_columns_stand_apart(options):
    plan = json.loads(likewise_command("plan", "--n", "1e8", *options, "--json").out)
    text = likewise_command("plan", "--n", "1e8", *options).out.decode()
    assert not re.search(r"\b1 (tables|blocks)\b", text)
    for search in plan["searches"]:
        (line,) = (line for line in text.splitlines() if line[2:].startswith(f"{search['name']}  "))
        # Adjacent figures would form one with two points or two exponents.
        figures = re.split(r" {2,}", line[2 + len(search["name"]) :].strip())
        assert len(figures) == 6, line


def test_explain_says_what_fits():
    ran = likewise_command("plan", "--n", "17_179_869_184", "--explain", "--memory", "1400GB")
    assert (ran.status, ran.err) == (0, "")
    fits = {
        line.split("  ")[0]: line.split()[-1] for line in ran.out.decode().splitlines() if line.endswith(("yes", "no"))
    }
    # 8 bytes a copy: ten tables take 1.37e12.
    assert fits == {
        "scan": "yes", "all neighbors probed": "yes", "all neighbors stored": "no", "4 blocks": "yes",
        "2 of 5 blocks": "yes", "4 blocks, then 4 of the rest": "no", "3 of 6 blocks": "no",
    }  # fmt: skip
    rows = json.loads(likewise_command("plan", "--n", "1e9", "--explain", "--memory", "8GB", "--json").out)["textbook"]
    assert [row["name"] for row in rows if row["fits"]] == ["scan", "all neighbors probed"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--explain"],
        ["--memory", "1GB"],
        ["--n", "1e6", "--threshold", "0.8"],
        ["--n", "1e6", "--within", "2.5"],
        ["--n", "many"],
        ["--n", "1e6", "--bits", "48"],
        ["--n", "1e6", "--within", "65"],
        ["--n", "1e60"],
        ["--n", "0"],
        ["--n", "0", "--explain"],
        ["--n", "1e6", "--explain", "--without-ids"],
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_is_refused(arguments):
    ran = likewise_command("plan", *arguments)
    assert (ran.status, ran.out) == (2, b"")
    assert ran.err


@pytest.mark.parametrize(
    "values",
    [{"n": -1}, {"n": 0}, {"n": 1.5}, {"n": 10, "bits": 40}, {"n": 10, "within": 65},
     {"n": 10, "memory_bytes": -1}, {"n": 10, "bit_frequencies": [0.5]},
     {"n": 10, "bit_frequencies": [0.5] * 64, "bit_dependence": 0.9}],
    ids=str,
)  # fmt: skip
def test_values_out_of_range(values):
    with pytest.raises(InvalidParameter):
        plan_hamming(values.pop("n"), **values)


@pytest.mark.parametrize("given", [("--memory", "0"), ("--memory", "1GB"), ("--explain",), ("--without-ids",)])
def test_options_of_searches_need_their_size(given):
    ran = likewise_command("plan", *given)
    assert (ran.status, "requires --n" in ran.err) == (2, True)
