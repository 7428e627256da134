"""The JSON form of a problem: what `headrace solve` reads. Units are in the names. Every problem is told at once.

    {
      "description": "free text",
      "settings":  {"segments": 24, "move_price_ms": 30, "engine_cost": "convex", ...}      the solver's, all optional
      "profiles":  [{"profile_id", "capacity_rps", "output_tokens",
                     "load_knots": [0, 0.5, 1], "ttft_s": [...], "tbot_s": [...],          rising knots from 0 up to 1
                     "hardware", "model", "source", "measured_from_load", "measured_to_load"}]       optional from here
      "engines":   [{"engine_id", "site", "models": [...], "profile_id", "ready_replicas",
                     "capacity_rps_per_replica",                                           optional: the profile's
                     "capabilities": [], "residency": [], "factor": 1, "factor_sentence": "", "address": null,
                     "exclusion": {"reason": "DRAINED", "sentence": "..."}}]
      "network":   [{"from_cluster", "to_site", "rtt_ms"}]                                 null = every probe was lost
      "demand":    [{"cluster", "model", "demand_rps", "request_class": "default",
                     "tier": 0, "requires": [], "residency": [], "work": 1}]
      "previous":  [{"cluster", "model", "request_class": "default", "weights_ppm": {"engine-a": 1000000}}]
      "pins":      [{"cluster", "engine_id", "least": 0, "most": 1, "sentence": ""}]     shares of what it asks for
    }

A complete example: `headrace solve three-regions --print`.

`engine_cost` "none" minimises the network alone, within hard capacity. A tier of 0 is shed last. `work` is what a
request costs an engine, relative to those that profiles and capacities were measured with. A pin bounds what a cluster
sends an engine; `headrace solve --profiles FILE` takes profiles from a file of `headrace profile fit --out` or of a
fleet, in place of those of the same id: `profiles` may then be left out. Refused are unknown keys
(with the nearest known one), anything not finite, anything negative, repeated keys, a model or profile named nowhere,
pins that ask for more than 100 % of a route, and a link whose cluster or site is nobody's where the nearest name's own
link is missing; other such links are told.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, TypeVar

from headrace.schemas.check_fleet import MIN_KNOT_STEP
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.fleet import LatencyProfile
from headrace.schemas.ids import RouteKey
from headrace.schemas.weights import PPM, Reason, Snapshot
from headrace.solver.core.problem import Engine, Exclusion, Pin, Problem, Row
from headrace.solver.core.problem_file.json_reader import Reader
from headrace.solver.core.problem_file.network_names import mistyped, told_names, with_nearest
from headrace.solver.core.problem_file.previous_weights import previous_snapshot
from headrace.solver.core.problem_file.setting_values import with_settings
from headrace.solver.core.profile.load_cost import MS
from headrace.solver.core.program.pin_sums import over_asked, sum_words
from headrace.solver.settings import SolverSettings

T = TypeVar("T")
K = TypeVar("K")

MAX_RPS = 1e9
MAX_SECONDS = 3600.0
SMALLEST = 1e-9
SHOWN = 20
"""How many names are told where there may be many."""
LEAST_WORK, MOST_WORK = 0.001, 1000.0
"""Those of the setting `classes.<name>.work`."""


@dataclass(frozen=True, slots=True)
class ParsedProblem:
    """A problem file: what to solve, from where, and by which rules; what in it has no effect, a sentence each."""

    problem: Problem
    previous: Snapshot | None
    settings: SolverSettings
    warnings: tuple[str, ...] = ()


def parse_problem(
    content: bytes | str | Mapping[str, Any],
    base: SolverSettings | None = None,
    name: str = "problem",
    given: Iterable[LatencyProfile] = (),
) -> ParsedProblem:
    """Read a problem; its settings are laid over `base`. Errors are of `name`: the file's.

    Profiles that are `given`, already valid, stand in place of the file's of the same id.

    Raises:
        InvalidInputError: with everything that is wrong.
    """
    problems: list[str] = []
    root = Reader(_document(content, name, problems), "", problems)
    root.only("description", "settings", "profiles", "engines", "network", "demand", "previous", "pins")
    others = {profile.profile_id: profile for profile in given}
    profiles = {**_keyed(root, "profiles", _profile, lambda p: p.profile_id, required=not others), **others}
    engines = _keyed(root, "engines", lambda reader: _engine(reader, profiles), lambda e: e.engine_id)
    rows = _keyed(root, "demand", _row, lambda row: row.route)
    links = _keyed(root, "network", _link, lambda link: link[0])
    named = _clusters_and_sites(problems, rows, engines)
    for link in links:
        wrong = mistyped(link, links, named)
        if wrong:
            root.note("network", f"{link}: {wrong}")
    _unused(root, others, engines)
    settings = with_settings(base or SolverSettings(), root.nested("settings").items(), "settings", problems)
    weights = dict(_weights(reader, engines) for reader in root.nested_list("previous"))
    clusters = {route.cluster for route in rows}
    pins = _keyed(root, "pins", lambda reader: _pin(reader, engines, clusters), _pinned, required=False)
    _fit(root, rows.values(), engines, pins.values())
    served = {model for engine in engines.values() for model in engine.models}
    asked = dict.fromkeys(route.model for route in rows) if _named_whole(problems, "engines", "models") else {}
    for model in asked:
        if model and model not in served:
            near = get_close_matches(model, sorted(served), n=1)
            root.note("demand", f"asks for {model!r}, which no engine serves{_hint(near)}")
    if problems:
        raise InvalidInputError(name, tuple(problems))
    problem = Problem(
        tuple(rows.values()),
        tuple(engines.values()),
        dict(links.values()),
        profiles,
        pins=tuple(pin for _, pin in sorted(pins.items())),
    )
    previous = previous_snapshot(weights) if weights else None
    return ParsedProblem(problem, previous, settings, tuple(told_names(links, named)))


def _clusters_and_sites(
    problems: list[str], rows: Collection[RouteKey], engines: Mapping[str, Engine]
) -> tuple[Collection[str], Collection[str]]:
    """Give the clusters that ask and the sites with an engine; none of those that could not all be read."""
    clusters = {route.cluster for route in rows} if _named_whole(problems, "demand", "cluster") else set[str]()
    sites = {engine.site for engine in engines.values()} if _named_whole(problems, "engines", "site") else set[str]()
    return clusters, sites


def _unused(root: Reader, given: Collection[str], engines: Mapping[str, Engine]) -> None:
    """Note profiles that were given of which no engine has one: they would change nothing."""
    used = sorted({engine.profile_id for engine in engines.values()})
    if not given or not _named_whole(root.problems, "engines", "profile_id") or set(given) & set(used):
        return
    ids = ", ".join(with_nearest(profile_id, used) for profile_id in sorted(given)[:SHOWN])
    root.note("profiles", f"given are {ids}: no engine has one of them; engines have {', '.join(used[:SHOWN])}")


def _keyed(
    root: Reader, name: str, read: Callable[[Reader], T], key_of: Callable[[T], K], *, required: bool = True
) -> dict[K, T]:
    """Read a list of things of which each has its own key."""
    found: dict[K, T] = {}
    for reader in root.nested_list(name, required=required):
        thing = read(reader)
        key = key_of(thing)
        if key in found:
            reader.note("", f"repeats {key}")
        found[key] = thing
    return found


def _named_whole(problems: list[str], name: str, field: str) -> bool:
    """Say whether a list's names could all be read; else what refers to one is not held against it."""
    torn = re.compile(rf"{name}(\[\d+\](\.{field}(\[\d+\])?)?)? (is|has|names)\b")
    return not any(torn.match(problem) for problem in problems)


