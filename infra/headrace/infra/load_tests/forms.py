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

from headrace.infra.load_tests.cells import SECONDS, Cells
from headrace.infra.load_tests.column_names import named
from headrace.infra.load_tests.csv_table import CsvTable
from headrace.infra.load_tests.unit_doubts import units_apart
from headrace.schemas.errors import InvalidInputError
from headrace.solver.core.profile.load_test import LoadStage, LoadTest, ProfileLabels, closed_loop, stage_problems

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class _Form:
    needs: tuple[tuple[str, ...], ...]
    stage: Callable[[Cells, list[str]], LoadStage | None]
    curve: Callable[[Cells, str], tuple[ProfileLabels, str]]
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
    titles = [table.called.get(column, column) for column in table.columns if column not in _KNOWN]
    lacking = [_none_of(names, titles) for names in _lacking(form, table)]
    if lacking:
        raise InvalidInputError(table.name, (*lacking, *(said for _, said in table.torn)))
    stages: dict[tuple[ProfileLabels, str, str], list[LoadStage]] = {}
    left_out: list[str] = []
    problems = list(table.torn)
    for row in table.rows:
        found: list[str] = []
        cells = Cells(row, table.called, found)
        labels, pool = form.curve(cells, table.name)
        stage = form.stage(cells, found)
        if cells.missing and not found:
            left_out.append(f"{cells.place} is left out: {', '.join(cells.missing)} not measured")
            continue
        if stage is not None and not found:
            found += _of_the_whole(cells, stage)
            name = cells.text(form.name, table.name)
            stages.setdefault((replace(labels, **given), pool, name), []).append(stage)
        problems += [(row.line, said) for said in found]
    if problems:
        raise InvalidInputError(table.name, tuple(said for _, said in sorted(problems, key=lambda each: each[0])))
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


def _lacking(form: "_Form", table: CsvTable) -> list[tuple[str, ...]]:
    """Give each set of columns of which a form needs one and the file has none."""
    columns = table.columns
    wanted = [*form.needs]
    if form is _PLAIN:
        is_open = "offered_rps" in columns
        names = ("e2e", "tbot", "tpot") if is_open else ("e2e", "tbot")
        wanted.append(tuple(f"{name}_{unit}" for name in names for unit in SECONDS))
        wanted += [("completed_rps",)] if is_open else []
    return [names for names in wanted if not any(name in columns for name in names)]


def _none_of(names: tuple[str, ...], columns: Sequence[str]) -> str:
    shown = _ALSO.get(names, names)
    none = f"column {names[0]!r} is missing" if len(shown) == 1 else f"none of the columns {', '.join(shown)}"
    return f"{none}{_nearest(shown, columns)}"


def _nearest(names: Sequence[str], columns: Sequence[str]) -> str:
    near = {column: name for name in reversed(names) for column in difflib.get_close_matches(name, columns, n=1)}
    if not near:
        return ""
    return f"; the nearest is {max(near, key=lambda c: difflib.SequenceMatcher(None, c, near[c]).ratio())!r}"


def _of_the_whole(cells: Cells, stage: LoadStage) -> list[str]:
    """Say what is wrong with a stage whose cells are sound by themselves, in the file's columns."""
    e2e = next((name for name in ("e2e_ms", "e2e_s", "e2e_mean_ms") if cells.has(name)), None)
    ttft = next((name for name in ("ttft_ms", "ttft_s", "ttft_mean_ms") if cells.has(name)), None)
    if e2e is not None and ttft is not None and stage.e2e_s < stage.ttft_s:
        whole, first = f"{cells.called(e2e)} is {cells.text(e2e)}", f"{cells.called(ttft)} {cells.text(ttft)}"
        return [f"{cells.place}: {whole}, below its {first}{units_apart(stage)}"]
    computed = "the end-to-end time of all tokens" if e2e is None else cells.called(e2e)
    return [said.replace("e2e_s", computed) for said in stage_problems([stage])]


def _identifier(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._:/@-]+", "-", text).strip("-")[:200] or "profile"


