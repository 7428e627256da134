"""`decode(record, options)`: the one way in. Whatever bytes come, the outcome is a Decoded; nothing raises.

Looked at in this order: is there a value, is it small enough, is it a CloudEvents envelope, what does the carrier say.
"""

import importlib
import pkgutil
from functools import cache

from headrace.schemas.dead_letters import RejectReason
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.raw import RawRecord
from headrace.streams.core import decode as package
from headrace.streams.core.decode.cloudevents import unwrap
from headrace.streams.core.decode.contract import Decoded, DecodeOptions, Decoder, Refusal, rejected

_NOT_CARRIERS = ("cloudevents", "contract", "edge", "families", "otlp_points", "otlp_wire", "telegraf", "values")


@cache
def carriers() -> tuple[str, ...]:
    """Give the names of all carriers: the files of this folder that are one."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(package.__path__) if m.name not in _NOT_CARRIERS))


@cache
def decoder(carrier: str) -> Decoder:
    """Give the decoder of that name.

    Raises:
        InvalidInputError: there is none.
    """
    if carrier not in carriers():
        raise InvalidInputError("carrier", (f"carrier is {carrier!r}; there are {', '.join(carriers())}",))
    found: Decoder = importlib.import_module(f"{package.__name__}.{carrier}").decode
    return found


def decode(record: RawRecord, options: DecodeOptions) -> Decoded:
    """Give what a message holds. A message that holds nothing usable has a reject; one may have points and rejects.

    Raises:
        InvalidInputError: `options.carrier` names no carrier: a mistake of configuration, not of a message.
    """
    read = decoder(options.carrier)
    if record.value is None:
        return rejected(RejectReason.MALFORMED, "value is null: a tombstone holds no telemetry")
    if not record.value:
        return rejected(RejectReason.MALFORMED, "value is empty")
    if len(record.value) > options.max_bytes:
        return rejected(RejectReason.TOO_LARGE, f"value has {len(record.value)} bytes; at most {options.max_bytes}")
    try:
        return read(unwrap(record), options)
    except Refusal as refusal:
        return Decoded(rejects=(refusal.rejected,))
    except Exception as error:  # noqa: BLE001 - hostile bytes raise nearly anything inside a parser
        return rejected(RejectReason.MALFORMED, f"no {options.carrier}: {type(error).__name__}: {error}")
