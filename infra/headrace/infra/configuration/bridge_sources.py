"""The bridge's sources made ready: mapping files read and checked, all problems of all sources at once."""

from dataclasses import replace
from pathlib import Path

from headrace.infra.configuration.entry_point import load_rewrite
from headrace.schemas.codec import SchemaSource
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.signals import Vantage
from headrace.streams.bridge.settings import BridgeSettings, SourceSettings
from headrace.streams.bridge.worker import Source
from headrace.streams.core.canonical.translator import Translator
from headrace.streams.core.decode.contract import DecodeOptions
from headrace.streams.core.decode.edge import decoder
from headrace.streams.core.mapping.model import TelemetryMapping
from headrace.streams.core.mapping.parse import load_preset, parse_mapping


def read_sources(settings: BridgeSettings, registry: SchemaSource | None = None) -> tuple[Source, ...]:
    """Read every source's mapping.

    Raises:
        InvalidInputError: with every problem of every source.
    """
    problems: list[str] = []
    found: list[Source] = []
    for name, source in settings.sources.items():
        try:
            found.append(Source(name, source.topic, source_translator(source, registry)))
        except InvalidInputError as error:
            at = f"bridge.sources.{name}: {source.mapping}" if source.mapping else f"bridge.sources.{name}"
            problems += [f"{at}: {problem}" for problem in error.problems]
    if not settings.sources:
        problems.append(
            "bridge.sources is empty; write [bridge.sources.NAME] with topic, carrier, and mapping or preset"
        )
    if problems:
        raise InvalidInputError("bridge", tuple(problems))
    return tuple(found)


def read_mapping(path: Path) -> TelemetryMapping:
    """Read a mapping file.

    Raises:
        InvalidInputError: it cannot be read, or is no mapping.
    """
    try:
        document = path.read_text("utf-8")
    except OSError as error:
        raise InvalidInputError(str(path), (f"cannot be read: {error.strerror}",)) from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(str(path), (f"is no UTF-8 text: {error}",)) from error
    return parse_mapping(document, str(path))


def source_translator(source: SourceSettings, registry: SchemaSource | None) -> Translator:
    """Make one source's mapping and carrier ready.

    Raises:
        InvalidInputError: the mapping cannot be read or is none, or there is no carrier.
    """
    mapping = load_preset(source.preset) if source.preset else read_mapping(Path(source.mapping))
    if source.vantage:
        mapping = replace(mapping, vantage=Vantage(source.vantage))
    carrier = source.carrier or mapping.carrier
    if carrier is None:
        raise InvalidInputError("carrier", ("carrier is missing, and the mapping names none",))
    decoder(carrier)
    rewrite = None if mapping.python is None else load_rewrite(mapping.python)
    return Translator(mapping, DecodeOptions(carrier, registry=registry), rewrite)
