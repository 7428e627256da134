"""How each engine stands: one word, its reason, and its load against its capacity."""

from dataclasses import replace

from console_inputs import committed
from dataplane_inputs import route_weights, target
from headrace.infra.console.core.standings import EngineStanding, Standing, standings
from headrace.schemas.weights import Excluded, Protected, Reason, RouteWeights
from solver_inputs import spec

FLEET = {name: spec(name) for name in ("a", "b", "c", "d")}


def stand(*routes: RouteWeights, protections: tuple[Protected, ...] = ()) -> dict[str, EngineStanding]:
    snapshot = committed(routes, 1, 1_000, protections=protections)
    return {engine.engine_id: engine for engine in standings(snapshot, FLEET)}


def used(share: float, version: int = 1, cluster: str = "A") -> RouteWeights:
    """10 RPS, all to engine a, at a utilisation."""
    route = route_weights({"a": 1_000_000}, version=version, cluster=cluster)
    return replace(route, targets=(replace(target("a", 1_000_000), utilisation=share),))


def test_load_is_the_sum_over_routes_and_capacity_is_load_over_utilisation() -> None:
    found = stand(used(0.5), used(0.5, cluster="B"))["a"]
    assert (found.load_rps, found.utilisation, found.capacity_rps) == (20.0, 0.5, 40.0)
    assert found.standing is Standing.SERVING


def test_what_is_shed_is_no_load() -> None:
    found = stand(replace(used(0.5), shed_ratio=0.25))["a"]
    assert found.load_rps == 7.5


def test_the_newest_word_on_utilisation_counts() -> None:
    assert stand(used(0.5, version=3), used(0.9, version=2, cluster="B"))["a"].utilisation == 0.5


def test_an_engine_at_95_percent_is_full_and_one_below_is_not() -> None:
    assert stand(used(0.95))["a"].standing is Standing.FULL
    assert stand(used(0.94))["a"].standing is Standing.SERVING


def test_an_engine_that_nobody_uses_is_idle_and_its_capacity_is_not_known() -> None:
    found = stand(used(0.5))["d"]
    assert (found.standing, found.load_rps, found.capacity_rps, found.utilisation) == (Standing.IDLE, 0.0, None, None)


def test_a_stale_engine_is_out_with_the_solvers_sentence() -> None:
    route = replace(used(0.5), excluded=(Excluded("b", Reason.STALE, "silent for 40 s"),))
    found = stand(route)["b"]
    assert (found.standing, found.reason, found.sentence) == (Standing.OUT, "STALE", "silent for 40 s")


def test_what_a_route_said_before_the_newest_snapshot_is_shown_as_of_then() -> None:
    routes = [
        replace(used(0.5, version=version, cluster=cluster), excluded=(Excluded("b", Reason.STALE, sentence),))
        for version, cluster, sentence in ((5, "A", "silent for 8.0 s"), (3, "B", "silent for 6.3 s"))
    ]
    found = {each.engine_id: each for each in standings(committed(routes, 9, 1_000), FLEET)}["b"]
    assert found.sentence == "silent for 8.0 s, as of version 5"


def test_an_engine_that_a_route_may_not_use_for_the_routes_reasons_is_not_out() -> None:
    route = replace(used(0.5), excluded=(Excluded("b", Reason.RESIDENCY, "eu only"),))
    assert stand(route)["b"].standing is Standing.IDLE


def test_a_protection_limits_unless_it_only_scales_latency() -> None:
    outlier, trim = Protected("a", "outlier", 0.5, "slow"), Protected("a", "trim", 0.9, "faster than its profile")
    limited = stand(used(0.5), protections=(outlier,))["a"]
    assert (limited.standing, limited.reason) == (Standing.LIMITED, "OUTLIER")
    assert stand(used(0.5), protections=(trim,))["a"].standing is Standing.SERVING


def test_an_engine_that_the_fleet_does_not_have_is_listed_where_the_weights_have_it() -> None:
    assert "z" in stand(route_weights({"z": 1_000_000}))