def _plain_stage(cells: Cells, problems: list[str]) -> LoadStage | None:
    tokens = cells.number("output_tokens")
    ttft, other = cells.seconds("ttft"), cells.seconds("e2e", "tbot", "tpot")
    loads = [name for name in _LOADS if cells.kept(name)]
    if len(loads) > 1:
        problems.append(f"{cells.place}: {' or '.join(map(cells.called, loads))}, one of them")
    if not loads:
        cells.missing += [cells.called(name) for name in _LOADS if cells.in_file(name)]
    kept = {name: cells.number(name) for name in loads}
    counted = "offered_rps" in kept or cells.has("completed_rps")
    completed = cells.number("completed_rps") if counted else None
    cells.missing += [name for name, cell in (("ttft", ttft), ("e2e or tbot", other)) if cell is None]
    if ttft is None or other is None or problems or not loads:
        return None
    # A time between tokens is of all of them here, a time per output token of all but the first.
    e2e_s = other[1]
    if not other[0].startswith("e2e"):
        e2e_s = ttft[1] + (tokens - other[0].startswith("tpot")) * other[1]
    if "offered_rps" in kept and completed is not None:
        return LoadStage(kept["offered_rps"], completed, tokens, ttft[1], e2e_s, None, cells.place)
    stage = closed_loop(kept["concurrency"], tokens, ttft[1], e2e_s, cells.place)
    return stage if completed is None else replace(stage, completed_rps=completed)


def _plain_curve(cells: Cells, name: str) -> tuple[ProfileLabels, str]:
    curve = _identifier(cells.text("curve", name))
    hardware, model = cells.text("hardware", UNKNOWN), cells.text("model", UNKNOWN)
    configuration = cells.text("configuration")
    # Without a word on what they are, curves of one file are not taken to be alike.
    known = UNKNOWN not in (hardware, model)
    pool = f"{hardware}|{model}|{configuration}" if known else curve
    return ProfileLabels(curve, hardware, model, f"{name}, load test"), pool


def _perf_stage(cells: Cells, _problems: list[str]) -> LoadStage:
    ttft_s, e2e_s = cells.number("ttft_mean_ms") / 1000, cells.number("e2e_mean_ms") / 1000
    offered, completed = cells.number("requested_rps"), cells.number("completed_rps")
    return LoadStage(offered, completed, cells.number("output_mean"), ttft_s, e2e_s, None, cells.place)


def _perf_curve(cells: Cells, name: str) -> tuple[ProfileLabels, str]:
    variant = cells.text("variant", name)
    shipped = name == "inference_perf_h100_llama8b"
    hardware, model = ("1x H100-80GB", "llama-3.1-8b") if shipped else (UNKNOWN, UNKNOWN)
    hardware, model = cells.text("hardware", hardware), cells.text("model", model)
    prefix = "h100-llama-3.1-8b-" if shipped else ""
    labels = ProfileLabels(_identifier(f"{prefix}{variant}"), hardware, model, f"{name}, inference-perf, open loop")
    return labels, f"{hardware}|{model}|{variant}"


def _silicon_stage(cells: Cells, _problems: list[str]) -> LoadStage | None:
    tokens, ttft, tpot = cells.number("osl"), cells.seconds("ttft"), cells.seconds("tpot")
    cells.missing += [name for name, cell in (("ttft", ttft), ("tpot", tpot)) if cell is None]
    if ttft is None or tpot is None:
        return None
    e2e_s = ttft[1] + (tokens - 1) * tpot[1]
    return closed_loop(cells.number("concurrency"), tokens, ttft[1], e2e_s, cells.place)


def _silicon_curve(cells: Cells, name: str) -> tuple[ProfileLabels, str]:
    system, model = cells.text("system", UNKNOWN), cells.text("model", UNKNOWN)
    precision, backend = cells.text("precision"), cells.text("backend")
    curve, gpus = cells.text("curve_id", name), cells.text("gpus", "?")
    labels = ProfileLabels(
        _identifier(f"silicon-{curve}"), f"{gpus}x {system}", f"{model} {precision}".strip(), f"{name}, closed loop"
    )
    return labels, f"{system}|{model}|{precision}|{backend}"


_LOADS = ("offered_rps", "concurrency")
_TTFT = ("ttft_ms", "ttft_s")
_ALSO: Mapping[tuple[str, ...], tuple[str, ...]] = {("osl",): ("osl", "output_tokens")}
"""What a column may as well be called, where it is not there."""
_PLAIN = _Form((("output_tokens",), _LOADS, _TTFT), _plain_stage, _plain_curve, "curve")
_PERF = _Form(
    (("requested_rps",), ("completed_rps",), ("output_mean",), ("ttft_mean_ms",), ("e2e_mean_ms",)),
    _perf_stage,
    _perf_curve,
    "variant",
)
_SILICON = _Form((("osl",), _LOADS, _TTFT), _silicon_stage, _silicon_curve, "curve_id")
_TIMES = tuple(f"{name}_{unit}" for name in ("ttft", "e2e", "tbot", "tpot") for unit in SECONDS)
_KNOWN = frozenset(
    ("completed_rps", *_TIMES, *(name for form in (_PLAIN, _PERF, _SILICON) for each in form.needs for name in each))
)
"""Columns that are what they are called, and not another one mistyped."""
