"""The verdict of a comparison in three sentences: who is best, at what price, and how far to believe it.

Of a simulation it tells what the simulated users met, and the score of the profiles beside it; of history the score.

Best is the least mean latency among those that leave no more unserved than the recorded policy (by a tenth of a percent
of all requests): a policy that refuses the slow half is not fast. A mean that cannot be told apart from the recorded
one's, by its size, by chance or with profiles that are off, makes nobody best, unless less is left unserved. Nor does a
run that is too short for an interval, and never a variant that was played over another time.
"""

from headrace.replay.score.comparison import Compared, Comparison, Told
from headrace.replay.score.digits import five_digits
from headrace.replay.score.lead import lead_of
from headrace.replay.score.sums import Of
from headrace.replay.score.told_apart import alike, less_unserved, other_time, too_short


def best_of(comparison: Comparison) -> Compared:
    """Give the best variant, the recorded one among the candidates."""
    recorded = comparison.variants[0]
    if too_short(comparison) is not None:
        return recorded
    for each in _nearest(comparison):
        if each is recorded:
            break
        if other_time(each, comparison) is not None:
            continue
        if less_unserved(each, recorded, comparison) or alike(each, comparison) is None:
            return each
    return recorded


def _nearest(comparison: Comparison) -> list[Compared]:
    """Give those that leave no more unserved than the recorded one, by rising mean; of equals it comes first."""
    recorded, mean = comparison.variants[0], lead_of(comparison).mean
    able = [c for c in comparison.variants if not less_unserved(recorded, c, comparison)]
    return sorted(able, key=lambda c: (_or_endless(c.told(mean).value), c is not recorded))


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
        return (_alone(comparison), _price(recorded, comparison), _trust(comparison))
    short = too_short(comparison)
    if short is not None:
        return (_too_short(comparison, short), _price(recorded, comparison), _trust(comparison))
    if best is recorded:
        return (_nobody(comparison), _price(recorded, comparison), _trust(comparison))
    return (_better(best, comparison), _price(best, comparison), _trust(comparison))


def _alone(comparison: Comparison) -> str:
    recorded = comparison.variants[0]
    if comparison.met:
        return f"{recorded.score.name}: {_waited(recorded, comparison)}."
    return f"{recorded.score.name} is expected at {_waited(recorded, comparison)}."


def _too_short(comparison: Comparison, why: str) -> str:
    told = "; ".join(f"{c.score.name} {_waited(c, comparison)}" for c in comparison.variants)
    return f"Too short to say which policy is better ({why}). So far: {told}."


def _nobody(comparison: Comparison) -> str:
    recorded, others = comparison.variants[0], comparison.variants[1:]
    able = [each for each in _nearest(comparison) if each is not recorded]
    did = "did" if comparison.met else "would have done"
    rest = f"; no other variant {did} better" if len(able) > 1 else ""
    for each in able:
        why = alike(each, comparison)
        if why is not None:
            return (
                f"No difference between {each.score.name} ({_mean(each, comparison)}) and {recorded.score.name} "
                f"({_mean(recorded, comparison)}) can be told ({why}), with {_left(each, comparison)} against "
                f"{_left_too(recorded, comparison)}{rest}."
            )
    mean = lead_of(comparison).mean
    next_best = min(others, key=lambda c: _or_endless(c.told(mean).value))
    return (
        f"No variant {did} better than {recorded.score.name} ({_waited(recorded, comparison)}) without refusing more; "
        f"the nearest is {next_best.score.name} at {_waited(next_best, comparison)}."
    )


