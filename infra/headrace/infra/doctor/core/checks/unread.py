"""All that is judged could be read in time."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, warning
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import some

FOLLOWS_FROM = ("brokers", "permissions")


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give what could not be had, by reason."""
    reasons: dict[str, list[str]] = {}
    for each in picture.unread:
        reasons.setdefault(each.reason, []).append(each.part)
    for reason, parts in reasons.items():
        yield warning(
            some(parts),
            f"not looked at: {some(parts)}: {reason}",
            "what checks make of it is not known; that nothing else is said of it does not mean that it is right",
            "headrace doctor --timeout 120" if "time" in reason else "headrace doctor --only brokers,permissions",
        )
