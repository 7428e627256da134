"""The page's files, as the wheel carries them, and the charting library, as plotly's wheel carries it.

    /             page/index.html           /login        page/login.html
    /page/NAME    page/NAME                 /lib/plotly.min.js
No other file can be asked for: the table is made at the start.
"""

import hashlib
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
PLOTLY = "/lib/plotly.min.js"


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file's bytes, its media type, and an ETag that is its content's."""

    content: bytes
    kind: str
    etag: str


def page_files() -> dict[str, PageFile]:
    """Give every file by its path. Needs plotly."""
    found = {f"/page/{file.name}": _file(file) for file in _page().iterdir() if _suffix(file.name) in KINDS}
    found["/"] = found.pop("/page/index.html")
    found["/login"] = found.pop("/page/login.html")
    found[PLOTLY] = _file(resources.files("plotly").joinpath("package_data", "plotly.min.js"))
    return found


def _page() -> Traversable:
    return resources.files("headrace.infra.console").joinpath("page")


def _file(file: Traversable) -> PageFile:
    content = file.read_bytes()
    return PageFile(content, KINDS[_suffix(file.name)], hashlib.sha256(content).hexdigest()[:32])


def _suffix(name: str) -> str:
    return f".{name.rpartition('.')[2]}"
