"""Values by name -> solver settings, checked against the bounds that stand beside each setting.

For settings that come from a problem file or a flag. `classes` is not among them: the rows of a problem carry their
tier and what they ask for themselves.
"""

import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Lt

from headrace.schemas.errors import InvalidInputError
from headrace.solver.core.policies import policy_names
from headrace.solver.settings import SolverSettings

_NOT_HERE = "classes"
LIKE = 0.5
"""How alike names must be for one to be meant by the other: half of the letters, since policies have short names."""
MAX_FLOAT = sys.float_info.max
_BOUNDS: tuple[tuple[type, str, str, Callable[[Any, Any], bool]], ...] = (
    (Ge, "ge", "at least", operator.ge),
    (Gt, "gt", "above", operator.gt),
    (Le, "le", "at most", operator.le),
    (Lt, "lt", "below", operator.lt),
)


def with_settings(base: SolverSettings, values: Mapping[str, Any], at: str, problems: list[str]) -> SolverSettings:
    """Lay values over settings, noting every problem; what is wrong keeps the base's value.

    Args:
        base: settings to start from.
        values: by field name, of JSON's types.
        at: where they come from, for the problems.
        problems: is added to.
    """
    hints = get_type_hints(SolverSettings, include_extras=True)
    known = [name for name in hints if name != _NOT_HERE]
    good: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            problems.append(f"{at}.{name} is no setting; {hint}")
            continue
        found = [*_problems(hints[name], value), *(_policy_problem(value) if name == "policy" else ())]
        problems.extend(f"{at}.{name} is {value!r}; {problem}" for problem in found)
        if not found:
            good[name] = float(value) if _bare(hints[name]) is float else value
    try:
        return replace(base, **good)
    except InvalidInputError as error:
        problems.extend(error.problems)
        return base


def _policy_problem(value: object) -> Iterator[str]:
    if value not in policy_names():
        near = get_close_matches(str(value), policy_names(), n=1, cutoff=LIKE)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        yield f"one of {', '.join(policy_names())}{hint}"


def _bare(hint: object) -> object:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _problems(hint: object, value: object) -> Iterator[str]:
    kind = _bare(hint)
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            yield f"one of {', '.join(map(str, get_args(kind)))}"
        return
    if kind is float or kind is int:
        if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
            yield "an integer" if kind is int else "a number"
            return
        if not -MAX_FLOAT <= value <= MAX_FLOAT:
            yield "a finite number"
            return
        yield from _bounds(get_args(hint)[1:], value)
    elif isinstance(kind, type) and not isinstance(value, kind):
        yield f"a {kind.__name__}"


def _bounds(marks: tuple[Any, ...], value: float) -> Iterator[str]:
    for mark in marks:
        for kind, field, words, holds in _BOUNDS:
            if isinstance(mark, kind) and not holds(value, getattr(mark, field)):
                yield f"{words} {getattr(mark, field)}"
