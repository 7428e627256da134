"""The fleet is published: there are engines, each with a model."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.mending import PUBLISH_FLEET
from headrace.infra.doctor.core.picture import Picture
from headrace.infra.doctor.core.words import some
from headrace.schemas.topics import FLEET

FOLLOWS_FROM = ("brokers", "topics", "permissions", "records")


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give a fleet that is empty, and models that are asked for and that no engine serves."""
    if picture.view is None or picture.topic(FLEET) is None or not picture.was_read(FLEET):
        return
    specs = picture.view.specs.values()
    if not specs:
        yield fault(
            "fleet",
            f"{picture.setup.table[FLEET].name} holds 0 engines; at least 1",
            "there is nothing to route to, and signals of engines that it does not have are refused",
            *PUBLISH_FLEET,
            value=0,
            bound=1,
        )
        return
    served = {model for spec in specs for model in spec.models}
    asked = {state.model for state in picture.view.demands.values() if state.smoothed_rps}
    if asked - served:
        yield warning(
            some(asked - served),
            f"no engine serves what is asked for: {some(asked - served)}; there are {some(served)}",
            "those requests are refused",
            *PUBLISH_FLEET,
        )
