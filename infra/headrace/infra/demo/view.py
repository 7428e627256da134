"""The live view: engines against capacity, weights per cluster, latency, what moved and why.

Made for 100 x 30; where there is less room, down to 80 x 24, frames go and columns are narrower. The keys are the last
lines at any size: what has no room above them is cut.
"""

from dataclasses import dataclass

from rich.columns import Columns
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.layout import Layout
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from headrace.infra.demo.controls import Controls
from headrace.infra.demo.logbook import SETTLED_S, Logbook
from headrace.infra.demo.session import Session
from headrace.infra.fleet.engine import SimulatedEngine
from headrace.infra.fleet.outcomes import LatencySummary, summarise
from headrace.schemas.weights import PPM, SnapshotStatus

BAR_WIDTH = 29
NARROW_BAR = 9
ROOMY = (100, 29)
"""Columns and lines from which there is room for frames."""
MAX_EVENTS_SHOWN = 20
EVENT_INDENT = 7
FRAME = 4
MIN_WIDTH = 20
MOVED_WINDOW_S = 60.0
FIGURE_HEAD = 16
DECISION_LINES = 2
SHED_WORDS = " RPS shed"
"""The clause of a solver's sentence that matters most to who looks on."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True, slots=True)
class Room:
    """How much there is to draw on."""

    wide: bool
    columns: int

    @property
    def line(self) -> int:
        """How many characters a line within a section has."""
        return self.columns - (FRAME if self.wide else 0)

    def section(self, content: RenderableType, title: str) -> RenderableType:
        """Give a part of the screen: framed where there is room; else the head of its table has to do."""
        return Panel(content, title=title, title_align="left", border_style="dim") if self.wide else content


def view(session: Session, controls: Controls, console: Console) -> RenderableType:
    """Give the whole screen for a terminal of that size; taller ones show more events."""
    room = Room(console.width >= ROOMY[0] and console.height >= ROOMY[1], console.width)
    keys = _keys(controls)
    body = [_head(session, room), _engines(session, room), _weights(session, room), _figures(session, room, console)]
    taken = sum(_lines(console, part) for part in [*body, keys])
    shown = min(MAX_EVENTS_SHOWN, max(1, console.height - taken - (2 if room.wide else 0)))
    screen = Layout()
    screen.split_column(
        Layout(Group(*body, _events(session, room, console, shown)), name="body"),
        Layout(keys, name="keys", size=_lines(console, keys)),
    )
    return screen


def _lines(console: Console, part: RenderableType) -> int:
    return len(console.render_lines(part, console.options.update(height=None), pad=False))


def bar(share: float, width: int) -> str:
    """Give a bar of `width` characters filled to `share` (clipped to 0..1), to an eighth of a character."""
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def clock(seconds: float) -> str:
    """Give a time as m:ss."""
    whole = max(0, int(seconds))
    return f"{whole // 60}:{whole % 60:02}"


def _head(session: Session, room: Room) -> RenderableType:
    scenario, snapshot = session.options.scenario, session.logbook.snapshot
    line = Table.grid(expand=True)
    line.add_column(no_wrap=True)
    line.add_column(justify="right", no_wrap=True)
    fleet = ", simulated fleet" if room.wide else ""
    left = Text.assemble(("headrace", "bold cyan"), f"  {scenario.name}, {scenario.model}{fleet}")
    right = Text(f"{clock(session.now_s)}  ", style="bold")
    if snapshot is not None:
        commit = snapshot.commit
        style = "green" if commit.status is SnapshotStatus.OPTIMAL else "bold yellow"
        right.append(f"epoch {commit.epoch} version {commit.version} ", style="dim").append(commit.status, style=style)
    line.add_row(left, right)
    return line


def _engines(session: Session, room: Room) -> RenderableType:
    width = BAR_WIDTH if room.wide else NARROW_BAR
    table = _table((10, "left"), (13, "left"), (5, "right"), (width, "left"), (10, "right"), (5, "right"), (14, "left"))
    title = "" if room.wide else "engines"
    heads = (title, "site", "ready", "load", "RPS / cap.", "queue", "")
    table.add_row(*(Text(word, style="dim") for word in heads))
    now_s = session.simulation.timeline.now_s
    for name, engine in session.simulation.engines.items():
        served, capacity = session.recent.served_rps(name), engine.capacity_rps(now_s)
        load = served / capacity if capacity else 0.0
        table.add_row(
            Text(name, style="bold"),
            Text(engine.spec.site, style="dim"),
            f"{engine.ready(now_s)}/{engine.desired}",
            Text(bar(load, width), style=f"{_load_style(load)} on grey19"),
            f"{served:.0f} / {capacity:3.0f}",
            Text(str(engine.waiting), style="yellow" if engine.waiting else "dim"),
            _condition(engine, now_s),
        )
    return room.section(table, "engines")


def _table(*columns: tuple[int, JustifyMethod]) -> Table:
    """Give a grid of fixed columns, so that nothing moves from frame to frame."""
    table = Table.grid(padding=(0, 1))
    for width, justify in columns:
        table.add_column(width=width, justify=justify, no_wrap=True)
    return table


def _load_style(load: float) -> str:
    return "green" if load < 0.9 else "yellow" if load < 1.0 else "red"


def _condition(engine: SimulatedEngine, now_s: float) -> Text:
    if not engine.alive:
        return Text("dead", style="bold red")
    words: list[str] = []
    if engine.slow > 1.0:
        words.append(f"slow x{engine.slow:g}")
    if engine.error_share > 0.0:
        words.append(f"{engine.error_share:.0%} errors")
    if engine.silent:
        words.append("silent")
    if engine.ready(now_s) < engine.desired:
        words.append("starting")
    return Text(", ".join(words), style="yellow") if words else Text("ok", style="green")


def _weights(session: Session, room: Room) -> RenderableType:
    names = list(session.simulation.engines)
    shares: list[tuple[int, JustifyMethod]] = [(10 if room.wide else 8, "right")] * len(names)
    table = _table((10, "left"), (7, "right"), *shares, (6, "right"), (8, "right"), (7, "right"), (7, "right"))
    heads = ("" if room.wide else "weights", "ended/s", *names, "shed", "unserved", "mean ms", "p99 ms")
    table.add_row(*(Text(word, style="dim") for word in heads))
    routes = () if session.logbook.snapshot is None else session.logbook.snapshot.routes
    for route in routes:
        ppm = {target.engine_id: target.weight_ppm for target in route.targets}
        seen = session.recent.latency(route.cluster)
        table.add_row(
            Text(route.cluster, style="bold"),
            f"{session.recent.ended_rps(route.cluster):.0f}",
            *(_share(ppm.get(name, 0) / PPM) for name in names),
            _share(route.shed_ratio, "bold red"),
            _share(session.recent.unserved_share(route.cluster), "red"),
            _number(seen.mean_ms),
            _number(seen.p99_ms),
        )
    return room.section(table, "weights, and what users wait")


def _share(share: float, style: str = "") -> Text:
    return Text(f"{share:.1%}", style=style) if share else Text("-", style="dim")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _figures(session: Session, room: Room, console: Console) -> RenderableType:
    book, tally = session.logbook, session.simulation.tally
    latency, lag = session.recent.latency(), summarise(book.lag.lag_ms)
    answered, unserved = _answered(session)
    sentence = "" if book.snapshot is None else book.snapshot.commit.sentence
    lines = Table.grid(padding=(0, 1))
    lines.add_column(style="dim", no_wrap=True, width=FIGURE_HEAD)
    lines.add_column()
    lines.add_row("latency, 10 s", _latency_words(latency))
    lines.add_row("signal to weight", f"p50 {_number(lag.p50_ms)} ms   p99 {_number(lag.p99_ms)} ms")
    lines.add_row("traffic moved", _moved_words(book, session.now_s))
    dead = f"   {tally.routed_to_known_dead} to a dead engine" if tally.routed_to_known_dead else ""
    spilled = f"   {tally.spilled:,} spilled" if tally.spilled else ""
    counts = f"{answered:,} answered   {unserved:,} not served   {tally.open:,} under way{spilled}{dead}"
    lines.add_row("requests", counts)
    lines.add_row("last decision", _decision(sentence, console, max(MIN_WIDTH, room.line - FIGURE_HEAD - 1)))
    return Panel(lines, border_style="dim") if room.wide else lines


def _decision(sentence: str, console: Console, width: int) -> Text:
    """Give a decision whole, what it sheds first; at least DECISION_LINES, so that most of them move nothing below."""
    clauses = sorted(sentence.split("; "), key=lambda clause: SHED_WORDS not in clause)
    told = Text("; ").join(Text(clause, style="bold red" if SHED_WORDS in clause else "") for clause in clauses)
    lines = told.wrap(console, width)
    return Text("\n").join([*lines, *[Text("")] * (DECISION_LINES - len(lines))])


def _moved_words(book: Logbook, now_s: float) -> str:
    start = book.moved_share(0.0, min(SETTLED_S, now_s))
    if now_s <= SETTLED_S:
        return f"{start:.0%} went elsewhere since the start, as windows fill"
    from_s = max(SETTLED_S, now_s - MOVED_WINDOW_S)
    span = "minute" if now_s - from_s >= MOVED_WINDOW_S else f"{now_s - from_s:.0f} s"
    moved = book.moved_share(from_s, now_s + 1.0)
    began = "" if now_s - from_s >= MOVED_WINDOW_S else f"; {start:.0%} in the first {SETTLED_S:.0f} s"
    return f"{moved:.0%} went elsewhere in the last {span}{began}"


def _answered(session: Session) -> tuple[int, int]:
    tally = session.simulation.tally
    answered = sum(count for part, count in tally.ended.items() if part.kind == "answered")
    return answered, sum(tally.ended.values()) - answered


def _latency_words(latency: LatencySummary) -> str:
    return "   ".join(
        f"{name} {_number(value)} ms"
        for name, value in (
            ("mean", latency.mean_ms),
            ("p50", latency.p50_ms),
            ("p95", latency.p95_ms),
            ("p99", latency.p99_ms),
        )
    )


def _events(session: Session, room: Room, console: Console, shown: int) -> RenderableType:
    lines: list[Text] = []
    for at_s, what in session.logbook.events[-shown:]:
        wrapped = Text(what).wrap(console, max(MIN_WIDTH, room.line - EVENT_INDENT))
        heads = [f"{clock(at_s):>5}  ", *([" " * EVENT_INDENT] * (len(wrapped) - 1))]
        lines += [Text.assemble((head, "dim"), part, no_wrap=True) for head, part in zip(heads, wrapped, strict=True)]
    lines = lines[-shown:]
    lines += [Text("")] * (shown - len(lines))
    return room.section(Group(*lines), "events")


def _keys(controls: Controls) -> RenderableType:
    keys = [Text.assemble((f"{key} ", "bold cyan"), (what, "dim")) for key, what in controls.help]
    return Columns(keys, padding=(0, 2))
