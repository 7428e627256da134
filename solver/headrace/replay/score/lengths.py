"""How long an engine's answers are, and how far that brings its wall down: capacity is for the profile's.

stretch = latency at the wall with these answers / with the profile's         capacity / stretch is what is left
"""

from collections.abc import Mapping

from headrace.replay.score.filling import filling_of
from headrace.schemas.fleet import LatencyProfile
from headrace.solver.core.problem import Engine, Problem


def mean_work(problem: Problem) -> dict[str, float]:
    """Give the mean work of what is asked for, by model, where it is not 1: measured answers are of that mix."""
    if all(row.work == 1.0 for row in problem.rows):
        return {}
    asked: dict[str, tuple[float, float]] = {}
    for row in problem.rows:
        requests, work = asked.get(row.route.model, (0.0, 0.0))
        asked[row.route.model] = requests + row.demand_rps, work + row.demand_work
    return {model: work / requests for model, (requests, work) in asked.items() if requests > 0.0}


def answer_tokens(
    engine: Engine, profile: LatencyProfile, tokens: Mapping[str, float], work: Mapping[str, float]
) -> float:
    """Give the mean tokens of an answer of work 1: of the first of its models that is known, else the profile's."""
    told = (tokens[model] / work.get(model, 1.0) for model in engine.models if model in tokens)
    return next(told, profile.output_tokens)


class Answers:
    """Lengths of answers at one tick; many engines are alike in profile and models, and each kind is looked up once."""

    def __init__(self, problem: Problem, tokens: Mapping[str, float]) -> None:
        self._profiles, self._tokens, self._work = problem.profiles, tokens, mean_work(problem)
        self._kinds: dict[tuple[str, tuple[str, ...]], tuple[float, float] | None] = {}

    def of(self, engine: Engine) -> tuple[float, float] | None:
        """Give the mean tokens of an engine's answers of work 1, and the stretch; None where it has no profile."""
        kind = engine.profile_id, engine.models
        if kind not in self._kinds:
            profile = self._profiles.get(engine.profile_id)
            if profile is None:
                self._kinds[kind] = None
            else:
                tokens = answer_tokens(engine, profile, self._tokens, self._work)
                self._kinds[kind] = tokens, filling_of(profile).stretch(tokens)
        return self._kinds[kind]
