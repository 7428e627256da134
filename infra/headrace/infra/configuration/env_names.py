"""Which variable was probably meant by one that names no setting: one underscore where two go a level down."""

import difflib
import re
from collections.abc import Iterable

from headrace.infra.configuration.sources import PREFIX
from headrace.infra.configuration.tree import Path

_OPTIONS = ("kafka", "registry")


def meant_variable(name: str, settings: Iterable[Path]) -> str | None:
    """Give the variable that was probably meant by `name`; None where none is near.

    `HEADRACE_KAFKA_BOOTSTRAP_SERVERS` -> `HEADRACE_KAFKA__BOOTSTRAP_SERVERS`.

    Args:
        name: a variable that begins with HEADRACE_.
        settings: every known setting by its path.
    """
    flat = _flat(name)
    for section in _OPTIONS:
        start = _flat(f"{PREFIX}{section}_options_")
        if flat.startswith(start) and len(flat) > len(start):
            return f"{PREFIX}{section.upper()}__OPTIONS__{flat.removeprefix(start).upper()}"
    known = {_flat(variable): variable for variable in ("__".join((PREFIX[:-1], *path)).upper() for path in settings)}
    known = {each: PREFIX + variable.removeprefix(f"{PREFIX}_") for each, variable in known.items()}
    close = difflib.get_close_matches(flat, known, n=1, cutoff=0.85)
    return known[close[0]] if close else None


def _flat(name: str) -> str:
    return re.sub("_+", "_", name.lower())
