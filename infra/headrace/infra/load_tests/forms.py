"""The three forms in which load tests come, told apart by their columns; each row is one stage of one replica.

    plain            offered_rps and completed_rps (open loop), or concurrency (closed loop; completed_rps may be given)
                     output_tokens
                     ttft_ms or ttft_s
                     tbot_ms, tbot_s, e2e_ms or e2e_s; or tpot_ms, tpot_s, with offered_rps
                     optional: curve (several in one file), hardware, model, configuration
    inference-perf   requested_rps, completed_rps, output_mean, ttft_mean_ms, e2e_mean_ms
                     optional: variant, hardware, model
    silicon          osl, concurrency
                     ttft_ms or ttft_s
                     tpot_ms or tpot_s
                     optional: curve_id, system, gpus, model, precision, backend

Case, blanks and marks in a column's name do not count, and some other names are known (max_concurrency, mean_ttft_ms,
output_len ...). A row in which a load, a length or a time is empty or `nan` is left out, and told. Times are means; e2e
is the whole request, ttft its first token. Other columns are passed over. A plain file may hold rows of both loops: a
row with a concurrency leaves offered_rps empty, or `inf`, as `vllm bench serve` writes it (whose mean length, if it is
not told, is total_output_tokens / completed). `tpot_ms` of the inference-perf form is not used: it is half the time per
token. Elsewhere e2e = ttft + (output tokens - 1) x tpot, as tools that call it so define it.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.infra.load_tests.column_names import named
from headrace.infra.load_tests.csv_table import CsvRow, CsvTable
from headrace.schemas.errors import InvalidInputError
from headrace.solver.core.profile.load_test import LoadStage, LoadTest, ProfileLabels, closed_loop, stage_problems

SECONDS = {"ms": 1e-3, "s": 1.0}
NOTHING = frozenset({"", "nan", "na", "n/a", "null", "none", "-"})
"""What stands for a value that was not measured."""
UNLIMITED = frozenset({"inf", "infinity"})
"""The request rate of a closed loop, for tools that always state one."""
UNKNOWN = "unknown"


class _Cells:
    """The cells of one row as numbers; what is wrong with them goes to `problems`."""

    def __init__(self, row: CsvRow, problems: list[str]) -> None:
        self.place = f"row {row.line}"
        self.missing: list[str] = []
        self._row = row
        self._problems = problems

    def text(self, column: str, otherwise: str = "") -> str:
        return self._row.cells.get(column, "") or otherwise

    def has(self, column: str) -> bool:
        return bool(self.text(column))

    def kept(self, load: str) -> bool:
        """Say whether this load is the one that the stage kept."""
        return self.has(load) and self.text(load).lower() not in NOTHING | UNLIMITED

    def number(self, column: str) -> float:
        cell = self.text(column)
        if cell.lower() in NOTHING:
            self.missing.append(column)
            return float("nan")
        try:
            return float(cell)
        except ValueError:
            self._problems.append(f"{self.place}: {column} is {cell[:40]!r}; a number")
            return float("nan")

    def seconds(self, *names: str) -> tuple[str, float] | None:
        """Give (name, value) of the first of these times that the row has, in ms or in s."""
        for name in names:
            for unit, factor in SECONDS.items():
                if self.has(f"{name}_{unit}"):
                    return name, self.number(f"{name}_{unit}") * factor
        return None


@dataclass(frozen=True, slots=True)
class _Form:
    needs: tuple[str, ...]
    stage: Callable[[_Cells, list[str]], LoadStage | None]
    curve: Callable[[_Cells, str], tuple[ProfileLabels, str]]
    name: str


def load_tests(
    table: CsvTable, given: Mapping[str, str], say: Callable[[str], None] | None = None
) -> tuple[LoadTest, ...]:
    """Give the load tests of a table, in the order of their first rows.

    Args:
        table: the rows.
        given: `hardware`, `model` and `source` in place of what the file says.
        say: is told of each row that is left out, since something of it was not measured.

    Raises:
        InvalidInputError: with every problem: columns that are missing, with the nearest there is; cells by row.
    """
    table = named(table)
    form = _form_of(table.columns)
    missing = [name for name in form.needs if name not in table.columns]
    problems = [f"column {name!r} is missing{_nearest(name, table.columns)}" for name in missing]
    if form is not _PERF:
        problems += _columns(table.columns, plain=form is _PLAIN)
    if problems:
        raise InvalidInputError(table.name, tuple(problems))
    stages: dict[tuple[ProfileLabels, str, str], list[LoadStage]] = {}
    left_out: list[str] = []
    for row in table.rows:
        found: list[str] = []
        cells = _Cells(row, found)
        labels, pool = form.curve(cells, table.name)
        stage = form.stage(cells, found)
        if cells.missing and not found:
            left_out.append(f"{cells.place} is left out: {', '.join(cells.missing)} not measured")
            continue
        if stage is not None and not found:
            found += stage_problems([stage])
            name = cells.text(form.name, table.name)
            stages.setdefault((replace(labels, **given), pool, name), []).append(stage)
        problems += found
    if problems:
        raise InvalidInputError(table.name, tuple(problems))
    if not stages:
        raise InvalidInputError(table.name, tuple(left_out))
    if say is not None:
        for sentence in left_out:
            say(sentence)
    tests = tuple(LoadTest(labels, tuple(of), pool, name) for (labels, pool, name), of in stages.items())
    _unlike_labels(table.name, tests)
    return tests


def _unlike_labels(name: str, tests: Sequence[LoadTest]) -> None:
    """Refuse one curve under two hardwares, models or configurations."""
    ids = [test.labels.profile_id for test in tests]
    repeated = sorted({each for each in ids if ids.count(each) > 1})
    if repeated:
        said = "has rows of more than one hardware, model or configuration"
        raise InvalidInputError(name, tuple(f"curve {each!r} {said}" for each in repeated))


def _form_of(columns: Sequence[str]) -> "_Form":
    if "ttft_mean_ms" in columns:
        return _PERF
    return _SILICON if any(f"tpot_{unit}" in columns for unit in SECONDS) and "offered_rps" not in columns else _PLAIN


def _columns(columns: Sequence[str], *, plain: bool) -> list[str]:
    def one_of(*names: str) -> str | None:
        if any(name in columns for name in names):
            return None
        return f"none of the columns {', '.join(names)}{_nearest(names[0], columns)}"

    if not plain:
        return [problem for problem in (one_of("ttft_ms", "ttft_s"),) if problem is not None]
    names = ("e2e", "tbot", "tpot") if "offered_rps" in columns else ("e2e", "tbot")
    times = [f"{name}_{unit}" for name in names for unit in SECONDS]
    wanted = [one_of("offered_rps", "concurrency"), one_of("ttft_ms", "ttft_s"), one_of(*times)]
    if "offered_rps" in columns:
        wanted.append(one_of("completed_rps"))
    return [problem for problem in wanted if problem is not None]


def _nearest(name: str, columns: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, columns, n=1)
    return f"; the nearest is {near[0]!r}" if near else ""


def _identifier(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._:/@-]+", "-", text).strip("-")[:200] or "profile"


def _plain_stage(cells: _Cells, problems: list[str]) -> LoadStage | None:
    tokens = cells.number("output_tokens")
    ttft, other = cells.seconds("ttft"), cells.seconds("e2e", "tbot", "tpot")
    is_open = cells.kept("offered_rps")
    if is_open == cells.kept("concurrency"):
        problems.append(f"{cells.place}: offered_rps or concurrency, one of them")
    cells.missing += [name for name, cell in (("ttft", ttft), ("e2e or tbot", other)) if cell is None]
    if ttft is None or other is None or problems:
        return None
    # A time between tokens is of all of them here, a time per output token of all but the first.
    e2e_s = other[1] if other[0] == "e2e" else ttft[1] + (tokens - (other[0] == "tpot")) * other[1]
    if is_open:
        completed, offered = cells.number("completed_rps"), cells.number("offered_rps")
        return LoadStage(offered, completed, tokens, ttft[1], e2e_s, None, cells.place)
    stage = closed_loop(cells.number("concurrency"), tokens, ttft[1], e2e_s, cells.place)
    return replace(stage, completed_rps=cells.number("completed_rps")) if cells.has("completed_rps") else stage


def _plain_curve(cells: _Cells, name: str) -> tuple[ProfileLabels, str]:
    curve = _identifier(cells.text("curve", name))
    hardware, model = cells.text("hardware", UNKNOWN), cells.text("model", UNKNOWN)
    configuration = cells.text("configuration")
    # Without a word on what they are, curves of one file are not taken to be alike.
    known = UNKNOWN not in (hardware, model)
    pool = f"{hardware}|{model}|{configuration}" if known else curve
    return ProfileLabels(curve, hardware, model, f"{name}, load test"), pool


def _perf_stage(cells: _Cells, _problems: list[str]) -> LoadStage:
    ttft_s, e2e_s = cells.number("ttft_mean_ms") / 1000, cells.number("e2e_mean_ms") / 1000
    offered, completed = cells.number("requested_rps"), cells.number("completed_rps")
    return LoadStage(offered, completed, cells.number("output_mean"), ttft_s, e2e_s, None, cells.place)


def _perf_curve(cells: _Cells, name: str) -> tuple[ProfileLabels, str]:
    variant = cells.text("variant", name)
    shipped = name == "inference_perf_h100_llama8b"
    hardware, model = ("1x H100-80GB", "llama-3.1-8b") if shipped else (UNKNOWN, UNKNOWN)
    hardware, model = cells.text("hardware", hardware), cells.text("model", model)
    prefix = "h100-llama-3.1-8b-" if shipped else ""
    labels = ProfileLabels(_identifier(f"{prefix}{variant}"), hardware, model, f"{name}, inference-perf, open loop")
    return labels, f"{hardware}|{model}|{variant}"


def _silicon_stage(cells: _Cells, _problems: list[str]) -> LoadStage | None:
    tokens, ttft, tpot = cells.number("osl"), cells.seconds("ttft"), cells.seconds("tpot")
    cells.missing += [name for name, cell in (("ttft", ttft), ("tpot", tpot)) if cell is None]
    if ttft is None or tpot is None:
        return None
    e2e_s = ttft[1] + (tokens - 1) * tpot[1]
    return closed_loop(cells.number("concurrency"), tokens, ttft[1], e2e_s, cells.place)


def _silicon_curve(cells: _Cells, name: str) -> tuple[ProfileLabels, str]:
    system, model = cells.text("system", UNKNOWN), cells.text("model", UNKNOWN)
    precision, backend = cells.text("precision"), cells.text("backend")
    curve, gpus = cells.text("curve_id", name), cells.text("gpus", "?")
    labels = ProfileLabels(
        _identifier(f"silicon-{curve}"), f"{gpus}x {system}", f"{model} {precision}".strip(), f"{name}, closed loop"
    )
    return labels, f"{system}|{model}|{precision}|{backend}"


_PLAIN = _Form(("output_tokens",), _plain_stage, _plain_curve, "curve")
_PERF = _Form(
    ("requested_rps", "completed_rps", "output_mean", "ttft_mean_ms", "e2e_mean_ms"),
    _perf_stage,
    _perf_curve,
    "variant",
)
_SILICON = _Form(("osl", "concurrency"), _silicon_stage, _silicon_curve, "curve_id")
