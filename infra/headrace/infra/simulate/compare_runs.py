"""Runs of several policies on the same trace and faults -> one comparison, and the document of its report."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace.infra.simulate.run import START_MS, SimulatedRun
from headrace.replay.core.variant import Variant
from headrace.replay.report.differences import decider, largest_differences
from headrace.replay.report.document import Origin, document
from headrace.replay.score.comparison import Comparison, compare
from headrace.replay.score.off_policy import off_policy
from headrace.replay.score.settings import ScoreSettings
from headrace.solver.core.linear import LinearSolver


def compared(runs: Mapping[str, SimulatedRun], variants: Sequence[Variant], rules: ScoreSettings) -> Comparison:
    """Compare runs; the first is what the others are held against."""
    (first, reference), *_ = runs.items()
    configurations = {v.name: dict(v.overrides) for v in variants if v.name in runs}
    comparison = compare(first, [run.score for run in runs.values()], rules, reference.measured, configurations)
    estimated = tuple(
        replace(each, off_policy=_estimate(reference, runs[each.score.name], rules)) for each in comparison.variants
    )
    return replace(comparison, variants=estimated)


def report_of(
    comparison: Comparison,
    variants: Sequence[Variant],
    lp: LinearSolver,
    origin: Origin,
) -> dict[str, Any]:
    """Give the report's document."""
    deciders = {variant.name: decider(variant.settings, lp) for variant in variants}
    scores = [each.score for each in comparison.variants]
    differences = largest_differences(scores[0], scores[1:], deciders)
    return document(comparison, origin, differences)


def _estimate(reference: SimulatedRun, run: SimulatedRun, rules: ScoreSettings) -> Any:  # noqa: ANN401 - one of two
    def weights_at(at_ms: int, route: str) -> Mapping[str, float]:
        return run.weights.at((at_ms - START_MS) / 1000.0, route)

    return off_policy(reference.choices, weights_at, rules)
