"""The settings a tick ran by, as JSON text and back: what a decision record carries, and a replay begins from.

Every setting is in it, defaults included, so that a later build with other defaults reads what was in force then.
"""

import dataclasses
from difflib import get_close_matches
from typing import Any, cast

import orjson

from headrace.schemas.errors import InvalidInputError
from headrace.solver.settings import ClassSettings, SolverSettings

BEFORE = SolverSettings(load_spread=0.0, surge_load=0.0)
"""As builds behaved that did not have a setting yet: its default but where it is named here."""


def settings_text(settings: SolverSettings) -> str:
    """Give every setting as one line of JSON, keys sorted: the same settings, the same text."""
    return orjson.dumps(dataclasses.asdict(settings), option=orjson.OPT_SORT_KEYS).decode()


def settings_of(text: str) -> SolverSettings:
    """Read what `settings_text` gave, of this build or an older one, whose missing settings are as it behaved.

    Raises:
        InvalidInputError: it is no JSON object, or holds settings that this build does not know.
    """
    try:
        found: object = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidInputError("recorded settings", (f"no JSON: {error}",)) from error
    if not isinstance(found, dict):
        raise InvalidInputError("recorded settings", (f"{found!r:.60} is no JSON object",))
    values = cast("dict[str, Any]", found)
    known = [field.name for field in dataclasses.fields(SolverSettings)]
    problems = tuple(f"{name} is no setting of this build{_near(name, known)}" for name in values if name not in known)
    if problems:
        raise InvalidInputError("recorded settings", problems)
    if classes := {name: _class(each) for name, each in values.pop("classes", {}).items()}:
        values["classes"] = classes
    return dataclasses.replace(BEFORE, **values)


def _class(values: dict[str, Any]) -> ClassSettings:
    work = values.get("work", ClassSettings().work)
    return ClassSettings(values["tier"], tuple(values["requires"]), tuple(values["residency"]), work)


def _near(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"; did it become {near[0]!r}?" if near else ""
