"""Runs a session to its end: with a live view and keys in a terminal, else with a line every few seconds."""

import time
from collections.abc import Callable

from rich.console import Console
from rich.live import Live

from headrace.infra.demo.controls import QUIT, Controls
from headrace.infra.demo.keys import Keys
from headrace.infra.demo.session import Session
from headrace.infra.demo.view import clock, view

STEP_S = 0.01
FRAMES_PER_S = 4
LINE_EVERY_S = 5.0


def run_with_view(session: Session, for_s: float | None, stopped: Callable[[], bool], keys: Keys) -> None:
    """Show the session until `for_s`, until `stopped`, or until the key for it is pressed."""
    controls, console = Controls(session), Console()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        next_frame = 0.0
        while (for_s is None or session.now_s < for_s) and not stopped():
            session.step()
            controls.step()
            key = keys.pressed()
            if key == QUIT:
                break
            if key is not None:
                controls.press(key)
            if time.monotonic() >= next_frame:
                next_frame = time.monotonic() + 1 / FRAMES_PER_S
                live.update(view(session, controls, console), refresh=True)
            time.sleep(STEP_S)
    session.finish()


def run_unattended(session: Session, for_s: float, stopped: Callable[[], bool], say: Callable[[str], None]) -> None:
    """Run the session for `for_s` or until `stopped`; says a line every few seconds and each event as it comes."""
    next_line, said = LINE_EVERY_S, 0
    while session.now_s < for_s and not stopped():
        session.step()
        for at_s, what in session.logbook.events_since(said):
            say(f"{clock(at_s)}  {what}")
        said = session.logbook.noted
        if session.now_s >= next_line:
            next_line += LINE_EVERY_S
            say(line(session))
        time.sleep(STEP_S)
    session.finish()


def line(session: Session) -> str:
    """Give the session's state in one line."""
    now_s = session.simulation.timeline.now_s
    loads = "  ".join(
        f"{name} {session.recent.served_rps(name):.0f}/{engine.capacity_rps(now_s):.0f}"
        for name, engine in session.simulation.engines.items()
    )
    latency = session.recent.latency()
    words = (
        "no answers yet" if latency.mean_ms is None else f"mean {latency.mean_ms:.0f} ms p99 {latency.p99_ms:.0f} ms"
    )
    return (
        f"{clock(session.now_s)}  {loads} RPS  {words}  shed {session.logbook.shed_now_rps:.0f} RPS{_failed(session)}"
    )


def _failed(session: Session) -> str:
    """Say who fails how many requests; nothing where nobody does."""
    rates = {name: session.recent.failed_rps(name) for name in session.simulation.engines}
    told = ", ".join(f"{name} {rps:.1f} RPS" for name, rps in rates.items() if rps > 0.0)
    return f"  failed {told}" if told else ""
