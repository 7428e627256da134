"""A document -> the files of a report; and back: a report's folder -> its document, to be drawn again."""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, cast

import orjson

from headrace.replay.report.csv_tables import numbers_csv, series_csv
from headrace.replay.report.document import FORMAT
from headrace.replay.report.page import html_page
from headrace.schemas.errors import InvalidInputError

DOCUMENT = "comparison.json"
PAGE = "report.html"


def write_report(document: Mapping[str, Any], folder: Path) -> Path:
    """Write comparison.json, comparison.csv, series.csv and report.html; give the page's path.

    The document is written first, and each file replaces an older one as a whole: what is there after an interruption
    can be drawn with `headrace replay report`.

    Raises:
        InvalidInputError: the folder cannot be written to.
    """
    # Here, since plotly is an extra that only a report needs.
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]  # noqa: PLC0415 - as said above

    try:
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / DOCUMENT, orjson.dumps(document, option=orjson.OPT_INDENT_2))
        _replace(folder / "comparison.csv", numbers_csv(document).encode())
        _replace(folder / "series.csv", series_csv(document).encode())
        _replace(folder / PAGE, html_page(document, str(get_plotlyjs())).encode())
    except OSError as error:
        raise InvalidInputError(str(folder), (f"cannot be written: {error.strerror}",)) from error
    return folder / PAGE


def read_document(place: Path) -> dict[str, Any]:
    """Read the document of a report's folder, or the file itself.

    Raises:
        InvalidInputError: there is none, or it is none of ours.
    """
    file = place / DOCUMENT if place.is_dir() else place
    try:
        document: Any = orjson.loads(file.read_bytes())
    except OSError as error:
        raise InvalidInputError(str(file), (f"cannot be read: {error.strerror}",)) from error
    except orjson.JSONDecodeError as error:
        raise InvalidInputError(str(file), (f"is not JSON: {error}",)) from error
    found = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    if found.get("format") != FORMAT:
        raise InvalidInputError(str(file), (f"is not a comparison of format {FORMAT}",))
    return found


def schema_text() -> str:
    """Give the JSON Schema of a comparison's document."""
    return (resources.files(__package__ or "") / "comparison.schema.json").read_text(encoding="utf-8")


def _replace(file: Path, content: bytes) -> None:
    fresh = file.with_name(f".{file.name}.new")
    fresh.write_bytes(content)
    fresh.replace(file)
