"""Every engine's latency profile is known, and every published profile is one that the solver believes."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.mending import REFIT
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import count, some
from headrace.schemas.topics import PROFILES

FOLLOWS_FROM = ("brokers",)


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give each profile that is refused, and each that engines name and nobody has published."""
    name = picture.setup.table[PROFILES].name
    refused: dict[str, str] = {}
    for each in picture.refused:
        if each.topic == name:
            refused[(each.key or b"(no key)").decode("utf-8", "replace")] = f"{each.reason}: {each.detail}"
    for profile_id, detail in sorted(refused.items()):
        yield fault(
            profile_id,
            f"profile {profile_id} is refused: {detail[:300]}",
            "the solver goes on with the one before it, or with none",
            *REFIT,
        )
    if picture.view is None:
        return
    lacking: dict[str, list[str]] = {}
    for spec in picture.view.specs.values():
        if spec.profile_id.encode() not in picture.view.profiles:
            lacking.setdefault(spec.profile_id, []).append(spec.engine_id)
    for profile_id, engines in sorted(lacking.items()):
        stated = all(
            spec.capacity_rps_per_replica is not None
            for spec in picture.view.specs.values()
            if spec.profile_id == profile_id
        )
        say = warning if stated else fault
        yield say(
            profile_id,
            f"profile {profile_id} of {count(len(engines), 'engine')} is not published: {some(engines)}",
            "they are taken to be as slow as the slowest one when full: a last choice"
            if stated
            else "they get no traffic: neither their speed nor their capacity is known",
            *REFIT,
        )
