"""A variant: a name, and the settings that it runs by: those that were recorded, with overrides on top.

    lp                                  the policy, its settings as recorded
    proportional:k=0.1                  `k` is the policy's gain: proportional_gain
    pid:k=0.1,integral=0.02             other names are settings, or settings of the policy without its name in front
    calm=lp:move_price_ms=50            a name of its own
    recorded                            the policy and settings that were recorded

What is given for all variants (`--set solver.move_price_ms=50`) comes first, what a variant says itself on top.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import orjson

from headrace.schemas.errors import InvalidInputError
from headrace.solver.core.policies import policy_names
from headrace.solver.core.problem_file.setting_values import LIKE, with_settings
from headrace.solver.settings import SolverSettings

RECORDED = "recorded"
_SECTION = "solver."


@dataclass(frozen=True, slots=True)
class Variant:
    """What to play. `settings` are effective: with every default, so that the result says what it was made by."""

    name: str
    settings: SolverSettings
    overrides: Mapping[str, Any]


def parse_variants(texts: Sequence[str], given: Sequence[str], base: SolverSettings) -> tuple[Variant, ...]:
    """Read variants as they stand on a command line.

    Args:
        texts: one each, as above.
        given: overrides for all of them, `solver.NAME=VALUE`.
        base: the settings that were recorded.

    Raises:
        InvalidInputError: a policy, a setting or a value is not right, or two variants have one name; all are told.
    """
    problems: list[str] = []
    shared = dict(_pairs(given, problems))
    variants = [_variant(text, shared, base, problems) for text in texts]
    names = [variant.name for variant in variants]
    problems += [f"two variants are called {name!r}: give one a name, NAME={name}" for name in sorted(_twice(names))]
    if problems:
        raise InvalidInputError("variants", tuple(dict.fromkeys(problems)))
    return tuple(variants)


def _pairs(given: Sequence[str], problems: list[str]) -> Mapping[str, Any]:
    pairs: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.startswith(_SECTION):
            problems.append(f"--set is {text!r}; expected {_SECTION}NAME=VALUE")
        else:
            pairs[key.removeprefix(_SECTION).strip()] = _value(value)
    return pairs


def _variant(text: str, shared: Mapping[str, Any], base: SolverSettings, problems: list[str]) -> Variant:
    head, _, tail = text.partition(":")
    name, named, policy = head.rpartition("=")
    own = {} if policy == RECORDED else {"policy": policy}
    for item in filter(None, tail.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            problems.append(f"{text}: {item!r} is not NAME=VALUE")
        else:
            setting = _setting(policy, key.strip())
            near = _short_name_like(policy, setting)
            if near is None:
                own[setting] = _value(value)
            else:
                problems.append(f"{text}.{setting} is no setting; did you mean {near!r}?")
    overrides = {**shared, **own}
    settings = with_settings(base, overrides, text, problems)
    return Variant(name if named else text, settings, overrides)


def _setting(policy: str, key: str) -> str:
    """Give the setting that a short name stands for; one that stands for nothing is left, and refused by name."""
    known = {field.name for field in dataclasses.fields(SolverSettings)}
    owned = f"{policy}_{'gain' if key == 'k' else key}"
    if policy in policy_names() and owned in known:
        return owned
    return key.removeprefix(_SECTION)


def _short_name_like(policy: str, setting: str) -> str | None:
    """Give the policy's own short name that one which is no setting is most like; None where it is like none."""
    known = [field.name for field in dataclasses.fields(SolverSettings)]
    if setting in known:
        return None
    short = [name.removeprefix(f"{policy}_") for name in known if name.startswith(f"{policy}_")]
    own = ["k" if name == "gain" else name for name in short] if policy in policy_names() else []
    near = get_close_matches(setting, [*own, *known], n=1, cutoff=LIKE)
    return near[0] if near else None


def _value(text: str) -> Any:  # noqa: ANN401 - whatever JSON says
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text.strip()


def _twice(names: Sequence[str]) -> set[str]:
    return {name for name in names if names.count(name) > 1}
