"""Kafka at a command's edge: options that no client takes, a broker that does not answer, topics that are not there.

Each becomes one sentence with the key or the address, the client's own reason, and what to do; never a traceback.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from headrace.schemas.bus.clients import admin_client, consumer_options, producer_options
from headrace.schemas.bus.settings import KafkaSettings
from headrace.schemas.errors import HeadraceError

ANSWER_TIMEOUT_S = 5.0
MAX_TOPICS_NAMED = 10

_UNKNOWN = re.compile(r'No such configuration property: "([^"]+)"')
_PREFIX = re.compile(r"^Failed to create \w+( client)?: ")
_COMMON_OPTIONS = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.username",
    "sasl.password",
    "sasl.oauthbearer.config",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "enable.ssl.certificate.verification",
    "socket.timeout.ms",
    "message.timeout.ms",
    "fetch.min.bytes",
    "linger.ms",
    "compression.type",
    "reconnect.backoff.max.ms",
)
"""Options that people set by hand: those that a misspelt one may have meant."""


class KafkaFailedError(HeadraceError):
    """A Kafka client could not be made, or failed in a way that no caller expected."""


class UnreachableError(HeadraceError):
    """The broker does not answer; the message holds its address and what the client said last."""


class MissingTopicError(HeadraceError):
    """The broker answers, but a topic is not there."""


def client_problems(kafka: KafkaSettings) -> tuple[str, ...]:
    """Make each kind of client as the commands do, and give what librdkafka refuses; no broker is asked."""
    makers: tuple[Callable[[], object], ...] = (
        lambda: admin_client(kafka),
        lambda: Consumer(consumer_options(kafka)),
        lambda: Producer(producer_options(kafka)),
    )
    return tuple(dict.fromkeys(problem for make in makers if (problem := _problem(make, kafka)) is not None))


def failure_of(error: BaseException, kafka: KafkaSettings | None = None) -> KafkaFailedError | None:
    """Give an exception of the Kafka client as a message with key or address, and advice; None where it is none."""
    if not isinstance(error, KafkaException):
        return None
    first = _first(error)
    if isinstance(first, KafkaError) and first.code() == KafkaError._INVALID_ARG:  # noqa: SLF001 - librdkafka's name for its local error
        return KafkaFailedError(_option_problem(first.str(), kafka))
    address = "kafka" if kafka is None else kafka.bootstrap_servers
    return KafkaFailedError(f"{address}: {reason_of(error)}; `headrace topics diff` says whether the broker answers")


def reason_of(error: KafkaException) -> str:
    """Give the client's own sentence."""
    first = _first(error)
    return first.str() if isinstance(first, KafkaError) else str(first)


def require_topics(
    kafka: KafkaSettings, names: Iterable[str], timeout_s: float = ANSWER_TIMEOUT_S, *, ours: bool = True
) -> None:
    """Return where the broker answers and has these topics; `ours` are those that `headrace topics apply` creates.

    Raises:
        UnreachableError: it did not answer within `timeout_s`.
        MissingTopicError: it answered, and has not all of them.
    """
    said: list[str] = []
    admin = admin_client(kafka, on_error=lambda error: said.append(error.str()))
    try:
        there = admin.list_topics(timeout=timeout_s).topics
    except KafkaException as error:
        admin.poll(0.0)  # serves the callback: it knows more than the time-out does
        # "Connection refused" says more than the count of brokers that follows it.
        telling = [sentence for sentence in said if "brokers are down" not in sentence]
        last = (telling or said or [reason_of(error)])[-1]
        raise UnreachableError(f"{kafka.bootstrap_servers} does not answer: {last}") from error
    missing = [name for name in names if name not in there or there[name].error is not None]
    if missing:
        noun = "topic" if len(missing) == 1 else "topics"
        advice = "run `headrace topics apply`" if ours else _nearest_topic(missing[0], tuple(there))
        raise MissingTopicError(f"no {noun} {', '.join(missing)} at {kafka.bootstrap_servers}: {advice}")


def _nearest_topic(name: str, there: tuple[str, ...]) -> str:
    """Say which topic was probably meant, or which there are; internal ones are nobody's."""
    public = sorted(topic for topic in there if not topic.startswith("__"))
    near = get_close_matches(name, public, n=1)
    if near:
        return f"the nearest is {near[0]}"
    more = f" and {len(public) - MAX_TOPICS_NAMED} more" if len(public) > MAX_TOPICS_NAMED else ""
    return f"there are {', '.join(public[:MAX_TOPICS_NAMED])}{more}" if public else "it has no topic at all"


def _problem(make: Callable[[], object], kafka: KafkaSettings) -> str | None:
    try:
        make()
    except KafkaException as error:
        return _option_problem(reason_of(error), kafka)
    return None


def _option_problem(said: str, kafka: KafkaSettings | None) -> str:
    options: Mapping[str, str] = {} if kafka is None else kafka.options
    said = _PREFIX.sub("", said)
    unknown = _UNKNOWN.search(said)
    if unknown is not None:
        near = get_close_matches(unknown[1], _COMMON_OPTIONS, n=1)
        hint = f"the nearest is {near[0]}" if near else "they are named in librdkafka's CONFIGURATION.md"
        return f"kafka.options.'{unknown[1]}' is no option of librdkafka; {hint}"
    protocol = options.get("security.protocol", "").upper()
    if protocol.startswith("SASL") and not {"sasl.mechanism", "sasl.mechanisms"} & options.keys():
        return (
            f"kafka.options.'sasl.mechanism' is missing; kafka.options.'security.protocol' is {protocol!r}, "
            "which needs one: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
        )
    named = [name for name in options if name in said]
    where = f"kafka.options.'{named[0]}'" if named else "kafka.options"
    return f"{where}: {said}"


def _first(error: KafkaException) -> Any:  # noqa: ANN401 - whatever the client put there
    return error.args[0] if error.args else error
