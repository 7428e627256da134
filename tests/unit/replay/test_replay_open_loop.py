"""A policy that steers by latency, played over history, is told as an open loop, with the command that closes it."""

from dataclasses import replace
from importlib import import_module

import pytest

from headrace.replay.score.cautions import cautions
from headrace.replay.score.comparison import Comparison, compare
from headrace.replay.score.variant import score_variant
from headrace.solver.core.policies import policy_names, steers_by_latency
from played_ticks import played
from solver_problems import engine, problem, profile, row

LINE = profile("p", (0.0, 1.0), (0.1, 0.3), (0.0, 0.0))
WORLD = problem([row("A", 9.0)], [engine("e1"), engine("e2")], 2.0, (LINE,))


def compared(*shares: float, policy: str = "pid") -> Comparison:
    """A recorded program that spreads evenly, and variants of a policy with these shares of the first engine."""
    scores = [
        replace(
            score_variant(name, (played(float(s), WORLD, {"A": {"e1": share, "e2": 1.0 - share}}) for s in range(30))),
            policy=by,
        )
        for name, share, by in (("recorded", 0.5, "lp"), *((f"v{n}", share, policy) for n, share in enumerate(shares)))
    ]
    return compare("recorded", scores)


def test_a_feedback_policy_that_scores_badly_is_told_as_an_open_loop_with_the_command_that_closes_it() -> None:
    (said,) = cautions(compared(0.9, 0.8), closed_loop=False)
    assert said.startswith("v0 and v1: steered by latency, and shown the latencies that the weights of recorded caused")
    assert "That the score is bad is of this open loop" in said
    assert "`headrace replay simulate --policy lp --policy pid`" in said


def test_one_that_scores_well_is_not_praised_either() -> None:
    found = compared(0.9, policy="proportional")
    uneven, even = found.variants[1], replace(found.variants[0].score, name="even", policy="proportional")
    (said,) = cautions(compare("v0", [uneven.score, even]), closed_loop=False)
    assert said.startswith("even: steered by latency")
    assert "That the score is not bad is of this open loop too" in said


@pytest.mark.parametrize(("share", "policy"), [(0.5, "pid"), (0.9, "nearest"), (0.9, "of another build")])
def test_the_recorded_weights_and_policies_without_feedback_have_no_loop_to_open(share: float, policy: str) -> None:
    assert cautions(compared(share, policy=policy), closed_loop=False) == ()


def test_a_closed_loop_is_no_open_one() -> None:
    assert cautions(compared(0.9), closed_loop=True) == ()


def test_policies_that_read_measured_latency_say_that_they_steer_by_it() -> None:
    reading = {
        name for name in policy_names() if hasattr(import_module(f"headrace.solver.core.policies.{name}"), "stepped")
    }
    assert reading == {name for name in policy_names() if steers_by_latency(name)} != set()
