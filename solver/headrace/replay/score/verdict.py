"""The verdict of a comparison in three sentences: who is best, at what price, and how far to believe it.

Best is the least mean latency among those that leave no more unserved than the recorded policy (by a tenth of a percent
of all requests): a policy that refuses the slow half is not fast.
"""

from headrace.replay.score.comparison import Compared, Comparison, Told
from headrace.replay.score.sums import Of

TOLERATED_PERCENT = 0.1


def best_of(comparison: Comparison) -> Compared:
    """Give the best variant, the recorded one among the candidates."""
    bound = (comparison.variants[0].told("unserved_percent").value or 0.0) + TOLERATED_PERCENT
    able = [c for c in comparison.variants if (c.told("unserved_percent").value or 0.0) <= bound]
    return min(able, key=lambda c: (_or_endless(c.told("mean_ms").value), c.score.name != comparison.recorded))


def verdict(comparison: Comparison) -> tuple[str, str, str]:
    """Give the three sentences."""
    recorded = comparison.variants[0]
    if recorded.score.ticks == 0 or recorded.score.sums[Of.OFFERED] <= 0.0:
        return (
            "There is nothing to judge: the range holds no tick with demand.",
            "No policy was compared.",
            "Choose another range.",
        )
    best = best_of(comparison)
    if len(comparison.variants) == 1:
        return (_alone(recorded), _price(recorded, recorded), _trust(comparison))
    if best is recorded:
        return (_nobody(comparison), _price(recorded, recorded), _trust(comparison))
    return (_better(best, recorded), _price(best, recorded), _trust(comparison))


def _alone(recorded: Compared) -> str:
    name, mean, unserved = recorded.score.name, recorded.told("mean_ms"), recorded.told("unserved_percent")
    return f"{name} is expected at {_ms(mean)} end to end, with {unserved.value or 0.0:.2f} % of requests unserved."


def _nobody(comparison: Comparison) -> str:
    recorded, others = comparison.variants[0], comparison.variants[1:]
    next_best = min(others, key=lambda c: _or_endless(c.told("mean_ms").value))
    return (
        f"No variant would have done better than {recorded.score.name} ({_ms(recorded.told('mean_ms'))} end to end) "
        f"without refusing more; the nearest is {next_best.score.name} at {_ms(next_best.told('mean_ms'))} with "
        f"{next_best.told('unserved_percent').value or 0.0:.2f} % unserved."
    )


def _better(best: Compared, recorded: Compared) -> str:
    mean, was = best.told("mean_ms"), recorded.told("mean_ms")
    share = 100.0 * (mean.difference or 0.0) / was.value if was.value else 0.0
    between = mean.difference_interval
    if between is None:
        sure = "the run is too short for an interval"
    elif between.leaves_out_zero:
        sure = f"95 % interval of the difference {between.low:+.1f} to {between.high:+.1f} ms"
    else:
        sure = f"not told apart from chance: {between.low:+.1f} to {between.high:+.1f} ms"
    return (
        f"{best.score.name} would have been best: {_ms(mean)} end to end against {_ms(was)} of {recorded.score.name} "
        f"({share:+.1f} %; {sure}), with {best.told('unserved_percent').value or 0.0:.2f} % of requests unserved "
        f"against {recorded.told('unserved_percent').value or 0.0:.2f} %."
    )


def _price(best: Compared, recorded: Compared) -> str:
    moved, cold, p99 = (best.told(n).value for n in ("moved_percent_a_minute", "cold_percent", "p99_ms"))
    lost = f"costs {_or_dash(cold)} % of requests their KV cache"
    told = f"It moves {_or_dash(moved)} % of the traffic a minute and {lost}"
    if best is recorded:
        return f"{told}; its p99 is {_or_dash(p99, 0)} ms."
    was = [recorded.told(n).value for n in ("moved_percent_a_minute", "cold_percent", "p99_ms")]
    return (
        f"{told} ({recorded.score.name}: {_or_dash(was[0])} % and {_or_dash(was[1])} %); "
        f"its p99 is {_or_dash(p99, 0)} ms against {_or_dash(was[2], 0)} ms."
    )


def _trust(comparison: Comparison) -> str:
    parts = [comparison.calibration.sentence]
    error = f"{100.0 * comparison.settings.profile_error:.0f} %"
    if len(comparison.variants) > 1:
        holds = "stays" if comparison.order_holds else "does NOT stay"
        parts.append(f"the order of the variants {holds} the same if profiles are {error} slower or faster")
    outside = max((c.told("unmeasured_percent").value or 0.0) for c in comparison.variants)
    if outside >= 1.0:
        parts.append(f"up to {outside:.0f} % of the traffic ran at loads that no profile was measured at")
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _ms(told: Told) -> str:
    return "no served request" if told.value is None else f"{told.value:,.0f} ms"


def _or_dash(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _or_endless(value: float | None) -> float:
    return float("inf") if value is None else value
