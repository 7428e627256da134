"""What the demo shows and counts, from a session that was never started: no broker, no threads."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from fleet_inputs import NEAREST, START_MS, fixed_run, fixed_snapshot, three_regions
from headrace.infra.configuration.config import Config
from headrace.infra.demo.controls import Controls
from headrace.infra.demo.logbook import Logbook
from headrace.infra.demo.movement import moved_rps
from headrace.infra.demo.planes import Installed
from headrace.infra.demo.recent import Recent
from headrace.infra.demo.run import line
from headrace.infra.demo.session import DemoOptions, Session
from headrace.infra.demo.view import bar, clock, view
from headrace.infra.fleet.commands import Errors, Kill, Slow
from headrace.infra.fleet.request import Ended, Kind, Request

WIDTH, HEIGHT = 100, 30


@pytest.fixture
def session() -> Session:
    simulation, _ = fixed_run(0.0)
    session = Session(DemoOptions(three_regions(), "embedded", 7, Path("unused")), Config())
    session.simulation = simulation
    session.logbook = Logbook(three_regions().names.clusters)
    session.recent = Recent(lambda: simulation.timeline.now_s)
    simulation.listeners.append(session.recent)
    return session


def install(session: Session, weights: dict[str, dict[str, int]], version: int) -> None:
    session.logbook.note_installed(
        float(version), Installed("cluster-a", fixed_snapshot(weights, version), START_MS + 1000 * version)
    )


def screen(session: Session, width: int = WIDTH, height: int = HEIGHT) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    console.print(view(session, Controls(session), console))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_the_view_fits_a_terminal_of_100_by_30_and_says_what_matters(session: Session) -> None:
    install(session, {**NEAREST}, 1)
    for number in range(20):
        session.logbook.note(float(number), f"event {number}")
    session.simulation.run_until(12.0)
    session.do(Kill("engine-b"))
    lines = screen(session)
    assert len(lines) <= HEIGHT
    assert max(map(len, lines)) <= WIDTH
    text = "\n".join(lines)
    for word in ("engine-a", "dead", "cluster-b", "75.0%", "p99", "signal to weight", "engine-b killed", "quit"):
        assert word in text


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 24), (80, 40), (120, 50), (60, 12)])
def test_the_keys_stay_in_sight_and_heads_whole_at_any_size(session: Session, width: int, height: int) -> None:
    install(session, {**NEAREST}, 1)
    session.simulation.run_until(12.0)
    session.do(Kill("engine-b"))
    lines = screen(session, width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    foot = "\n".join(lines[-4:])
    for word in ("kill/revive", "slow engine-b", "surge cluster-b", "shrink", "quit"):
        assert word in foot
    if width >= 80:
        heads = ("site", "ready", "RPS / cap.", "queue", "engine-c", "shed", "unserved", "mean ms", "p99 ms")
        for word in (
            *heads,
            "us-west-2",
            "engine-b killed",
            "went elsewhere in the last 2 s; 0% in the first 10 s",
            "ended/s",
        ):
            assert word in "\n".join(lines), word
        assert "…" not in "\n".join(lines[: 4 + 4])


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (100, 29), (140, 50)])
def test_the_last_decision_is_told_whole_and_what_it_sheds_first(session: Session, width: int, height: int) -> None:
    sentence = (
        "303.6 of 350.0 RPS routed at least expected latency, certified within 0.01%; 46.4 RPS shed, of tier 0; "
        "12.5 RPS moved, 3.1 of them held back"
    )
    found = fixed_snapshot({**NEAREST}, 1)
    session.logbook.snapshot = replace(found, commit=replace(found.commit, sentence=sentence))
    session.logbook.moved = [(5.0, 1.0), (11.0, 1.0)]
    session.simulation.run_until(20.0)
    lines = [line.strip("│ ") for line in screen(session, width, height)]
    (first,) = [index for index, line in enumerate(lines) if line.startswith("last decision")]
    assert "46.4 RPS shed, of tier 0; 303.6 of" in lines[first]
    told = " ".join([lines[first].removeprefix("last decision").strip(), *lines[first + 1 : first + 4]])
    assert "certified within 0.01%; 12.5 RPS moved, 3.1 of them held back" in told
    assert any(line.endswith("100% went elsewhere in the last 10 s; 100% in the first 10 s") for line in lines)


def test_the_view_can_be_drawn_before_anything_has_happened(session: Session) -> None:
    assert len(screen(session)) <= HEIGHT
    assert "no answers yet" in line(session)


def test_a_bar_is_filled_to_its_share_and_never_beyond() -> None:
    assert bar(0.5, 4) == "██  "
    assert bar(0.0, 4) == "    "
    assert bar(7.0, 4) == "████"
    assert bar(0.53125, 4) == "██▏ "
    assert clock(75.9) == "1:15"


def test_a_bar_shows_what_an_engine_answered_against_what_it_can(session: Session) -> None:
    session.simulation.run_until(20.0)
    assert session.recent.served_rps("engine-a") == pytest.approx(90.0, rel=0.15)
    assert session.recent.latency().count == pytest.approx(2500, rel=0.1)
    assert "engine-a 9" in line(session) or "engine-a 8" in line(session)


def test_the_line_says_who_fails_requests_and_is_silent_where_nobody_does(session: Session) -> None:
    session.simulation.run_until(12.0)
    assert "failed" not in line(session)
    session.do(Errors("engine-a", 1.0))
    session.simulation.run_until(16.0)
    told = line(session).partition("  failed ")[2]
    assert told == f"engine-a {session.recent.failed_rps('engine-a'):.1f} RPS"


def test_the_recent_past_is_whole_seconds_and_forgets() -> None:
    now = [0.5]
    recent = Recent(lambda: now[0])
    request = Request(1, "c", 0.0, b"", 1, 1)
    recent(request, Ended(Kind.ANSWERED, "OK", "e", 0.2, 0.1, 1))
    recent(request, Ended(Kind.REFUSED, "SHED", None, None, None, 0))
    assert recent.served_rps("e") == 0.0  # the second is not over
    now[0] = 1.1
    assert recent.served_rps("e") == pytest.approx(1 / 3)
    assert recent.unserved_share("c") == 0.5
    assert recent.ended_rps("c") == pytest.approx(2 / 3)
    assert recent.latency("c").p50_ms == 200.0
    assert recent.latency("other").count == 0
    now[0] = 30.0
    assert recent.served_rps("e") == 0.0


def test_keys_do_to_the_fleet_what_they_say_and_undo_it(session: Session) -> None:
    controls, engines = Controls(session), session.simulation.engines
    controls.press("2")
    assert not engines["engine-b"].alive
    controls.press("2")
    assert engines["engine-b"].alive
    controls.press("s")
    assert engines["engine-b"].slow == 3.0
    controls.press("s")
    assert engines["engine-b"].slow == 1.0
    controls.press("u")
    assert session.simulation.gateways["cluster-b"].surge == 1.5
    controls.press("u")
    assert session.simulation.gateways["cluster-b"].surge == 1.0
    before = len(session.logbook.events)
    for key in ("9", "x", "0"):
        controls.press(key)
    assert len(session.logbook.events) == before == 6


def test_one_key_removes_replicas_until_the_solver_sheds_and_gives_them_back(session: Session) -> None:
    controls, engines = Controls(session), session.simulation.engines
    install(session, {**NEAREST}, 1)
    controls.press("r")
    for second in range(1, 8):
        session.simulation.run_until(float(second))
        controls.step()
    # At 1, 4 and 7 s: the engine with the most goes first.
    assert [engine.desired for engine in engines.values()] == [3, 3, 3]
    shedding = fixed_snapshot({**NEAREST}, 2)
    session.logbook.snapshot = type(shedding)(
        shedding.commit,
        tuple(type(r)(**{f: getattr(r, f) for f in r.__slots__} | {"shed_ratio": 0.1}) for r in shedding.routes),
    )
    for second in range(8, 15):
        session.simulation.run_until(float(second))
        controls.step()
    assert [engine.desired for engine in engines.values()] == [3, 3, 3]
    assert session.logbook.events[-1][1] == "no replica is taken away: 30 RPS are shed; r gives back what was taken"
    controls.press("r")
    assert [engine.desired for engine in engines.values()] == [4, 4, 4]
    # Demand alone is above capacity now, with every replica there: the key says so.
    controls.press("r")
    controls.step()
    assert [engine.desired for engine in engines.values()] == [4, 4, 4]
    assert session.logbook.events[-1][1] == "no replica is taken away: 30 RPS are shed"


def test_moved_traffic_is_half_the_distance_of_the_shares_times_the_demand() -> None:
    before = fixed_snapshot({"c": {"x": 750_000, "y": 250_000}})
    after = fixed_snapshot({"c": {"x": 500_000, "z": 500_000}}, 2)
    # 100 RPS: a quarter leaves x, a quarter leaves y.
    assert moved_rps(before, after) == pytest.approx(50.0)
    assert moved_rps(None, after) == 0.0
    assert moved_rps(before, fixed_snapshot({"d": {"x": 1_000_000}}, 2)) == 0.0


def test_the_logbook_counts_each_snapshot_once_and_says_when_shedding_begins_and_ends(session: Session) -> None:
    book = session.logbook
    for cluster in ("cluster-a", "cluster-b"):
        book.note_installed(1.0, Installed(cluster, fixed_snapshot({**NEAREST}, 1), START_MS))
    assert book.installed == {"cluster-a": 1, "cluster-b": 1}
    assert sum(book.statuses.values()) == 1
    assert book.shed_now_rps == 0.0
    swapped = {**NEAREST, "cluster-a": {"engine-c": 1_000_000}}
    book.note_installed(2.0, Installed("cluster-a", fixed_snapshot(swapped, 2), START_MS))
    # One of three equal routes moved as a whole.
    assert book.moved_share(0.0, 10.0) == pytest.approx(1 / 3)
    assert book.moved_share(3.0, 10.0) == 0.0


def test_what_is_done_is_written_down_and_nothing_is_done_after_the_end(session: Session) -> None:
    session.do(Slow("engine-a", 2.0))
    assert session.logbook.events[-1][1] == "engine-a slow, x2; engine-a can serve 50 RPS now, 100 before"
    session._finished = True
    session.do(Kill("engine-a"))
    assert session.simulation.engines["engine-a"].alive
    assert np.isclose(session.simulation.engines["engine-a"].slow, 2.0)
