"""A real browser for pages: the Chromium that this machine has, headless, driven by Playwright's wheel.

Playwright's own browsers are not fetched: HEADRACE_CHROMIUM names one, else it is looked for on PATH. Where there is
none, the tests that need it are skipped and say how to get it; `infra/setup.sh browser` gets it where it can.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "chromium-headless-shell")
LACKING = (
    "needs Chromium: HEADRACE_CHROMIUM, or on PATH (Debian: apt-get install chromium; macOS: brew install chromium)"
)
ARGUMENTS = ("--no-sandbox", "--disable-dev-shm-usage")
"""As in a container: no user namespaces, and a small /dev/shm."""
WAIT_MS = 60_000.0


def chromium() -> str | None:
    """Where the browser is; None where there is none."""
    named = os.environ.get("HEADRACE_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


needs_browser = pytest.mark.skipif(chromium() is None, reason=LACKING)


@contextmanager
def browser_running() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page, with all that it complained of and all that it asked for elsewhere.

    `quiet` is False while what it asks is meant to fail: a browser tells of each failed request.
    """

    def __init__(
        self, browser: Browser, url: str, *, width: int = 1_440, height: int = 900, dark: bool = False
    ) -> None:
        scheme = "dark" if dark else "light"
        self.context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.context.set_default_timeout(WAIT_MS)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        self.quiet = True
        self._url = url
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._asked)
        self.page.goto(url)

    def _said(self, message: ConsoleMessage) -> None:
        failed = "Failed to load resource" in message.text
        if message.type in ("error", "warning") and not (failed and not self.quiet):
            self.complaints.append(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self._url, "data:", "blob:")):
            self.elsewhere.append(request.url)

    def __enter__(self) -> "Watched":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.context.close()
        if kind is None:
            assert not self.complaints, self.complaints
            assert not self.elsewhere, self.elsewhere
