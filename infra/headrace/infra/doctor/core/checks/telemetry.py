"""The topics under [bridge.sources] are there and written to, and their mappings make signals of what they hold."""

from collections.abc import Iterator

from headrace.infra.doctor.core.contract import Finding, fault, warning
from headrace.infra.doctor.core.picture import Picture, Presence, Telemetry
from headrace.infra.doctor.core.words import duration

FOLLOWS_FROM = ("brokers", "permissions")

SILENT_MS = 120_000


def check(picture: Picture, now_ms: int) -> Iterator[Finding]:
    """Give what keeps each source from telling anything."""
    for source in picture.telemetry:
        at, test = f"bridge.sources.{source.name}", f"headrace map test --topic {source.topic} {source.mapping}"
        if source.presence is Presence.MISSING:
            yield fault(
                at,
                f"{at}.topic is {source.topic}, which is missing",
                "its collector writes elsewhere, or has never written",
                "headrace bridge --dry-run --limit 1",
            )
        elif source.trial is None:
            if source.problem is not None and source.presence is Presence.THERE:
                yield warning(at, f"{at}: {source.problem}", "what it tells cannot be judged", test)
        else:
            yield from _silent(source, at, picture.setup.bootstrap_servers, now_ms)
            yield from _mapped(source, at, test)


def _silent(source: Telemetry, at: str, address: str, now_ms: int) -> Iterator[Finding]:
    read = f"kafka-console-consumer --bootstrap-server {address} --topic {source.topic} --max-messages 1"
    if source.newest_ms is None:
        yield fault(
            at,
            f"{source.topic} ({at}) holds no record",
            "its collector does not write: check its exporter's brokers and topic",
            read,
        )
    elif now_ms - source.newest_ms > SILENT_MS:
        yield fault(
            at,
            f"the newest record of {source.topic} ({at}) is {duration(now_ms - source.newest_ms)} old; at most "
            f"{duration(SILENT_MS)}",
            "its collector has stopped, or cannot reach Kafka: engines that it tells of fade and expire",
            read,
            value=now_ms - source.newest_ms,
            bound=SILENT_MS,
        )


def _mapped(source: Telemetry, at: str, test: str) -> Iterator[Finding]:
    trial = source.trial
    if trial is None or source.newest_ms is None:
        return
    readings = sum(each.readings for each in trial.fields) + trial.signals
    if not readings:
        yield fault(
            at,
            f"{at}: its mapping {trial.mapping} matches nothing in {trial.messages} records; "
            f"{'; '.join(trial.problems[:2])}",
            "the bridge reads it and publishes nothing: names have changed, or the carrier is another",
            test,
            f"headrace map init --topic {source.topic} --out mapping.yaml",
            value=0,
            bound=1,
        )
        return
    period_ms = round(1000 * max((each.period_s or 0.0 for each in trial.fields), default=0.0))
    for problem in trial.problems:
        if "solver.expired_after_ms" in problem:
            yield warning(
                at,
                f"{at}: {problem}",
                "an engine that misses a single report gets no traffic until the next",
                f"headrace solver --set solver.expired_after_ms={3 * period_ms}",
                value=period_ms,
            )
        elif "need two scrapes" not in problem:  # so few were looked at
            yield warning(at, f"{at}: {problem}", "part of what it holds is not used, or not as it is meant", test)
