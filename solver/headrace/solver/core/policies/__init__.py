"""Policies, one per file; the file's name is the name in the settings. Each has `plan(layout, settings, lp)`.

A policy sees the whole problem as arrays and says where each row's demand goes. It answers `Failed` where it cannot;
the tick then takes the next rung. Adding a file adds a policy.
One that pushes weights by what engines measured, and waits to see what comes of it, says `STEERS_BY_LATENCY = True`.
"""

import importlib
import pkgutil
from difflib import get_close_matches
from typing import Protocol, cast

from headrace.schemas.errors import InvalidInputError
from headrace.solver.core.linear import Failed, LinearSolver
from headrace.solver.core.program.layout import Layout
from headrace.solver.core.program.plan import Plan
from headrace.solver.settings import SolverSettings


class Policy(Protocol):
    """Decides where demand goes."""

    def __call__(self, layout: Layout, settings: SolverSettings, lp: LinearSolver) -> Plan | Failed:
        """Give a plan for every row of the layout, or why there is none."""
        ...


def policy_names() -> tuple[str, ...]:
    """Give the names of all policies, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def policy_named(name: str) -> Policy:
    """Give a policy by its file's name.

    Raises:
        InvalidInputError: there is no such file; the message names the nearest.
    """
    names = policy_names()
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidInputError("policy", (f"policy is {name!r}; there are {', '.join(names)}{hint}",))
    return cast("Policy", importlib.import_module(f"{__name__}.{name}").plan)


def steers_by_latency(name: str) -> bool:
    """Say whether a policy is a feedback loop on measured latency; one that is not known here is taken not to be."""
    if name not in policy_names():
        return False
    return bool(getattr(importlib.import_module(f"{__name__}.{name}"), "STEERS_BY_LATENCY", False))
