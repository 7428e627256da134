"""Says an override: what it would break is told with the numbers, and refused; what holds is published.

override ──► sound? ──► the newest tick, solved again with it ──► rules ──► published
"""

from collections.abc import Sequence

from headrace.infra.configuration.config import Config
from headrace.infra.fleet_records.topics import publish_records, read_fleet
from headrace.infra.overrides.records import sound
from headrace.infra.overrides.rules import Broken, Stands, broken_rules
from headrace.infra.past_tick.again import NotDecidedError, compute_again
from headrace.infra.past_tick.find import NoTickError, find_tick
from headrace.infra.past_tick.wanted import Wanted
from headrace.infra.what_if.answer import what_if
from headrace.infra.what_if.edits import Asked, Edit, parse_edits, pinned
from headrace.schemas.codec import encode
from headrace.schemas.errors import HeadraceError
from headrace.schemas.overrides import Override, OverrideKind
from headrace.schemas.topics import FLEET, topic_table
from headrace.schemas.weights import PPM
from headrace.solver.core.problem import Pin, Problem
from headrace.solver.glop import Glop


def say(config: Config, override: Override, *, force: bool = False) -> None:
    """Publish an override; it counts from the solver's next tick on.

    Raises:
        InvalidInputError: it is not sound.
        HeadraceError: it would break what must hold, or what `force` does not go beyond; the message has the numbers.
        UnreachableError, MissingTopicError, UnpublishedError: it did not reach the topic.
    """
    sound(override)
    refused = refusal(broken_rules(_stands(config, override), override), force=force)
    if refused is not None:
        raise HeadraceError(refused)
    publish_records(config.kafka, [(topic_table(config.topics)[FLEET].name, override.key, encode(override))])


def refusal(broken: Sequence[Broken], *, force: bool) -> str | None:
    """Say why an override is refused, all reasons at once; None where it is not."""
    against = [each for each in broken if not (force and each.forceable)]
    if not against:
        return None
    anyway = "; --force does it all the same" if all(each.forceable for each in against) else ""
    return f"refused: {'; '.join(each.sentence for each in against)}{anyway}"


def edit_of(override: Override, problem: Problem) -> tuple[Edit, ...]:
    """Give what an override makes of a problem; nothing for a freeze, or where it is about nobody there."""
    if override.target not in {engine.engine_id for engine in problem.engines}:
        return ()
    if override.kind is OverrideKind.DRAIN:
        return parse_edits(Asked(drain=(override.target,)), problem)
    if override.cluster is None or override.least_ppm is None or override.most_ppm is None:
        return ()
    words = f"pinned to {override.share_words} {override.words}"
    pin = Pin(override.cluster, override.target, override.least_ppm / PPM, override.most_ppm / PPM, words)
    return (pinned(pin, override.share_words),)


def _stands(config: Config, override: Override) -> Stands:
    """Read what stands, and solve the newest tick again with the override."""
    fleet, lp = tuple(e.engine_id for e in read_fleet(config.kafka, config.topics).engines), Glop()
    if override.kind is OverrideKind.FREEZE:
        return Stands(fleet)
    try:
        found, _ = find_tick(config, Wanted(), override.made_ms)
        again = compute_again(found, lp)
    except (NoTickError, NotDecidedError) as error:
        return Stands(fleet, not_told=str(error))
    commit, edits = found.recorded.snapshot.commit, edit_of(override, again.problem)
    if again.tick.decision is None:
        return Stands(fleet, again.problem, not_told=f"{commit.status}, {commit.sentence}")
    answer = what_if(again, edits, found.settings, lp, proved=found.proved) if edits else None
    return Stands(fleet, again.tick.decision.layout.problem, answer)
