"""Load tests of engines whose law is known, so that what a fit should say can be worked out by hand."""

from headrace.solver.core.profile.load_test import LoadStage, ProfileLabels, closed_loop

LABELS = ProfileLabels("p", "gpu", "m", "by hand")


def open_stage(offered: float, completed: float, ttft: float, e2e: float, tokens: float = 10.0) -> LoadStage:
    return LoadStage(offered, completed, tokens, ttft, e2e)


def batch_engine(*concurrencies: float, rate: float = 1.0, time: float = 1.0) -> tuple[LoadStage, ...]:
    """An engine whose request takes 1 s and 0.1 s more for each one in service, a quarter of it before the first token.

    e2e = 1 + n / 10, so rate = n / (1 + n / 10): 5 rps at 10 in service, 7.5 at 30, 9 at 90; never 10.
    """
    stages: list[LoadStage] = []
    for n in concurrencies:
        e2e = (1.0 + n / 10.0) * time
        stages.append(closed_loop(n * rate * time, 10.0, e2e / 4, e2e, f"n={n:g}"))
    return tuple(stages)
