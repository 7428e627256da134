"""The flow map: sums are kept whatever is gathered, and what is refused is seen."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console_inputs import Town, committed
from dataplane_inputs import route_weights
from headrace.infra.console.core.flows import OTHERS, SHED, UNKNOWN, flow_map
from solver_inputs import spec

FLEET = {"a": spec("a", site="east"), "b": spec("b", site="west")}


def test_a_clusters_requests_flow_to_the_sites_of_its_engines() -> None:
    route = route_weights({"a": 750_000, "b": 250_000})
    found = flow_map(committed([route], 1, 1_000), FLEET, "site", 10)
    assert [(flow.source, flow.target, flow.rps) for flow in found.flows] == [("A", "east", 7.5), ("A", "west", 2.5)]


def test_an_engine_that_the_fleet_does_not_have_has_no_site() -> None:
    found = flow_map(committed([route_weights({"z": 1_000_000})], 1, 1_000), FLEET, "site", 10)
    assert [node.name for node in found.targets] == [UNKNOWN]


def test_what_is_shed_is_a_flow_of_its_own_and_comes_last() -> None:
    route = replace(route_weights({"a": 1_000_000}), shed_ratio=0.6)
    found = flow_map(committed([route], 1, 1_000), FLEET, "engine", 10)
    assert [(node.name, node.rps) for node in found.targets] == [("a", 4.0), (SHED, 6.0)]


def test_of_one_cluster_the_routes_are_the_sources() -> None:
    routes = [route_weights({"a": 1_000_000}, cluster=c, model=m) for c in ("A", "B") for m in ("m", "n")]
    found = flow_map(committed(routes, 1, 1_000), FLEET, "engine", 10, "B")
    assert sorted(node.name for node in found.sources) == ["m|default", "n|default"]


def test_one_name_too_many_is_not_gathered_and_two_are() -> None:
    routes = [route_weights({"a": 1_000_000}, cluster=f"c{i}") for i in range(4)]
    few = flow_map(committed(routes, 1, 1_000), FLEET, "site", 3)
    assert [node.name for node in few.sources] == ["c0", "c1", "c2", "c3"]
    found = flow_map(committed(routes, 1, 1_000), FLEET, "site", 2)
    assert [(node.name, node.names) for node in found.sources] == [("c0", 1), ("c1", 1), (OTHERS, 2)]


@given(st.integers(1, 20), st.integers(2, 40), st.integers(1, 8), st.sampled_from(["site", "model", "engine"]))
def test_every_request_is_in_the_map_once(clusters: int, engines: int, top: int, group: str) -> None:
    town = Town(clusters=clusters, engines=engines, models=2, fanout=4)
    snapshot = committed(town.first_routes(), 1, 1_000)
    found = flow_map(snapshot, {each.engine_id: each for each in town.specs()}, group, top)
    demand = sum(route.demand_rps for route in snapshot.routes)
    for side in (found.sources, found.targets, found.flows):
        assert sum(each.rps for each in side) == pytest.approx(demand)
    assert len(found.sources) <= top + 1
    assert len(found.targets) <= top + 2
