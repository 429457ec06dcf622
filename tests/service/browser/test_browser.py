"""The pages in a real Chromium: hostile documents, the keyboard, the slider, a phone, no script, many groups."""

import json
import re

import pytest

from likewise import Recipe, dedup_files
from tests.runs.viewing.runs import make_named_run
from tests.service.browser.conftest import Pages

# Long: `make test` leaves them out, `.ci/run` runs them.
pytestmark = pytest.mark.rounds

VIEWS = ["", "groups", "groups/1", "groups/1/pair/kept/kept", "threshold", "compare", "near", "review", "review/next",
         "review/pairs"]  # fmt: skip
PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}


@pytest.mark.timeout(900)
def test_no_view_runs_a_document_or_breaks_its_own_policy(pages):
    page = pages.page()
    addresses = [f"{pages.base}/{view}" for view in VIEWS]
    pages.go(page)
    page.goto(f"{pages.base}/groups?q=onerror")
    page.click("[data-rows] a.id")
    addresses.append(page.url)
    page.click("[data-rows] tbody a.id")
    addresses.append(page.url)
    for address in addresses:
        page.goto(address)
        assert "taken" not in page.title()
        assert page.locator("img, iframe, object").count() == 0
    assert page.locator("td.side").first.inner_text().startswith("<script>document.title")
    assert pages.wrong == []


@pytest.mark.timeout(900)
def test_the_keyboard_goes_everywhere(pages):
    page = pages.page()
    pages.go(page, "groups")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    first = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    page.wait_for_url("**/groups/*")
    assert page.inner_text("h1") == first
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/pair/*/kept")
    before = page.url
    page.keyboard.press("ArrowRight")
    page.wait_for_url(lambda url: url != before)
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(before)
    with page.expect_navigation():
        page.keyboard.press("y")
    assert page.locator("button[aria-pressed=true]").inner_text().startswith("Duplicate")
    with page.expect_navigation():
        page.keyboard.press("n")
    assert page.locator("button[aria-pressed=true][data-key=n]").inner_text().startswith("Not a duplicate")
    with page.expect_navigation():
        page.keyboard.press("u")
    assert page.locator("button[aria-pressed=true]").count() == 0
    page.keyboard.press("Escape")
    page.wait_for_url("**/groups/*")
    group = page.url
    page.keyboard.press("ArrowRight")
    page.wait_for_url(lambda url: url != group)
    page.keyboard.press("Escape")
    page.wait_for_url("**/groups")
    pages.go(page, "groups")
    page.keyboard.press("/")
    page.keyboard.type("baker j")
    assert page.input_value("[name=q]") == "baker j"
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=baker*")
    assert page.locator("[data-rows] tbody tr").count() == 1
    assert pages.wrong == []


@pytest.mark.timeout(900)
@pytest.mark.parametrize("options", [PHONE, {"viewport": {"width": 1280, "height": 800}}], ids=["phone", "desk"])
def test_fifty_removals_are_judged_in_sixty_keys_and_the_buttons_stay_in_reach(browser, tmp_path, options):
    pages = Pages(browser, make_named_run(tmp_path))
    try:
        page = pages.page(**options)
        pages.go(page)
        page.click("text=Review removals")
        page.click("text=Review removals")
        keys, seen, places = 0, set(), []
        while len(seen) < 50:
            place = page.inner_text("#place")
            button = page.locator("button[data-key=y]")
            page.mouse.wheel(0, 2000)
            box, window = button.bounding_box(), page.evaluate("window.innerHeight")
            assert 0 <= box["y"] <= window - box["height"]
            seen.add(page.locator("h1 bdi").first.inner_text())
            places.append(int(place.split(" of ")[0]))
            with page.expect_navigation():
                page.keyboard.press("n" if len(seen) % 3 == 0 else "y")
            keys += 1
            if len(seen) == 20:
                with page.expect_navigation():
                    page.keyboard.press("u")
                with page.expect_navigation():
                    page.keyboard.press("y")
                keys += 2
        assert keys <= 60
        assert places == list(range(1, 51))
        labels = (tmp_path / "out" / "review.csv").read_text().splitlines()[1:]
        decisions = (tmp_path / "out" / "decisions.csv").read_text().splitlines()[1:]
        assert (len(labels), len(decisions)) == (50, 16)
        assert sum(label.endswith(",0") for label in labels) == 16
        page.keyboard.press("?")
        assert page.locator("dialog[open]").inner_text().startswith("Keys")
        page.keyboard.press("y")
        page.keyboard.press("Escape")
        assert page.locator("dialog[open]").count() == 0
        assert page.inner_text("#place").startswith("51 of")
        assert pages.wrong == []
    finally:
        pages.close()


