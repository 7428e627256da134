"""Stages of one load are one point."""

import numpy as np
import pytest

from headrace.solver.core.profile.averaged import MAX_POINTS, averaged
from headrace.solver.core.profile.fit_profile import FittedProfile, fit_profiles
from headrace.solver.core.profile.load_test import LoadTest, closed_loop
from load_tests import LABELS, batch_engine, open_stage


def test_repeats_become_their_geometric_mean_and_keep_littles_law() -> None:
    (one,) = averaged([closed_loop(8, 10.0, 0.1, 1.0, "row 2"), closed_loop(8, 10.0, 0.4, 4.0, "row 3")])
    assert (one.ttft_s, one.e2e_s, one.completed_rps) == pytest.approx((0.2, 2.0, 4.0))
    assert one.concurrency == pytest.approx(8.0)
    assert one.place == "row 2 and 1 more"


def test_stages_of_unlike_loads_or_loops_stay_apart() -> None:
    stages = [*batch_engine(30, 10), open_stage(9, 9, 0.1, 0.5), open_stage(10, 10, 0.1, 0.5)]
    assert averaged(stages) == (stages[2], stages[3], stages[1], stages[0])
    assert averaged([]) == ()


def test_hundreds_of_noisy_windows_are_an_engine_still() -> None:
    dice = np.random.default_rng(7)
    windows = [
        closed_loop(float(n), 10.0, e2e / 4, e2e)
        for n in dice.uniform(1, 90, 800)
        for e2e in [float((1.0 + n / 10.0) * dice.lognormal(0.0, 0.1))]
    ]
    assert len(averaged(windows)) == MAX_POINTS
    (outcome,) = fit_profiles([LoadTest(LABELS, tuple(windows), "")])
    assert isinstance(outcome, FittedProfile)
    # 9 rps at 90 in service, where the law has it; single windows went up to 11.
    assert outcome.profile.capacity_rps == pytest.approx(9.0, rel=0.03)
    assert max(w.completed_rps for w in windows) > 10.0