def _better(best: Compared, comparison: Comparison) -> str:
    recorded, lead = comparison.variants[0], lead_of(comparison)
    mean, was = best.told(lead.mean), recorded.told(lead.mean)
    share = 100.0 * (mean.difference or 0.0) / was.value if was.value else 0.0
    between, why = mean.difference_interval, alike(best, comparison)
    best_of_all = f"{best.score.name} was best" if comparison.met else f"{best.score.name} would have been best"
    left = f"{_left(best, comparison)} against {_left_too(recorded, comparison)}"
    if why is not None:
        return (
            f"{best_of_all} by what it serves: {left} of {recorded.score.name}; no difference in the mean can be told, "
            f"{_mean(best, comparison)} against {_ms(was)} ({why})."
        )
    sure = (
        "without an interval"
        if between is None
        else f"95 % interval of the difference {between.low:+.1f} to {between.high:+.1f} ms"
    )
    return (
        f"{best_of_all}: {_mean(best, comparison)} against {_ms(was)} of {recorded.score.name} ({share:+.1f} %; "
        f"{sure}), with {left}."
    )


def _price(best: Compared, comparison: Comparison) -> str:
    recorded, tail = comparison.variants[0], lead_of(comparison).p99
    moved, cold, p99 = (best.told(n).value for n in ("moved_percent_a_minute", "cold_percent", tail))
    lost = f"costs {_or_dash(cold)} % of requests their KV cache"
    told = f"{best.score.name} moves {_or_dash(moved)} % of the traffic a minute and {lost}"
    if best is recorded:
        return f"{told}; its p99 is {_or_dash(p99, 0)} ms."
    was = [recorded.told(n).value for n in ("moved_percent_a_minute", "cold_percent", tail)]
    return (
        f"{told} ({recorded.score.name}: {_or_dash(was[0])} % and {_or_dash(was[1])} %); "
        f"its p99 is {_or_dash(p99, 0)} ms against {_or_dash(was[2], 0)} ms."
    )


def _trust(comparison: Comparison) -> str:
    parts: list[str] = []
    if comparison.met:
        scores = ", ".join(f"{c.score.name} {_ms(c.told('mean_ms'))}" for c in comparison.variants)
        parts.append(f"the profiles alone would have scored {scores}")
    parts.append(comparison.calibration.sentence)
    error = f"{100.0 * comparison.settings.profile_error:.0f} %"
    if len(comparison.variants) > 1:
        holds = "stays" if comparison.order_holds else "does NOT stay"
        order = "the order of the scores" if comparison.met else "the order of the variants"
        parts.append(f"{order} {holds} the same if profiles are {error} slower or faster")
    outside = max((c.told("unmeasured_percent").value or 0.0) for c in comparison.variants)
    if outside >= 1.0:
        parts.append(f"up to {outside:.0f} % of the traffic ran at loads that no profile was measured at")
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _waited(compared: Compared, comparison: Comparison) -> str:
    return f"{_mean(compared, comparison)}, with {_left(compared, comparison)}"


def _mean(compared: Compared, comparison: Comparison) -> str:
    mean = _ms(compared.told(lead_of(comparison).mean))
    return f"{mean} for its simulated users" if comparison.met else f"{mean} end to end (scored)"


def _left(compared: Compared, comparison: Comparison) -> str:
    """Say what was left unserved; of a simulation by whom."""
    if comparison.met:
        shed, failed = (compared.told(name).value or 0.0 for name in ("met_shed_percent", "met_failed_percent"))
        return f"{shed:.2f} % shed and {failed:.2f} % failed"
    return f"{compared.told('unserved_percent').value or 0.0:.2f} % of requests unserved"


def _left_too(compared: Compared, comparison: Comparison) -> str:
    """Say the same of the one that it is held against, shorter."""
    names = ("met_shed_percent", "met_failed_percent") if comparison.met else ("unserved_percent",)
    return " and ".join(f"{compared.told(name).value or 0.0:.2f} %" for name in names)


def _ms(told: Told) -> str:
    return "no served request" if told.value is None else f"{five_digits(told.value):,.0f} ms"


def _or_dash(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{five_digits(value):,.{digits}f}"


def _or_endless(value: float | None) -> float:
    return float("inf") if value is None else value
