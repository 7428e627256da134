"""Avro in any of the three framings: our own signals by name, any other record as a document for the mapping.

Headers are looked at before the magic byte. A foreign schema comes from `options.registry`; without one, a record of
foreign schema is rejected and says so.
"""

from headrace.schemas import codec
from headrace.schemas.check_signals import Signal
from headrace.schemas.dead_letters import Rejected
from headrace.schemas.raw import RawRecord
from headrace.schemas.signals import Demand, EngineSignals, NetworkProbe
from headrace.streams.core.decode.contract import Decoded, DecodeOptions, Document

_SIGNALS: dict[str, type[Signal]] = {
    f"headrace.{kind.__name__}": kind for kind in (EngineSignals, Demand, NetworkProbe)
}


def decode(record: RawRecord, options: DecodeOptions) -> Decoded:
    """Give the signal or the document of a message; a signal is not judged here, the fold's admission does."""
    value = record.value or b""
    read = codec.decode_plain(value, record.headers, options.registry)
    if isinstance(read, Rejected):
        return Decoded(rejects=(read,))
    name, plain = read
    kind = _SIGNALS.get(name)
    if kind is None:
        return Decoded(documents=(Document(plain, record.timestamp_ms, 0),))
    # Read again with our own schema as the reader's: an older writer's record gains the fields it lacks.
    signal = codec.decode(kind, value, record.headers, options.registry)
    return Decoded(rejects=(signal,)) if isinstance(signal, Rejected) else Decoded(signals=(signal,))
