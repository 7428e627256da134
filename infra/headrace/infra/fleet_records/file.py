"""A fleet as a file: engines and profiles in TOML or JSON, in the words of EngineSpec and LatencyProfile.

    [[engines]]
    engine_id = "engine-a"
    site = "eu-central-1"
    models = ["llama-3.1-8b"]
    profile_id = "h100-llama-3.1-8b"
    [[profiles]]
    profile_id = "h100-llama-3.1-8b"
    ...

`headrace fleet apply --form` prints a complete one, with what may be left out. The same file serves `headrace fleet
apply` and the tests. All problems are told at once, by place.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar, cast

import pydantic

from headrace.infra.configuration.document_text import read_json, read_toml
from headrace.infra.configuration.expected import should_be, why_unreadable
from headrace.infra.configuration.tree import fitted, leaves
from headrace.schemas.check_fleet import check_engine, check_profile
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.fleet import EngineSpec, LatencyProfile

_ENGINE_DEFAULTS: Mapping[str, Any] = {
    "capabilities": (),
    "residency": (),
    "capacity_rps_per_replica": None,
    "address": None,
    "drain": False,
}
_PROFILE_DEFAULTS: Mapping[str, Any] = {
    "hardware": "",
    "model": "",
    "source": "",
    "measured_from_load": 0.0,
    "measured_to_load": 1.0,
    "fit_error_median": None,
    "fit_error_p90": None,
}
FORM = "fleet.toml"
R = TypeVar("R")
_WORDS: Mapping[type, str] = {bool: "true or false", str: "a string", int: "an integer", float: "a number"}


@dataclass(frozen=True, slots=True)
class FleetFile:
    """What a fleet file holds, valid."""

    engines: tuple[EngineSpec, ...] = ()
    profiles: tuple[LatencyProfile, ...] = ()


def form() -> str:
    """Give the complete example: a file that applies as it is."""
    return (resources.files("headrace.infra.problems") / FORM).read_text("utf-8")


def read_fleet_file(path: Path) -> FleetFile:
    """Read and check a fleet file; JSON where its name ends in `.json`, else TOML.

    Raises:
        InvalidInputError: with every problem: the file, unknown keys, wrong values, ids given twice.
    """
    try:
        text = path.read_text("utf-8")
        tree = read_json(text) if path.suffix == ".json" else read_toml(text)
    except (OSError, ValueError) as error:
        raise InvalidInputError(str(path), (why_unreadable(error),)) from error
    return parse_fleet(str(path), tree)


def parse_fleet(name: str, tree: Any) -> FleetFile:  # noqa: ANN401 - what a file holds
    """Check a fleet that was read from `name`.

    Raises:
        InvalidInputError: with every problem.
    """
    if not isinstance(tree, dict):
        raise InvalidInputError(name, (f"the file holds a {type(tree).__name__}; expected engines and profiles",))
    problems: list[str] = []
    shaped: Mapping[str, Any] = fitted(FleetFile, tree, (), problems)
    engines = _entries(EngineSpec, shaped, "engines", _ENGINE_DEFAULTS, problems)
    profiles = _entries(LatencyProfile, shaped, "profiles", _PROFILE_DEFAULTS, problems)
    for at, engine in engines.items():
        problems += [f"{at}.{problem}" for problem in check_engine(engine)]
    for at, profile in profiles.items():
        problems += [f"{at}.{problem}" for problem in check_profile(profile)]
    problems += _repeated("engine_id", [engine.engine_id for engine in engines.values()])
    problems += _repeated("profile_id", [profile.profile_id for profile in profiles.values()])
    if not tree.get("engines") and not tree.get("profiles"):
        problems.append("there is neither an engine nor a profile")
    if problems:
        raise InvalidInputError(name, tuple(problems))
    return FleetFile(tuple(engines.values()), tuple(profiles.values()))


def _entries(
    kind: type[R], shaped: Mapping[str, Any], section: str, defaults: Mapping[str, Any], problems: list[str]
) -> Mapping[str, R]:
    """Give the entries that have the right types, by their place; each is judged whatever the others are."""
    given: object = shaped.get(section, [])
    if not isinstance(given, list):
        problems.append(f"{section} is {given!r}; expected a list of tables")
        return {}
    found: dict[str, R] = {}
    for i, entry in enumerate(cast("Sequence[Any]", given)):
        filled: Any = {**defaults, **cast("dict[str, Any]", entry)} if isinstance(entry, dict) else entry
        try:
            read = pydantic.TypeAdapter(kind).validate_python(filled)
            problems += _coerced(f"{section}.{i}", filled, read)
            found[f"{section}.{i}"] = read
        except pydantic.ValidationError as error:
            for each in error.errors(include_url=False, include_context=False):
                place = ".".join((section, str(i), *map(str, each["loc"])))
                missing = each["type"] == "missing"
                said = "is missing" if missing else f"is {each['input']!r}; {should_be(kind, each)}"
                problems.append(f"{place} {said}")
    return found


def _coerced(at: str, given: Any, read: Any) -> Iterator[str]:  # noqa: ANN401 - an entry as written, and its record
    """Give a problem for each value that was read as another type: "yes" is no boolean, and "10" no number."""
    values: Mapping[tuple[str, ...], object] = dict(leaves(dataclasses.asdict(read)))
    for path, value in leaves(given):
        kind: type[object] = type(values.get(path))
        if isinstance(value, bool | str | int | float) and kind is not type(value) and kind in _WORDS:
            if kind is float and type(value) is int:
                continue
            yield f"{'.'.join((at, *path))} is {value!r}; it should be {_WORDS[kind]}"


def _repeated(name: str, values: Sequence[str]) -> Iterator[str]:
    counts = Counter(values)
    yield from (f"{name} {value!r} is given {count} times" for value, count in counts.items() if count > 1)
