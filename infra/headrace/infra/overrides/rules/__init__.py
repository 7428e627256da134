"""What an override must not break: one rule a file, each a pure function of what stands and the override.

    broken(stands, override) -> a sentence with the numbers, or None        FORCEABLE: whether `--force` goes beyond it

A rule that cannot be forced is one that the solver would not obey either: it would hold the override to what is there,
and the operator would look for the reason in the wrong place. Adding a file adds a rule.
"""

import importlib
import pkgutil
from dataclasses import dataclass
from typing import Protocol, cast

from headrace.infra.what_if.answer import WhatIf
from headrace.schemas.overrides import Override
from headrace.solver.core.problem import Problem


@dataclass(frozen=True, slots=True)
class Stands:
    """What stands when an override is said.

    Attributes:
        fleet: the engines' ids.
        problem: of the newest tick, as its policy was given it: other overrides and measured capacities are in it;
            None where it cannot be had.
        answer: that tick solved again with the override; None where it cannot be told.
        not_told: why not; empty where it can.
    """

    fleet: tuple[str, ...]
    problem: Problem | None = None
    answer: WhatIf | None = None
    not_told: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that an override would break, by name, and how."""

    rule: str
    sentence: str
    forceable: bool


class Rule(Protocol):
    """A module of this folder."""

    FORCEABLE: bool

    def broken(self, stands: Stands, override: Override) -> str | None:
        """Say what the override would break, with the numbers; None where nothing."""
        ...


def rule_names() -> tuple[str, ...]:
    """Give the names of all rules, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def broken_rules(stands: Stands, override: Override) -> tuple[Broken, ...]:
    """Give every rule that an override would break, those that cannot be forced first."""
    found: list[Broken] = []
    for name in rule_names():
        rule = cast("Rule", importlib.import_module(f"{__name__}.{name}"))
        sentence = rule.broken(stands, override)
        if sentence is not None:
            found.append(Broken(name, sentence, rule.FORCEABLE))
    return tuple(sorted(found, key=lambda each: (each.forceable, each.rule)))
