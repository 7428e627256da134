"""Which dead letters are wanted: by where they came from, why they were refused, and since when."""

from dataclasses import dataclass

from headrace.infra.configuration.tree import nearest
from headrace.infra.weights_tail.since import parse_since
from headrace.schemas.dead_letters import DeadLetter, RejectReason
from headrace.schemas.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Choice:
    """Empty = all. `since_ms` is held against the time of the refusal: that of the dead letter's own record."""

    topics: frozenset[str] = frozenset()
    reasons: frozenset[RejectReason] = frozenset()
    since_ms: int = 0

    def takes(self, letter: DeadLetter, refused_ms: int) -> bool:
        """Say whether a dead letter is wanted."""
        return (
            refused_ms >= self.since_ms
            and (not self.topics or letter.topic in self.topics)
            and (not self.reasons or letter.reason in self.reasons)
        )


def parse_choice(topics: tuple[str, ...], reasons: tuple[str, ...], since: str | None, now_ms: int) -> Choice:
    """Read what was asked for; reasons in any case.

    Raises:
        InvalidInputError: with every reason that is none (and the nearest), and a `since` that is no age or instant.
    """
    known = [reason.value for reason in RejectReason]
    problems = [
        f"--reason is {text!r}; {nearest(text.upper(), known)}" for text in reasons if text.upper() not in known
    ]
    since_ms = 0
    if since is not None:
        try:
            since_ms = parse_since(since, now_ms, "dead-letters", versions=False).at_ms
        except InvalidInputError as error:
            problems += error.problems
    if problems:
        raise InvalidInputError("dead-letters", tuple(problems))
    return Choice(frozenset(topics), frozenset(RejectReason(text.upper()) for text in reasons), since_ms)
