"""Whatever is done to a fleet: each request ends exactly once, nothing is lost from a count, and dice are seeded."""

import hashlib

from hypothesis import given, settings
from hypothesis import strategies as st

from fleet_inputs import fixed_run
from headrace.infra.fleet.request import Ended, Kind, Request

engines = st.sampled_from(["engine-a", "engine-b", "engine-c"])
commands = st.one_of(
    st.tuples(st.sampled_from(["kill", "revive", "restart", "silence", "heal"]), engines).map(" ".join),
    st.tuples(engines, st.sampled_from(["0.5", "2", "8"])).map(lambda p: f"slow {p[0]} {p[1]}"),
    st.tuples(engines, st.sampled_from(["0.1", "1"])).map(lambda p: f"errors {p[0]} {p[1]}"),
    st.tuples(engines, st.integers(0, 5)).map(lambda p: f"replicas {p[0]} {p[1]}"),
    st.sampled_from(["surge cluster-a 2", "surge cluster-b 0.1", "surge cluster-c 5"]),
)
scripts = st.lists(st.tuples(st.floats(0.0, 6.0), commands), max_size=8).map(
    lambda lines: "\n".join(f"t={at:.3f}s {command}" for at, command in lines)
)


@settings(max_examples=25, deadline=None)
@given(script=scripts, seed=st.integers(0, 2**32 - 1))
def test_every_request_has_exactly_one_outcome_and_no_known_dead_engine_is_asked(script: str, seed: int) -> None:
    simulation, _ = fixed_run(0.0, script, seed)
    ended: dict[int, Ended] = {}

    def once(request: Request, end: Ended) -> None:
        assert request.number not in ended
        ended[request.number] = end

    simulation.listeners.append(once)
    simulation.run_until(7.0)
    simulation.drain(limit_s=600.0)
    tally = simulation.tally
    assert tally.open == 0
    assert sorted(ended) == list(range(1, tally.arrived + 1))
    assert sum(tally.ended.values()) == tally.arrived
    assert sum(sum(counts.values()) for counts in tally.latency_ms.values()) == sum(tally.by(Kind.ANSWERED).values())
    assert tally.routed_to_known_dead == 0
    assert all(engine.running == engine.waiting == 0 for engine in simulation.engines.values())
    for end in ended.values():
        assert end.reason
        assert (end.latency_s is not None) == (end.kind is Kind.ANSWERED)


@settings(max_examples=5, deadline=None)
@given(script=scripts, seed=st.integers(0, 2**32 - 1))
def test_the_same_seed_gives_the_same_bytes(script: str, seed: int) -> None:
    digests = set[str]()
    for _ in range(2):
        _, sink = fixed_run(7.0, script, seed)
        digest = hashlib.sha256()
        for record in sink.drain():
            digest.update(record.key or b"")
            digest.update(record.value or b"")
        digests.add(digest.hexdigest())
    assert len(digests) == 1
