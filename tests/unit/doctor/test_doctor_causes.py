"""What is named as the cause of what: a flood of bad records, a worker that lags, engines that are stale for it."""

from doctor_faults import PLANTED
from doctor_system import System, healthy
from headrace.infra.doctor.core.checks import check_named
from headrace.infra.doctor.core.contract import Severity


def planted(*names: str) -> System:
    system = healthy()
    for name in names:
        next(each for each in PLANTED if each.name == name).plant(system)
    return system


def test_a_flood_comes_before_the_lag_that_it_makes_and_the_lag_before_the_engines_that_are_stale_for_it() -> None:
    system = planted("a flood of bad records", "a worker whose earliest unread record is minutes old", "a stale engine")
    found = [(each.check, each.severity, each.follows_from) for each in system.findings()]
    assert found == [
        ("dead_letters", Severity.FAULT, None),
        ("lag", Severity.FAULT, "dead_letters"),
        ("engines", Severity.WARNING, "lag"),
    ]


def test_a_flood_is_counted_by_offsets_and_not_by_what_was_read_of_it() -> None:
    (found,) = planted("a flood of bad records").findings()
    assert found.value == "70060"
    assert found.sentence.startswith("70060 records were refused in the last 10 min, 100 % of the signals; at most 5; ")


def test_streams_that_write_dead_letters_run_however_old_the_states_are() -> None:
    system = planted("no worker", "dead letters that grow")
    system.members["streams"] = None  # as the embedded broker tells
    assert "workers" not in {each.check for each in system.findings()}
    system.letters.clear()
    assert "workers" in {each.check for each in system.findings()}


def test_streams_are_given_time_to_write_their_first_state() -> None:
    system = healthy()
    system.members["streams"] = None
    for table in (system.states, system.demands, system.links):
        table.clear()
    assert "workers" in {each.check for each in system.findings()}
    system.signals = [(at_ms, signal) for at_ms, signal in system.signals if system.now_ms - at_ms < 10_000]
    assert "workers" not in {each.check for each in system.findings()}


def test_bad_signals_of_a_flood_that_is_over_are_no_news_of_the_topic() -> None:
    system, records = planted("records of a foreign schema"), check_named("records")
    assert len(tuple(records.judge(system.picture(), system.now_ms))) == 1
    assert tuple(records.judge(system.picture(), system.now_ms + 180_000)) == ()


def test_without_a_solver_overrides_have_nobody_to_obey_them() -> None:
    system = planted("an old snapshot", "a drain of an engine that is gone")
    first, second = system.findings()
    assert (first.check, second.check, second.follows_from) == ("snapshot", "overrides", "snapshot")
    assert first.meaning.startswith("a solver runs, and fails every tick or cannot publish: see its log")
    assert first.meaning.endswith("have nobody to obey them: drain of engine-x")
    system.members["solver"] = None  # as the embedded broker tells
    assert system.findings()[0].meaning.startswith("no solver runs, or it fails every tick")


def test_engines_that_are_silent_while_weights_are_held_keep_their_traffic() -> None:
    system = planted("weights that are held", "a stale engine")
    (engines,) = [each for each in system.findings() if each.check == "engines"]
    assert engines.sentence.startswith("1 engine of 3 would be taken out if weights were not HELD, STALE: engine-b; ")
    assert engines.meaning.startswith("it keeps the traffic")


def test_shortly_after_the_first_signals_no_snapshot_and_no_known_engine_is_no_fault() -> None:
    system = healthy()
    system.ticks.clear()
    system.states.clear()

    def told() -> set[tuple[str, Severity]]:
        return {(each.check, each.severity) for each in system.findings()}

    assert {("snapshot", Severity.FAULT), ("engines", Severity.FAULT)} <= told()
    system.signals = [(at_ms, signal) for at_ms, signal in system.signals if system.now_ms - at_ms < 10_000]
    assert told() == {("snapshot", Severity.WARNING), ("engines", Severity.WARNING)}


def test_what_is_refused_for_a_slowed_engine_names_that_engine_and_follows_from_it() -> None:
    system = planted("an engine that serves a third of what its profile says", "more demand than capacity")
    load, capacity = system.findings()
    assert (load.check, load.severity, load.follows_from) == ("load", Severity.FAULT, None)
    assert (capacity.check, capacity.follows_from) == ("capacity", "load")
    assert "engine-b takes 35 of 100 RPS" in capacity.sentence
    assert capacity.mend[0].endswith(" engine-b")


def test_replicas_are_added_to_the_engine_nearest_to_the_cluster_that_has_grown() -> None:
    system = planted("a cluster that asks for more than there is")
    (capacity,) = system.findings()
    route = next(each for each in system.ticks[-1].snapshot.routes if each.cluster == "cluster-b")
    nearest = min(route.targets, key=lambda target: (target.network_s, target.engine_id)).engine_id
    assert capacity.mend[0].startswith(f"headrace what-if --add-replicas {nearest}=")


def test_streams_that_refused_the_last_signals_run_though_nothing_has_come_since() -> None:
    system = planted("no worker", "dead letters that grow")
    system.members["streams"] = None  # as the embedded broker tells
    workers, later_ms = check_named("workers"), system.now_ms + 60_000
    assert tuple(workers.judge(system.picture(), later_ms)) == ()
    system.letters.clear()
    assert len(tuple(workers.judge(system.picture(), later_ms))) == 1


def test_engines_by_another_name_are_the_fault_where_no_engine_has_a_state() -> None:
    system = planted("an engine that the fleet has by another name")
    system.states.clear()
    first = system.findings()[0]
    assert (first.check, first.severity, first.subject) == ("unknown_engines", Severity.FAULT, "k")
    assert "engine_id must be the same" in first.meaning


def test_refused_engines_are_told_with_those_of_the_fleet() -> None:
    (found,) = planted("dead letters that grow").findings()
    assert "k, and the fleet has engine-a, engine-b, engine-c: name them the same" in found.meaning
