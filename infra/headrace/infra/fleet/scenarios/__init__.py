"""Scenarios, one file each, called by their file names with `-` for `_`; each holds one `scenario()`."""

import importlib
import pkgutil

from headrace.infra.fleet.scenario import Scenario
from headrace.schemas.errors import InvalidInputError


def scenario_names() -> tuple[str, ...]:
    """Give the scenarios' names, sorted."""
    return tuple(sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)))


def load_scenario(name: str) -> Scenario:
    """Give a scenario by its name.

    Raises:
        InvalidInputError: there is none of that name.
    """
    if name not in scenario_names():
        raise InvalidInputError("scenario", (f"scenario is {name!r}; known are {', '.join(scenario_names())}",))
    found: Scenario = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").scenario()
    return found
