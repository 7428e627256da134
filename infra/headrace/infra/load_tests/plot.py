"""Fitted curves with their measurements, as PNG, SVG or one self-contained HTML file (an SVG inside).

Left, what a request waits in all; right, its two parts. Full line: where it was measured; dashes: the pool's shape.
Hollow marks are stages that the fit did not use. The vertical line is the capacity, dotted where it is a lower bound.
"""

import html
import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headrace.schemas.errors import InvalidInputError
from headrace.solver.core.profile.fit_profile import FittedProfile

MAX_CURVES = 24
ENDINGS = (".png", ".svg", ".html")
INK, TTFT, TBOT, FAINT = "#1b3a57", "#c05a1c", "#2a7f62", "#9aa5b1"


def plot_problem(path: Path, curves: int) -> str | None:
    """Give the sentence that says why `curves` curves cannot be drawn to `path`, or None where they can."""
    if path.suffix.lower() not in ENDINGS:
        return f"--plot is {str(path)!r}; it ends in one of {', '.join(ENDINGS)}"
    if curves > MAX_CURVES:
        return f"--plot would draw {curves} curves; at most {MAX_CURVES}: choose some with --curve"
    return None


def draw(fits: Sequence[FittedProfile], path: Path) -> None:
    """Draw at least one fit, two panels each.

    Raises:
        InvalidInputError: the file cannot be written.
    """
    with mpl.rc_context({"svg.hashsalt": "headrace", "font.size": 9, "axes.spines.top": False}):
        figure = Figure(figsize=(11, 3.7 * len(fits)), layout="constrained")
        axes = figure.subplots(len(fits), 2, squeeze=False)
        for i, fit in enumerate(fits):
            _total(axes[i, 0], fit)
            _parts(axes[i, 1], fit)
        content = _html(figure, fits) if path.suffix.lower() == ".html" else _image(figure, path.suffix.lower()[1:])
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InvalidInputError(str(path), (f"cannot be written: {error.strerror}",)) from error


def _image(figure: Figure, form: str) -> bytes:
    out = io.BytesIO()
    metadata = {"Date": None} if form == "svg" else {}
    figure.savefig(out, format=form, dpi=110, metadata=metadata)
    return out.getvalue()


def _html(figure: Figure, fits: Sequence[FittedProfile]) -> bytes:
    svg = _image(figure, "svg").decode()
    title = html.escape(", ".join(fit.profile.profile_id for fit in fits))
    body = svg[svg.index("<svg") :]
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    return f"{head}<style>svg{{max-width:100%;height:auto}}</style>{body}</html>\n".encode()


def _total(axes: Axes, fit: FittedProfile) -> None:
    p = fit.profile
    ttft, tbot = np.array(p.ttft_s), np.array(p.tbot_s)
    _line(axes, fit, ttft + p.output_tokens * tbot, INK, "fitted")
    steady, saturated = fit.wall.steady, fit.wall.saturated
    axes.plot([s.completed_rps for s in steady], [s.e2e_s for s in steady], "o", color=INK, label="measured")
    top = max([float((ttft + p.output_tokens * tbot)[-1]), *(s.e2e_s for s in steady)])
    if saturated:
        label = "saturated, not used (top: out of scale)"
        shown = [min(s.e2e_s, 1.6 * top) for s in saturated]
        axes.plot([s.completed_rps for s in saturated], shown, "o", mfc="none", color=FAINT, label=label)
    axes.set_ylim(0.0, 1.7 * top if saturated else 1.1 * top)
    error = f"error {p.fit_error_median or 0.0:.1%} median, {p.fit_error_p90 or 0.0:.1%} p90"
    axes.set_title(f"{p.profile_id}: {p.model} on {p.hardware}\n{error}", loc="left", fontsize=9)
    _frame(axes, fit, "end-to-end time, s")


def _parts(axes: Axes, fit: FittedProfile) -> None:
    p, steady = fit.profile, fit.wall.steady
    rates = [s.completed_rps for s in steady]
    _line(axes, fit, np.array(p.ttft_s), TTFT, "TTFT, s")
    axes.plot(rates, [s.ttft_s for s in steady], "o", color=TTFT)
    axes.set_ylim(0.0, 1.1 * max(p.ttft_s[-1], *(s.ttft_s for s in steady)))
    other = axes.twinx()
    # On the first axes too, without a point, for the legend.
    axes.plot([], [], color=TBOT, label="TBOT, ms")
    _line(other, fit, np.array(p.tbot_s) * 1000, TBOT, "TBOT, ms")
    other.plot(rates, [s.tbot_s * 1000 for s in steady], "s", color=TBOT)
    other.set_ylim(0.0, 1100 * max(p.tbot_s[-1], *(s.tbot_s for s in steady)))
    other.set_ylabel("time between output tokens, ms", color=TBOT)
    _frame(axes, fit, "time to first token, s")
    axes.yaxis.label.set_color(TTFT)


def _line(
    axes: Axes, fit: FittedProfile, values: "np.ndarray[tuple[int], np.dtype[np.float64]]", ink: str, label: str
) -> None:
    p = fit.profile
    loads = np.unique(np.concatenate((np.linspace(0, 1, 201), [p.measured_from_load, p.measured_to_load])))
    curve = np.interp(loads, p.load_knots, values)
    inside = (loads >= p.measured_from_load) & (loads <= p.measured_to_load)
    axes.plot(loads * p.capacity_rps, curve, "--", color=ink, linewidth=1.0)
    axes.plot(loads[inside] * p.capacity_rps, curve[inside], "-", color=ink, linewidth=1.8, label=label)


def _frame(axes: Axes, fit: FittedProfile, label: str) -> None:
    said = "capacity" if fit.wall.reached else "highest rate seen"
    style = "-" if fit.wall.reached else ":"
    axes.axvline(
        fit.profile.capacity_rps, color=FAINT, linestyle=style, label=f"{said}, {fit.profile.capacity_rps:.4g} rps"
    )
    axes.set_xlim(left=0.0)
    axes.set_xlabel("completed requests a second, one replica")
    axes.set_ylabel(label)
    axes.legend(loc="upper left", frameon=False)
