"""Records that were read before are copied, and say what they would say if all were read anew."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schemas.weights import FallbackTarget, Reason, RouteWeights, Target
from headrace.solver.core.program import records_before as module
from headrace.solver.core.program.records_before import DEMAND_HELD, RecordsBefore, Shares, records_before

ENGINES = ("e1", "e2", "e3")


def target(engine: str, ppm: int, **changes: object) -> Target:
    told = Target(engine, None, ppm, ppm, 0, 0.001, 0.1, 0.01, 0.5, 200.0, Reason.CHEAPEST, "")
    return replace(told, **changes)  # type: ignore[arg-type]


@st.composite
def records(draw: st.DrawFn) -> RouteWeights:
    some = draw(st.lists(st.sampled_from(ENGINES), unique=True))
    price, address = draw(st.sampled_from([None, 3.0])), draw(st.sampled_from([None, "10.0.0.1:80"]))
    reason = draw(st.sampled_from([Reason.PINNED, Reason.SPILL]))
    targets = tuple(
        target(e, i, engine_price_ms=price, ttft_s=price, address=address, reason=reason) for i, e in enumerate(some)
    )
    fallback = tuple(FallbackTarget(e, address, 7) for e in some[:2])
    sentence = draw(st.sampled_from(["", f"5 RPS; {DEMAND_HELD}"]))
    numbers = draw(st.tuples(st.integers(0, 3), st.integers(1, 9), st.floats(0, 9), st.floats(0, 1), st.floats(0, 1)))
    tier, version, demand, shed, retry = numbers
    route = ("c", "m", "default", tier, 1, version, demand, targets, (), fallback, shed, retry, None, sentence)
    return RouteWeights(*route)


def named(before: RecordsBefore, shares: Shares) -> list[tuple[object, ...]]:
    """Give each share with its engine and address in place of their number."""
    names = list(before.names)
    columns = {name: column.tolist() for name, column in shares.columns.items()}
    columns["name"] = [names[i] for i in columns["name"]]
    return list(zip(*(map(str, columns[name]) for name in sorted(columns)), strict=True))


def told(before: RecordsBefore) -> tuple[object, ...]:
    routes = {name: column.tolist() for name, column in before.routes.items()}
    shares = [(each.count.tolist(), named(before, each)) for each in (before.targets, before.fallback)]
    return routes, shares


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.none() | records(), min_size=4, max_size=4), min_size=1, max_size=4), st.data())
def test_whatever_was_read_before_records_say_what_they_say(
    made: list[list[RouteWeights | None]], data: st.DataObject
) -> None:
    now = made[0]
    for other in made:
        stands = data.draw(st.lists(st.booleans(), min_size=4, max_size=4))
        now = [old if stand else new for old, new, stand in zip(now, other, stands, strict=True)]
        found = records_before(tuple(now))
        assert records_before(tuple(now)) is found
        module.forget()
        assert told(found) == told(records_before(tuple(now)))
        records_before(found.records)


def test_columns_are_those_of_the_records() -> None:
    held = RouteWeights("c", "m", "k", 2, 1, 5, 8.0, (target("e2", 9),), (), (), 0.25, 0.1, None, f"; {DEMAND_HELD}")
    found = records_before((None, held))
    assert found.routes["there"].tolist() == [False, True]
    assert found.routes["held"].tolist() == [False, True]
    assert found.routes["demand_rps"].tolist() == [0.0, 8.0]
    assert found.targets.count.tolist() == [0, 1]
    assert found.targets.columns["price_ms"].tolist() == [200.0]
    assert not found.targets.columns["pinned"].any()
    assert found.fallback.count.tolist() == [0, 0]


def test_names_of_engines_that_are_gone_are_forgotten_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NAMES", 3)
    seen: list[int] = []
    for i in range(9):
        route = RouteWeights("c", "m", "k", 0, 1, i, 1.0, (target(f"e{i}", 1),), (), (), 0.0, 0.0, None, "")
        seen.append(len(records_before((route,)).names))
    assert max(seen) <= 4
    assert np.diff(seen).min() < 0
