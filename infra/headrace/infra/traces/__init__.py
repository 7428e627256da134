"""Public request traces, one format a file; the file's name is the format's. Each holds `read(file) -> RequestTrace`.

Adding a file adds a format.
"""

import importlib
import pkgutil
from pathlib import Path

from headrace.infra.traces.request_trace import RequestTrace
from headrace.schemas.errors import InvalidInputError

_NOT_FORMATS = ("request_trace", "lines")


def trace_formats() -> tuple[str, ...]:
    """Give the formats' names, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in _NOT_FORMATS))


def read_trace(form: str, file: Path | None) -> RequestTrace:
    """Read a trace of a format; without a file the one that ships, which only `azure` has.

    Raises:
        InvalidInputError: there is no such format, no such file, or it is not of that format; all that is wrong with
            its first lines is told.
    """
    if form not in trace_formats():
        raise InvalidInputError("trace", (f"format is {form!r}; known are {', '.join(trace_formats())}",))
    trace: RequestTrace = importlib.import_module(f"{__name__}.{form}").read(file)
    return trace
