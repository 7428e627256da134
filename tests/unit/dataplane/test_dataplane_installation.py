"""Installing snapshots: what is built again, what is taken over, what is left aside."""

from dataclasses import replace

import pytest

from dataplane_inputs import CLUSTER, route_weights, shares, snapshot
from headrace.dataplane import Router
from headrace.dataplane.installation import Installation, NotInstalled, NotInstalledReason, install
from headrace.dataplane.route_table import table_size
from headrace.dataplane.settings import DataPlaneSettings
from headrace.schemas.weights import Snapshot, SnapshotMode

SETTINGS = DataPlaneSettings()


def installed(outcome: Installation | NotInstalled) -> Installation:
    assert isinstance(outcome, Installation)
    return outcome


def left_aside(snapshot: Snapshot, previous: Installation | None) -> NotInstalledReason:
    outcome = install(snapshot, CLUSTER, SETTINGS, previous)
    assert isinstance(outcome, NotInstalled)
    assert outcome.sentence
    return outcome.reason


def test_only_routes_that_changed_are_built_again() -> None:
    m, n = route_weights(shares(a=1, b=1)), route_weights(shares(a=1, b=1), model="n")
    first = installed(install(snapshot(m, n), CLUSTER, SETTINGS, None))
    n2 = route_weights(shares(a=3, b=1), model="n", version=2)
    second = installed(install(snapshot(m, n2), CLUSTER, SETTINGS, first))
    assert (first.rebuilt, second.rebuilt) == (2, 1)
    assert second.tables["m", "default"] is first.tables["m", "default"]
    assert second.tables["n", "default"] is not first.tables["n", "default"]


def test_a_route_that_is_there_twice_is_no_snapshot() -> None:
    m = route_weights(shares(a=1))
    assert left_aside(Snapshot(snapshot(m).commit, (m, m)), None) is NotInstalledReason.INVALID


def test_equal_weights_read_from_other_bytes_count_as_unchanged() -> None:
    first = installed(install(snapshot(route_weights(shares(a=1, b=1))), CLUSTER, SETTINGS, None))
    again = snapshot(route_weights(shares(a=1, b=1)), version=2)
    assert installed(install(again, CLUSTER, SETTINGS, first)).rebuilt == 0


def test_a_route_that_changed_in_all_but_its_weights_keeps_its_slots() -> None:
    first = installed(install(snapshot(route_weights(shares(a=1, b=1))), CLUSTER, SETTINGS, None))
    changed = snapshot(route_weights(shares(a=1, b=1), version=2, shed_ratio=0.5))
    table = installed(install(changed, CLUSTER, SETTINGS, first)).tables["m", "default"]
    assert table.slots is first.tables["m", "default"].slots
    assert (table.by_slot[0].version, table.shed_below) == (2, 2**31)


def test_a_route_that_is_gone_is_forgotten() -> None:
    router = Router(SETTINGS, CLUSTER)
    router.apply(snapshot(route_weights({"a": 1_000_000})))
    router.apply(snapshot(version=2))
    assert router.installation is not None
    assert router.installation.tables == {}


def test_routes_of_other_clusters_are_left_out() -> None:
    both = snapshot(route_weights({"a": 1_000_000}), route_weights({"a": 1_000_000}, cluster="B"))
    assert list(installed(install(both, CLUSTER, SETTINGS, None)).tables) == [("m", "default")]


def test_a_snapshot_that_is_not_newer_is_left_aside() -> None:
    weights = route_weights({"a": 1_000_000}, epoch=2, version=7)
    first = installed(install(snapshot(weights), CLUSTER, SETTINGS, None))
    for epoch, version in ((2, 7), (2, 6), (1, 900)):
        older = snapshot(route_weights({"b": 1_000_000}, epoch=epoch, version=version))
        assert left_aside(older, first) is NotInstalledReason.NOT_NEWER
    assert isinstance(install(snapshot(weights, epoch=3, version=8), CLUSTER, SETTINGS, first), Installation)


@pytest.mark.parametrize("mode", [SnapshotMode.SHADOW, SnapshotMode.UNKNOWN])
def test_a_snapshot_that_is_not_live_is_left_aside(mode: SnapshotMode) -> None:
    assert left_aside(snapshot(route_weights({"a": 1_000_000}), mode=mode), None) is NotInstalledReason.SHADOW


def test_an_unsound_snapshot_is_left_aside_and_the_one_before_stays() -> None:
    router = Router(SETTINGS, CLUSTER)
    good = installed(router.apply(snapshot(route_weights(shares(a=1, b=1)))))
    unsound = replace(route_weights(shares(a=1, b=1), version=2), shed_ratio=float("nan"))
    assert left_aside(snapshot(unsound), good) is NotInstalledReason.INVALID
    assert isinstance(router.apply(snapshot(unsound)), NotInstalled)
    assert router.installation is good


def test_the_table_grows_with_the_engines_the_route_knows_not_with_those_alive() -> None:
    alive = {f"engine-{i}": 31_250 for i in range(32)}
    assert table_size(route_weights(alive), SETTINGS) == 16_381
    # The 33rd engine is dead: were it not counted, its death would have moved every session of the route.
    assert table_size(route_weights(alive, excluded=("engine-99",)), SETTINGS) == 65_537


def test_more_engines_than_two_bytes_can_number_are_routed_too() -> None:
    ppm = {f"e{i}": 1 for i in range(65_600)}
    ppm["big"] = 1_000_000 - len(ppm)
    table = installed(install(snapshot(route_weights(ppm)), CLUSTER, DataPlaneSettings(large_table_size=101), None))
    assert table.tables["m", "default"].slots.itemsize == 4


def test_slots_are_not_taken_over_into_a_table_of_another_size() -> None:
    alive = {f"engine-{i}": 31_250 for i in range(32)}
    first = installed(install(snapshot(route_weights(alive)), CLUSTER, SETTINGS, None))
    grown = snapshot(route_weights(alive, version=2, excluded=("engine-99",)))
    table = installed(install(grown, CLUSTER, SETTINGS, first)).tables["m", "default"]
    assert len(table.slots) == table.size == 65_537