def _document(content: bytes | str | Mapping[str, Any], name: str, problems: list[str]) -> object:
    """Parse JSON. NaN and Infinity are values here: whoever reads the field refuses them, by their place."""
    if isinstance(content, Mapping):
        return dict(content)

    def noting_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        counts = Counter(key for key, _ in pairs)
        problems.extend(
            f"key {key!r} is given {count} times in one object" for key, count in counts.items() if count > 1
        )
        return dict(pairs)

    try:
        return json.loads(content, object_pairs_hook=noting_repeats)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(name, (f"no JSON: {error}",)) from error


def _profile(reader: Reader) -> LatencyProfile:
    reader.only(*LatencyProfile.__dataclass_fields__)
    before = len(reader.problems)
    knots = reader.numbers("load_knots", 0.0, 1.0)
    sound = len(reader.problems) == before
    if sound and (any(b - a < MIN_KNOT_STEP for a, b in pairwise(knots)) or len(knots) < 2):
        asked = f"at least two, each above the one before by {MIN_KNOT_STEP:g} or more"
        reader.note("load_knots", f"is {list(knots)}; {asked}")
    ttft, tbot = reader.numbers("ttft_s", 0.0, MAX_SECONDS), reader.numbers("tbot_s", 0.0, MAX_SECONDS)
    for name, values in (("ttft_s", ttft), ("tbot_s", tbot)):
        if knots and len(values) != len(knots):
            reader.note(name, f"has {len(values)} values; load_knots has {len(knots)}")
    return LatencyProfile(
        profile_id=reader.identifier("profile_id"),
        hardware=reader.text("hardware", ""),
        model=reader.text("model", ""),
        capacity_rps=reader.number("capacity_rps", low=SMALLEST, high=MAX_RPS),
        output_tokens=reader.number("output_tokens", high=1e7),
        load_knots=knots,
        ttft_s=ttft,
        tbot_s=tbot,
        measured_from_load=reader.number("measured_from_load", 0.0, 0.0, 1.0),
        measured_to_load=reader.number("measured_to_load", 1.0, 0.0, 1.0),
        fit_error_median=reader.number("fit_error_median") if reader.has("fit_error_median") else None,
        fit_error_p90=reader.number("fit_error_p90") if reader.has("fit_error_p90") else None,
        source=reader.text("source", ""),
        left_out_error_median=reader.number("left_out_error_median") if reader.has("left_out_error_median") else None,
        left_out_error_p90=reader.number("left_out_error_p90") if reader.has("left_out_error_p90") else None,
    )


