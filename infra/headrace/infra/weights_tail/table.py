"""A snapshot for people: one table of the routes whose weights moved, or one line where none did."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from headrace.infra.weights_tail.moves import Changed, Still
from headrace.schemas.weights import PPM, RouteWeights, SnapshotCommit, SnapshotStatus, Target

Row = Mapping[str, Text | str]

MAX_TARGETS = 20
MAX_EXCLUDED = 5
"""A route shows this many engines; the rest are counted."""

NARROW = 110
"""A terminal with fewer columns is spared the predictions, so that the reason has room."""

_COLUMNS = ("route", "engine", "weight %", "before", "network ms", "TTFT ms", "load %", "why")
_LEFT = ("route", "engine", "why")
_PREDICTED = ("TTFT ms", "load %")


def table(told: Changed | Still, width: int = 160) -> Table | Text:
    """Give the table of what moved, or the line that says that nothing did."""
    if isinstance(told, Still):
        return _nothing_moved(told.commit)
    grid = Table(title=_title(told.commit), caption=_safe(told.commit.sentence), box=SIMPLE_HEAD)
    columns = [name for name in _COLUMNS if width >= NARROW or name not in _PREDICTED]
    for name in columns:
        grid.add_column(name, justify="left" if name in _LEFT else "right", overflow="fold")
    for route, before in told.routes:
        for row in _route_rows(route, _before_ppm(route, before, told.commit)):
            grid.add_row(*[row.get(name, "") for name in columns])
        grid.add_section()
    for key in told.removed:
        grid.add_row(_safe(key), Text("gone", style="red"))
    return grid


def _before_ppm(route: RouteWeights, before: RouteWeights | None, commit: SnapshotCommit) -> Mapping[str, int]:
    """Give the weights that were last told; where none were, those that the route itself names, if it is new."""
    if before is not None:
        return {t.engine_id: t.weight_ppm for t in before.targets}
    new = route.version == commit.version
    return {t.engine_id: t.previous_ppm if new else t.weight_ppm for t in route.targets}


def _nothing_moved(commit: SnapshotCommit) -> Text:
    line = f"version {commit.version}: nothing moved"
    if commit.status is SnapshotStatus.OPTIMAL:
        return Text(line, style="dim")
    return Text(f"{line}; {commit.status}: {commit.sentence}", style="yellow")


def _title(commit: SnapshotCommit) -> Text:
    at = datetime.fromtimestamp(commit.tick_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    style = "" if commit.status is SnapshotStatus.OPTIMAL else "yellow"
    return Text(f"version {commit.version}, epoch {commit.epoch}, {commit.status}, {at} UTC", style=style)


def _route_rows(route: RouteWeights, before: Mapping[str, int]) -> Iterator[Row]:
    """Give a row by column for each engine of a route; the route itself is told in the first."""
    rows = list(_target_rows(route.targets, before))
    out = Text("out", style="dim")
    rows += [
        {"engine": _safe(e.engine_id), "weight %": out, "why": _safe(e.sentence)} for e in route.excluded[:MAX_EXCLUDED]
    ]
    if len(route.excluded) > MAX_EXCLUDED:
        rows.append({"engine": f"and {len(route.excluded) - MAX_EXCLUDED} more", "weight %": out})
    first: Row = {"engine": "no engine", "why": _safe(route.sentence)}
    for i, row in enumerate(rows or [first]):
        yield {"route": _route_name(route), **row} if i == 0 else row


def _target_rows(targets: Sequence[Target], before: Mapping[str, int]) -> Iterator[Row]:
    used = [t for t in targets if t.weight_ppm or before.get(t.engine_id)]
    used.sort(key=lambda t: (-t.weight_ppm, t.engine_id))
    for t in used[:MAX_TARGETS]:
        before_ppm = before.get(t.engine_id, 0)
        rose = t.weight_ppm - before_ppm
        style = "" if rose == 0 else "bold green" if rose > 0 else "bold red"
        yield {
            "engine": _safe(t.engine_id),
            "weight %": Text(_percent(t.weight_ppm), style=style),
            "before": Text(_percent(before_ppm), style="dim"),
            "network ms": f"{1000 * t.network_s:.1f}",
            "TTFT ms": "?" if t.ttft_s is None else f"{1000 * t.ttft_s:.0f}",
            "load %": "?" if t.utilisation is None else f"{100 * t.utilisation:.0f}",
            "why": _safe(t.sentence),
        }
    if len(used) > MAX_TARGETS:
        rest = sum(t.weight_ppm for t in used[MAX_TARGETS:])
        yield {"engine": f"and {len(used) - MAX_TARGETS} more", "weight %": _percent(rest)}


def _route_name(route: RouteWeights) -> Text:
    name = Text(f"{route.route}\n{route.demand_rps:.1f} RPS")
    if route.shed_ratio > 0:
        name.append(f"\n{100 * route.shed_ratio:.1f} % refused", style="bold red")
    return name


def _percent(ppm: int) -> str:
    return f"{100 * ppm / PPM:.2f}"


def _safe(text: str) -> Text:
    """Give a text that came over Kafka as it is: square brackets are no mark-up."""
    return Text(text)
