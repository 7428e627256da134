"""The schema registry answers, where one is configured."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, fault
from headrace.infra.doctor.core.picture import Picture


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:  # noqa: ARG001 - the contract's
    """Give why the registry does not answer."""
    if picture.registry_problem is None:
        return
    url = picture.setup.registry_url
    yield fault(
        url,
        f"registry.url is {url}, which cannot be asked: {picture.registry_problem}",
        "records in Confluent framing wait for it: their workers stand still until it answers",
        f"curl -fsS {url}/subjects",
    )