def _engine(reader: Reader, profiles: Mapping[str, LatencyProfile]) -> Engine:
    reader.only(*Engine.__dataclass_fields__)
    profile_id = reader.identifier("profile_id")
    profile = profiles.get(profile_id)
    if profile is None and profile_id and _named_whole(reader.problems, "profiles", "profile_id"):
        near = get_close_matches(profile_id, list(profiles), n=1)
        reader.note("profile_id", f"is {profile_id!r}, which is no profile here{_hint(near)}")
    exclusion: Exclusion | None = None
    if reader.has("exclusion"):
        out = reader.nested("exclusion")
        out.only("reason", "sentence")
        exclusion = Exclusion(out.choice("reason", Reason), out.text("sentence", "as the problem file says"))
    models = reader.names("models", required=True)
    if not models:
        reader.note("models", "is empty; an engine serves at least one")
    return Engine(
        engine_id=reader.identifier("engine_id"),
        site=reader.identifier("site"),
        models=models,
        capabilities=reader.names("capabilities"),
        residency=reader.names("residency"),
        address=reader.line("address") if reader.has("address") else None,
        profile_id=profile_id,
        ready_replicas=reader.count("ready_replicas", high=10**6),
        capacity_rps_per_replica=reader.number(
            "capacity_rps_per_replica", profile.capacity_rps if profile else 0.0, 0.0, MAX_RPS
        ),
        factor=reader.number("factor", 1.0, 0.0, 1.0),
        factor_sentence=reader.text("factor_sentence", ""),
        exclusion=exclusion,
    )


def _row(reader: Reader) -> Row:
    reader.only("cluster", "model", "request_class", "tier", "demand_rps", "requires", "residency", "work")
    return Row(
        route=_route(reader),
        tier=reader.count("tier", 0, 0, 9),
        demand_rps=reader.number("demand_rps", high=MAX_RPS),
        requires=reader.names("requires"),
        residency=reader.names("residency"),
        work=reader.number("work", 1.0, LEAST_WORK, MOST_WORK),
    )


def _route(reader: Reader) -> RouteKey:
    return RouteKey(
        reader.identifier("cluster"), reader.identifier("model"), reader.identifier("request_class", "default")
    )


def _link(reader: Reader) -> tuple[tuple[str, str], float | None]:
    reader.only("from_cluster", "to_site", "rtt_ms")
    lost = "rtt_ms" in reader.items() and not reader.has("rtt_ms")
    rtt_s = None if lost else reader.number("rtt_ms", high=MAX_SECONDS * MS) / MS
    return (reader.identifier("from_cluster"), reader.identifier("to_site")), rtt_s


def _weights(reader: Reader, engines: Mapping[str, Engine]) -> tuple[RouteKey, Mapping[str, int]]:
    reader.only("cluster", "model", "request_class", "weights_ppm")
    shares, before = reader.nested("weights_ppm"), len(reader.problems)
    weights = {engine_id: shares.count(engine_id, high=PPM) for engine_id in sorted(shares.items())}
    sound = len(reader.problems) == before
    for engine_id in weights:
        if engine_id not in engines and _named_whole(reader.problems, "engines", "engine_id"):
            shares.note(engine_id, f"is no engine here{_hint(get_close_matches(engine_id, list(engines), n=1))}")
    if sound and sum(weights.values()) != PPM:
        shares.note("", f"adds up to {sum(weights.values())}; exactly {PPM}")
    return _route(reader), weights


def _pin(reader: Reader, engines: Mapping[str, Engine], clusters: Collection[str]) -> Pin:
    reader.only(*Pin.__dataclass_fields__)
    cluster, engine_id = reader.identifier("cluster"), reader.identifier("engine_id")
    for field, named, known, of in (
        ("cluster", cluster, clusters, "demand"),
        ("engine_id", engine_id, engines, "engines"),
    ):
        if named and named not in known and _named_whole(reader.problems, of, field):
            near = get_close_matches(named, list(known), n=1)
            reader.note(field, f"is {named!r}, which is not among {of}{_hint(near)}")
    before = len(reader.problems)
    least, most = reader.number("least", 0.0, 0.0, 1.0), reader.number("most", 1.0, 0.0, 1.0)
    if least > most and len(reader.problems) == before:
        reader.note("least", f"is {least:g}; at most `most`, {most:g}")
    return Pin(cluster, engine_id, least, most, reader.text("sentence", "pinned in the problem file"))


def _fit(root: Reader, rows: Iterable[Row], engines: Mapping[str, Engine], pins: Iterable[Pin]) -> None:
    for row, over in over_asked(rows, engines, pins):
        total, each = sum_words(over)
        root.note("pins", f"of {row.route} add up to {total} %: {each}; at most 100 %")


def _pinned(pin: Pin) -> tuple[str, str]:
    return pin.engine_id, pin.cluster


def _hint(near: list[str]) -> str:
    return f"; did you mean {near[0]!r}?" if near else ""
