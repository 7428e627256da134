"""Engines that publish are in the fleet under the same name, however few of their signals there are."""

from collections.abc import Iterator

from headrace.infra.doctor.core.checks import dead_letters
from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.mending import PUBLISH_FLEET
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import some
from headrace.schemas.dead_letters import RejectReason

FOLLOWS_FROM = ("brokers", "fleet")


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give the engines that the fleet does not have; none where the check `dead_letters` tells of them already."""
    if picture.view is None or dead_letters.dominant(picture, now_ms) is RejectReason.UNKNOWN_ENGINE:
        return
    known = {key.decode("utf-8", "replace") for key in picture.view.specs}
    # One that was added since is no stranger any more.
    unknown = dead_letters.strangers(picture, now_ms) - known
    if not unknown:
        return
    has = f"which has {some(known)}" if known else "which has no engine"
    # With no state at all it is why nothing works; beside engines that are heard it is one that was taken out, perhaps.
    say = warning if picture.view.engines else fault
    yield say(
        min(unknown) if len(unknown) == 1 else "engine_id",
        f"engines publish that the fleet does not have ({has}): {some(unknown)}",
        "their signals count for nothing; engine_id must be the same in fleet and signals: name them the same in the "
        "fleet file, or by values.engine of the mapping",
        *PUBLISH_FLEET,
        value=len(unknown),
        bound=0,
    )
