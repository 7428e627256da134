"""Checks, one per file; the file's name is the check's. Each has `check(picture, now_ms)`, which gives its findings.

A check may say in `FOLLOWS_FROM` which other checks' faults would explain its own findings: with no worker the engines'
states are old, and that is no news. Adding a file adds a check; its docstring's first line is what `--list` says of it.
"""

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Protocol, cast

from headrace.infra.doctor.core.contract import Finding
from headrace.infra.doctor.core.picture import Picture
from headrace.schemas.errors import InvalidInputError

UNREAD = "unread"
"""The check without which nothing found would not mean that all was looked at."""


class Check(Protocol):
    """Judges one thing."""

    def __call__(self, picture: Picture, now_ms: int) -> Iterable[Finding]:
        """Give what is wrong; nothing where all is well, and where what it needs could not be read."""
        ...


@dataclass(frozen=True, slots=True)
class NamedCheck:
    """A check as its file has it."""

    name: str
    about: str
    judge: Check
    follows_from: tuple[str, ...]


def check_names() -> tuple[str, ...]:
    """Give the names of all checks, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def check_named(name: str) -> NamedCheck:
    """Give a check by its file's name."""
    module = importlib.import_module(f"{__name__}.{name}")
    about = (module.__doc__ or "").strip().split("\n")[0]
    follows_from = cast("tuple[str, ...]", getattr(module, "FOLLOWS_FROM", ()))
    return NamedCheck(name, about, cast("Check", module.check), follows_from)


def chosen(only: Iterable[str], skip: Iterable[str]) -> tuple[NamedCheck, ...]:
    """Give the checks that are wanted: `only` these, or all but `skip`. What could not be read is told with either.

    Raises:
        InvalidInputError: there is no such check; every name that is none is told, with the nearest.
    """
    only, skip, names = tuple(only), tuple(skip), check_names()
    problems = [
        f"{option} is {name!r}; {_nearest(name, names)}"
        for option, given in (("--only", only), ("--skip", skip))
        for name in given
        if name not in names
    ]
    if problems:
        raise InvalidInputError("doctor", tuple(problems))
    wanted = {*only, UNREAD} if only else set(names)
    return tuple(check_named(name) for name in names if name in wanted and name not in skip)


def _nearest(name: str, names: tuple[str, ...]) -> str:
    near = get_close_matches(name, names, n=1)
    return f"the nearest is {near[0]}" if near else f"there are {', '.join(names)}"
