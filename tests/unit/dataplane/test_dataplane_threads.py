"""Requests on many threads while weights are swapped and engines die: no lock, and no decision of two snapshots."""

import sys
import threading
from collections.abc import Iterator

import pytest

from dataplane_inputs import CLUSTER, MODEL, NOW_MS, route_weights, snapshot
from headrace.dataplane import DecisionReason, Router
from headrace.dataplane.settings import DataPlaneSettings


@pytest.fixture
def _quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_quick_switches")
def test_every_decision_is_of_one_snapshot_and_every_request_is_counted() -> None:
    # Version v routes everything to engine v, so an engine of another version would show a torn snapshot.
    router = Router(DataPlaneSettings(table_size=101), CLUSTER)
    versions = [snapshot(route_weights({f"engine-{v}": 1_000_000, "victim": 0}, version=v)) for v in range(1, 200)]
    router.apply(versions[0])
    torn: list[object] = []

    def send() -> None:
        for i in range(5_000):
            decision = router.route(MODEL, key=str(i), hint="victim", now_ms=NOW_MS)
            router.report(MODEL, "default", decision, now_ms=NOW_MS)
            if decision.engine_id != f"engine-{decision.version}" or decision.reason is not DecisionReason.SLOT:
                torn.append(decision)

    senders = [threading.Thread(target=send) for _ in range(4)]
    for sender in senders:
        sender.start()
    offered = 0
    for i, version in enumerate(versions[1:], start=1):
        router.apply(version)
        router.set_health("victim", up=i % 2 == 0)
        # At most 50 periods in all: a request older than 60 belongs to no period that is still to be given.
        offered += sum(record.offered for record in router.demand.close(NOW_MS + i * 250))
    for sender in senders:
        sender.join()
    offered += sum(record.offered for record in router.demand.close(NOW_MS + 55_000))
    assert torn == []
    assert (offered, router.demand.dropped) == (4 * 5_000, 0)


@pytest.mark.usefixtures("_quick_switches")
def test_threads_together_never_spend_more_retries_than_there_are() -> None:
    router = Router(DataPlaneSettings(retry_burst=100), CLUSTER)
    router.apply(snapshot(route_weights({"a": 500_000, "b": 500_000}, retry_ratio=0.1)))
    decision = router.route(MODEL, now_ms=NOW_MS)
    granted: list[None] = []

    def fail() -> None:
        for _ in range(2_500):
            router.report(MODEL, "default", decision, now_ms=NOW_MS)
            if router.may_retry(MODEL, "default", ("a",)):
                granted.append(None)

    threads = [threading.Thread(target=fail) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # 10,000 first attempts earn 1,000 at a ratio of a tenth, and 100 were saved.
    assert 1_000 <= len(granted) <= 1_100
