"""No freeze is in force: weights follow engines and demand."""

from collections.abc import Iterator

from headrace.infra.doctor.core.checks.overrides import again, judged, take_back
from headrace.infra.doctor.core.contract import Finding, warning
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import duration
from headrace.schemas.overrides import OverrideKind

FOLLOWS_FROM = ("brokers",)


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give a freeze that holds, and what is to be said of its end."""
    if picture.view is None:
        return
    for override in picture.view.overrides.values():
        if override.kind is not OverrideKind.FREEZE:
            continue
        if override.holds(now_ms):
            yield warning(
                override.target,
                f"all weights are frozen {override.words}; {duration(override.expires_ms - now_ms)} to go",
                "nothing moves for demand, load or latency; engines that are known to be gone still lose their traffic",
                take_back(override),
                value=override.expires_ms - now_ms,
                bound=0,
            )
        yield from judged(override, now_ms, again(override))
