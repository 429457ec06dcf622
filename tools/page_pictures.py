"""Take pictures of every page, light and dark, desktop and phone, with the invented notices of `examples/notices.py`.

Needs Chromium and the packages of the dependency group `browser`: `python tools/page_pictures.py [NAME...]` writes
`docs/images/page/NAME-LOOK.png`.
"""

import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "images" / "page"
PORT = 8799
HOME = f"http://127.0.0.1:{PORT}"
LOOKS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1180, "height": 860}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1180, "height": 860}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 800}},
    "phone-dark": {"color_scheme": "dark", "viewport": {"width": 390, "height": 800}},
}
_COLORS = 128
_MOST_BYTES = 150_000


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yield the address of the pages of a run over the notices."""
    sys.path.insert(0, str(ROOT / "examples"))
    from notices import notices

    (folder / "notices.jsonl").write_text("".join(json.dumps(row) + "\n" for row in notices()), encoding="utf-8")
    command = [sys.executable, "-m", "likewise"]
    run = ["dedup", "notices.jsonl", "-o", "town-notices", "--store-pairs", "0.2", "-q"]
    subprocess.run([*command, *run], cwd=folder, check=True)
    subprocess.run([*command, "report", "town-notices", "-q"], cwd=folder, check=True)
    server = subprocess.Popen(
        [*command, "serve", "town-notices", "--port", str(PORT), "--quiet"], cwd=folder, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{HOME}/healthz", timeout=1)
                break
            except OSError:
                time.sleep(0.2)
        yield f"{HOME}/look/town-notices"
    finally:
        server.terminate()
        server.wait()


def shoot(page: Page, name: str, look: str) -> None:
    """Write a screenshot with few colors."""
    picture = Image.open(io.BytesIO(page.screenshot()))
    target = OUT / f"{name}-{look}.png"
    picture.convert("RGB").quantize(_COLORS, dither=Image.Dither.NONE).save(target, optimize=True)
    if target.stat().st_size > _MOST_BYTES:
        raise SystemExit(f"{target.name} has {target.stat().st_size:,} bytes")


def visit(page: Page, base: str, folder: Path, look: str, wanted: set[str]) -> None:
    """Visit all pages and take a picture of each."""

    def is_wanted(name: str) -> bool:
        return not wanted or name in wanted

    def go(path: str) -> None:
        page.goto(f"{base}/{path}")
        page.wait_for_selector("h1")
        while "being sorted" in page.inner_text("h1"):
            page.wait_for_timeout(200)

    go("")
    if is_wanted("overview"):
        shoot(page, "overview", look)
    go("groups")
    if is_wanted("groups"):
        shoot(page, "groups", look)
    go("groups")
    page.click("[data-rows] a.id >> nth=3")
    if is_wanted("group"):
        shoot(page, "group", look)
    # A pair that differs: an equal copy shows nothing.
    page.locator("[data-rows] tbody tr", has_text=re.compile(r"\b0\.9")).first.locator("a.id").first.click()
    if is_wanted("pair"):
        shoot(page, "pair", look)
    if is_wanted("measures"):
        page.get_by_text("Measures", exact=True).evaluate("node => node.scrollIntoView()")
        page.wait_for_timeout(150)
        shoot(page, "measures", look)
    go("threshold")
    if is_wanted("threshold"):
        page.focus("#position")
        for _ in range(25):
            page.keyboard.press("ArrowLeft")
        page.wait_for_timeout(600)
        shoot(page, "threshold", look)
    go("compare")
    page.fill(
        "[name=a]", "The ferry runs every ten minutes from Monday on, as long as the water is low. Bring no bicycles."
    )
    page.fill(
        "[name=b]",
        "From Monday on the ferry runs every twelve minutes, as long as the water is low. Bring no bicycles.",
    )
    page.click("text=Compare >> nth=-1")
    if is_wanted("compare"):
        shoot(page, "compare", look)
    go("near")
    page.fill(
        "[name=text]",
        "The post office moves to the corner of the market, 12 steps from where it was, and keeps its blue door.",
    )
    page.click("button.first")
    page.wait_for_selector("[role=status]")
    if is_wanted("near"):
        shoot(page, "near", look)
    go("review/next")
    for key in "ynyyn":
        with page.expect_navigation():
            page.keyboard.press(key)
    if is_wanted("next"):
        shoot(page, "next", look)
    go("review")
    if is_wanted("review"):
        shoot(page, "review", look)
    if is_wanted("report"):
        page.goto((folder / "town-notices" / "report.html").as_uri())
        shoot(page, "report", look)


def main() -> None:
    """Take all pictures, or those named."""
    OUT.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser: Browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for look, options in LOOKS.items():
            # Labels of one look must not appear in the next.
            folder = Path(name) / look
            folder.mkdir()
            with served(folder) as base:
                page = browser.new_context(**options).new_page()
                visit(page, base, folder, look, set(sys.argv[1:]))
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
