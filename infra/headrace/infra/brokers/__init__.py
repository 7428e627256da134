"""Brokers behind one small interface: each file adds one kind, under its name, by a function `create(**options)`."""

import importlib
import pkgutil
from typing import Any

from headrace.infra.brokers.contract import Broker
from headrace.schemas.errors import InvalidInputError

_NOT_A_KIND = ("contract", "java", "kafka_jars", "ready")


def broker_kinds() -> tuple[str, ...]:
    """Give the names of the kinds, sorted."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in _NOT_A_KIND))


def start_broker(kind: str, **options: Any) -> Broker:  # noqa: ANN401 - each kind's `create` types its own options
    """Start a broker of that kind and wait until it answers.

    Args:
        kind: a file's name in this folder.
        options: what that kind's `create` takes, for example `port=9092`.

    Raises:
        InvalidInputError: there is no such kind; the message names those there are.
        BrokerError: it could not be started; the message says why and what to do.
    """
    if kind not in broker_kinds():
        raise InvalidInputError("broker", (f"kind is {kind!r}; kinds are {', '.join(broker_kinds())}",))
    module = importlib.import_module(f"{__name__}.{kind}")
    broker: Broker = module.create(**options)
    broker.start()
    return broker
