"""A real Chromium and a real service; skipped if Chromium is missing (`.ci/run` installs both)."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.runs.viewing.runs import make_run
from tests.waiting import LIMIT_S


class Pages:
    """A service, and a browser that shows its pages.

    Attributes
    ----------
    base : str
        Address of the view's pages.
    """

    def __init__(self, browser, run):
        self._browser = browser
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "likewise", "serve", str(run), "--port", "0", "--quiet"]
        self._service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        first = json.loads(self._service.stderr.readline())
        self.base = f"{first['url']}/look/{run.name}"
        self.wrong = []

    def page(self, **options):
        """Open a new window; collect its errors."""
        page = self._browser.new_context(**options).new_page()
        page.on("console", lambda message: self.wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda dialog: (self.wrong.append(dialog.message), dialog.dismiss()))
        page.set_default_timeout(600_000)
        return page

    def go(self, page, path=""):
        """Open a page of the view, and wait until its groups are sorted."""
        page.goto(f"{self.base}/{path}")
        while re.search("being sorted", page.inner_text("h1")):
            page.wait_for_timeout(200)

    def close(self):
        self._service.terminate()
        self._service.wait(LIMIT_S)
        self._service.stderr.close()


# For the module: Playwright runs an event loop in the test thread, where no other can start.
@pytest.fixture(scope="module")
def browser():
    """Start the browser for all tests."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (dependency group browser)")
    pytest.importorskip("fastapi", reason="needs likewise[server]")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs Chromium on the PATH")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def pages(browser, tmp_path_factory):
    """Serve a run with hostile documents and sources and stored pairs."""
    served = Pages(browser, make_run(tmp_path_factory.mktemp("browser"), store_pairs=0.2, count_by="source"))
    yield served
    served.close()
