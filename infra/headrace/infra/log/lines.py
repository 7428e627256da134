"""How every worker logs: `event` in words and its fields beside it, a line each, on standard error.

    {"event": "solver ready", "level": "info", "time": "2026-01-02T03:04:05.678Z", "epoch": 3}       log.format = json
    03:04:05.678 info     solver ready                   epoch=3                                     log.format = text

What libraries log by the standard library's own logging comes out in the same form. No secret of the configuration is
in any line: each goes through `headrace.infra.secrets`. Standard output is kept for what a command prints.
"""

import contextlib
import io
import logging
import sys
from collections.abc import MutableMapping
from types import TracebackType
from typing import Any, Protocol, TextIO, cast

import orjson
import structlog
from structlog.tracebacks import ExceptionDictTransformer

from headrace.infra.log.libraries import redirect_library_logs
from headrace.infra.log.settings import LogSettings
from headrace.infra.secrets import fields_without_secrets, secrets_of


class Logged(Protocol):
    """A configuration with a section for the log; whatever else it holds is looked through for secrets."""

    @property
    def log(self) -> LogSettings:
        """Give the settings of the log."""
        ...


def open_log(config: Logged, level: str = "info") -> Any:  # noqa: ANN401 - structlog's logger is typed by its configuration
    """Give a logger that writes lines of `level` and above to standard error, and send the libraries' logs there."""
    secrets = secrets_of(config)
    text = config.log.format == "text" or (config.log.format == "auto" and sys.stderr.isatty())

    def redact(_log: object, _method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        found: MutableMapping[str, Any] = fields_without_secrets(fields, secrets)
        return found

    log = structlog.wrap_logger(
        structlog.WriteLogger(cast("TextIO", _StandardError())),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S.%f" if text else "iso", utc=True, key="time"),
            # Without the frames' variables: they may hold passwords.
            structlog.processors.format_exc_info
            if text
            else structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            redact,
            *((_people,) if text else (_event_first, structlog.processors.JSONRenderer(serializer=_dumps))),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        cache_logger_on_first_use=True,
    )
    redirect_library_logs(log)
    _say_what_ends_it(log)
    return log


class _StandardError(io.TextIOBase):
    """Standard error as it is when a line is written. One that takes no line (closed, full) ends nothing for it.

    Lines come from the Kafka client's callbacks, too: an error there would be the command's own.
    """

    def write(self, text: str, /) -> int:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


def _say_what_ends_it(log: Any) -> None:  # noqa: ANN401 - structlog's logger is typed by its configuration
    """Log the error that ends the process as every other line, instead of a bare traceback."""

    def say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
        else:
            log.error("ended by an error that nobody expected", exc_info=(kind, error, trace))

    sys.excepthook = say


_people = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), timestamp_key="time", pad_event_to=0)


def _event_first(_log: Any, _method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:  # noqa: ANN401 - structlog's signature
    return {name: fields[name] for name in ("event", "level", "time")} | dict(fields)


def _dumps(fields: Any, **_: object) -> str:  # noqa: ANN401 - whatever was logged
    return orjson.dumps(fields).decode()
