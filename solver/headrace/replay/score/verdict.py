"""The verdict of a comparison in three sentences: who is best, at what price, and how far to believe it.

Best is the least mean latency among those that leave no more unserved than the recorded policy (by a tenth of a percent
of all requests): a policy that refuses the slow half is not fast. A mean that cannot be told apart from the recorded
one's, by its size, by chance or with profiles that are off, makes nobody best, unless less is left unserved.
"""

from headrace.replay.score.comparison import Compared, Comparison, Told
from headrace.replay.score.digits import five_digits
from headrace.replay.score.sums import Of
from headrace.replay.score.told_apart import alike, less_unserved


def best_of(comparison: Comparison) -> Compared:
    """Give the best variant, the recorded one among the candidates."""
    recorded = comparison.variants[0]
    for each in _nearest(comparison):
        if each is recorded:
            break
        if less_unserved(each, recorded) or alike(each, comparison) is None:
            return each
    return recorded


def _nearest(comparison: Comparison) -> list[Compared]:
    """Give those that leave no more unserved than the recorded one, by rising mean; of equals it comes first."""
    recorded = comparison.variants[0]
    able = [c for c in comparison.variants if not less_unserved(recorded, c)]
    return sorted(able, key=lambda c: (_or_endless(c.told("mean_ms").value), c is not recorded))


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
    return (_better(best, comparison), _price(best, recorded), _trust(comparison))


def _alone(recorded: Compared) -> str:
    name, mean = recorded.score.name, recorded.told("mean_ms")
    return f"{name} is expected at {_ms(mean)} end to end, with {_unserved(recorded)} % of requests unserved."


def _nobody(comparison: Comparison) -> str:
    recorded, others = comparison.variants[0], comparison.variants[1:]
    able = [each for each in _nearest(comparison) if each is not recorded]
    rest = "; no other variant would have done better" if len(able) > 1 else ""
    for each in able:
        why = alike(each, comparison)
        if why is not None:
            return (
                f"No difference between {each.score.name} ({_ms(each.told('mean_ms'))} end to end) and "
                f"{recorded.score.name} ({_ms(recorded.told('mean_ms'))}) can be told ({why}), with "
                f"{_unserved(each)} % of requests unserved against {_unserved(recorded)} %{rest}."
            )
    next_best = min(others, key=lambda c: _or_endless(c.told("mean_ms").value))
    return (
        f"No variant would have done better than {recorded.score.name} ({_ms(recorded.told('mean_ms'))} end to end) "
        f"without refusing more; the nearest is {next_best.score.name} at {_ms(next_best.told('mean_ms'))} with "
        f"{_unserved(next_best)} % unserved."
    )


def _better(best: Compared, comparison: Comparison) -> str:
    recorded = comparison.variants[0]
    mean, was = best.told("mean_ms"), recorded.told("mean_ms")
    share = 100.0 * (mean.difference or 0.0) / was.value if was.value else 0.0
    between, why = mean.difference_interval, alike(best, comparison)
    if why is not None:
        return (
            f"{best.score.name} would have been best by what it serves: {_unserved(best)} % of requests unserved "
            f"against {_unserved(recorded)} % of {recorded.score.name}; no difference in the mean can be told, "
            f"{_ms(mean)} end to end against {_ms(was)} ({why})."
        )
    sure = (
        "the run is too short for an interval"
        if between is None
        else f"95 % interval of the difference {between.low:+.1f} to {between.high:+.1f} ms"
    )
    return (
        f"{best.score.name} would have been best: {_ms(mean)} end to end against {_ms(was)} of {recorded.score.name} "
        f"({share:+.1f} %; {sure}), with {_unserved(best)} % of requests unserved against {_unserved(recorded)} %."
    )


def _price(best: Compared, recorded: Compared) -> str:
    moved, cold, p99 = (best.told(n).value for n in ("moved_percent_a_minute", "cold_percent", "p99_ms"))
    lost = f"costs {_or_dash(cold)} % of requests their KV cache"
    told = f"{best.score.name} moves {_or_dash(moved)} % of the traffic a minute and {lost}"
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
    return "no served request" if told.value is None else f"{five_digits(told.value):,.0f} ms"


def _unserved(compared: Compared) -> str:
    return f"{compared.told('unserved_percent').value or 0.0:.2f}"


def _or_dash(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{five_digits(value):,.{digits}f}"


def _or_endless(value: float | None) -> float:
    return float("inf") if value is None else value