@pytest.mark.timeout(900)
def test_the_slider_counts_at_once_and_shows_pairs_around_it(pages):
    page = pages.page()
    pages.go(page, "threshold")
    points = json.loads(page.inner_text("#points") or page.locator("#points").text_content())
    kept_first = page.inner_text("#kept")
    slider = page.locator("#position")
    slider.focus()
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    at = int(slider.input_value())
    # Without a request to the service: the count appears in the next frame.
    assert page.inner_text("#kept") == f"{points['kept'][at]:,}"
    assert page.inner_text("#cut") == f"{points['cuts'][at]:.4f}"
    assert f"--recipe recipe-{points['cuts'][at]:g}.json" in page.inner_text("#command")
    assert page.get_attribute("#recipe", "href").endswith(f"cut={points['cuts'][at]}")
    page.evaluate("document.querySelector('#around').replaceChildren()")
    page.keyboard.press("ArrowLeft")
    at -= 1
    page.wait_for_url(lambda url: "cut=" in url, timeout=600_000)
    shown = page.inner_text("#kept")
    # The pairs appear once the slider rests.
    page.locator("#around > *").first.wait_for(state="attached", timeout=600_000)
    around = page.inner_text("#around")
    page.reload()
    assert page.inner_text("#kept") == shown == f"{points['kept'][at]:,}"
    assert page.inner_text("#around") == around
    page.keyboard.press("End")
    slider.focus()
    page.keyboard.press("End")
    assert page.inner_text("#kept") == f"{points['kept'][-1]:,}" != kept_first
    assert pages.wrong == []


@pytest.mark.timeout(900)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("options", [PHONE, {"viewport": {"width": 1280, "height": 800}}], ids=["phone", "desk"])
def test_nothing_is_wider_than_the_window_or_hard_to_reach(pages, options, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    page = pages.page(**options, color_scheme=scheme)
    pages.go(page, "groups?q=wide")
    # The group with a word of 5,000 letters.
    wide = page.get_attribute("[data-rows] a.id", "href").partition("/groups/")[2]
    pages.go(page)
    by_source = page.get_attribute(".counts a", "href").rpartition("/")[2]
    pages.go(page, by_source)
    of_source = page.get_attribute("[data-rows] a.id", "href").partition("/groups/")[2]
    filtered = [by_source, f"groups/{of_source}"]
    for view in [*VIEWS, *filtered, f"groups/{wide}", f"groups/{wide.partition('?')[0]}/pair/kept/kept"]:
        pages.go(page, view)
        width = page.evaluate("[document.scrollingElement.scrollWidth, window.innerWidth]")
        assert width[0] <= width[1], (view, width)
        # Colors depend on the scheme and layout on the width: two of the four combinations cover both.
        is_checked = options.get("is_mobile", False) == (scheme == "dark")
        found = axe.Axe().run(page).response["violations"] if is_checked else []
        assert not found, (view, [(one["id"], [node["html"] for node in one["nodes"]]) for one in found])


@pytest.mark.timeout(900)
def test_lists_comparisons_and_labels_work_without_a_script(pages):
    page = pages.page(java_script_enabled=False)
    pages.go(page, "groups")
    page.fill("[name=q]", "baker")
    page.click("text=Show")
    page.click("[data-rows] a.id")
    page.click("[data-rows] tbody a.id >> nth=1")
    assert page.locator("del").count() >= 1
    page.click("button:has-text('Not a duplicate')")
    assert page.locator("button[aria-pressed=true]").count() == 2
    page.click("button:has-text('Undo')")
    assert page.locator("button[aria-pressed=true]").count() == 0
    pages.go(page, "compare")
    page.fill("[name=a]", "one fine day")
    page.fill("[name=b]", "one rainy day")
    page.click("button.first")
    assert page.inner_text("del") == "fine"
    pages.go(page, "threshold")
    page.fill("[name=cut]", "0.3")
    page.click("button:has-text('Show')")
    assert page.inner_text("#cut") == "0.3000"


@pytest.mark.timeout(900)
def test_every_field_has_a_name_and_every_page_a_heading(pages):
    page = pages.page()
    for view in VIEWS:
        pages.go(page, view)
        assert page.locator("h1").count() == 1
        assert page.locator("html[lang]").count() == 1
        unnamed = page.evaluate(
            "[...document.querySelectorAll('input:not([type=hidden]), select, textarea')]"
            ".filter(field => !field.labels.length && !field.ariaLabel).length"
        )
        assert unnamed == 0, view
        assert not re.search(r"- (button|link)$", page.locator("body").aria_snapshot(), re.M), view


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_thousand_groups(browser, tmp_path):
    with (tmp_path / "many.jsonl").open("w") as file:
        for number in range(100_000):
            text = " ".join(f"w{number * 31 + i * 7919 % 65537}" for i in range(14))
            file.write(json.dumps({"id": f"d{number}", "text": text}) + "\n")
            file.write(json.dumps({"id": f"d{number}-again", "text": text + " more"}) + "\n")
    summary = dedup_files(tmp_path / "many.jsonl", tmp_path / "out", Recipe.minhash(0.7))
    assert summary["num_removed"] > 90_000
    pages = Pages(browser, tmp_path / "out")
    try:
        page = pages.page()
        pages.go(page, "groups?sort=input")
        assert page.inner_text("[role=status]").startswith(f"{100_000:,} groups")
        for _ in range(5):
            with page.expect_navigation():
                page.keyboard.press("n")
            assert page.locator("[data-rows] tbody tr").count() == 50
            assert page.evaluate("performance.getEntriesByType('navigation')[0].duration") < 2000
        assert page.inner_text("[data-rows] tbody a.id >> nth=0") == "d250"
        with page.expect_navigation():
            page.keyboard.press("p")
        assert page.inner_text("[data-rows] tbody a.id >> nth=0") == "d200"
        page.goto(f"{pages.base}/groups?q=d77777")
        page.click("[data-rows] a.id")
        assert page.inner_text("h1") == "d77777"
        assert pages.wrong == []
    finally:
        pages.close()
