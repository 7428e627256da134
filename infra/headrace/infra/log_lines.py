"""How every worker logs: one JSON object a line on standard error, `event` in words, its fields beside it.

    {"event": "solver ready", "level": "info", "time": "2026-01-02T03:04:05.678Z", "epoch": 3}

Standard output is kept for what a command prints.
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import orjson
import structlog
from structlog.tracebacks import ExceptionDictTransformer

LEVELS = ("debug", "info", "warning", "error")


def open_log(level: str = "info") -> Any:  # noqa: ANN401 - structlog's logger is typed by its configuration
    """Give a logger that writes JSON lines of `level` and above to standard error."""
    return structlog.wrap_logger(
        structlog.WriteLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            # Without the frames' variables: they may hold passwords.
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            _event_first,
            structlog.processors.JSONRenderer(serializer=_dumps),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        cache_logger_on_first_use=True,
    )


def _event_first(_log: Any, _method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:  # noqa: ANN401 - structlog's signature
    return {name: fields[name] for name in ("event", "level", "time")} | dict(fields)


def _dumps(fields: Any, **_: object) -> str:  # noqa: ANN401 - whatever was logged
    return orjson.dumps(fields, default=str).decode()
