"""Writer schemas from a Confluent schema registry, for records in Confluent framing. Needs the extra `registry`.

found        kept for ever: an id never changes its schema
not found    kept for UNKNOWN_FOR_S, so that a stream of bad records does not become a stream of requests
away         RegistryAwayError: the record is neither good nor bad yet, so it must not be dead-lettered
"""

import json
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from fastavro.schema import SchemaParseException

from headrace.schemas.avro_schemas import AvroSchema, parse
from headrace.schemas.bus.settings import RegistrySettings
from headrace.schemas.errors import HeadraceError, InvalidInputError

UNKNOWN_FOR_S = 30.0
MAX_UNKNOWN = 10_000
REQUEST_TIMEOUT_S = 5.0

_NOT_FOUND = 404
_NUMBERS = (
    "timeout",
    "max.retries",
    "retries.wait.ms",
    "retries.max.wait.ms",
    "cache.capacity",
    "cache.latest.ttl.sec",
)


class RegistryAwayError(HeadraceError):
    """The registry could not be asked, or answered with an error that says nothing about the schema."""


class Registry:
    """A `headrace.schemas.codec.SchemaSource` over a schema registry. It connects when first asked.

    One thread at a time. Schemas that are no Avro, or that refer to others, count as not found.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._client: SchemaRegistryClient | None = None
        self._found: dict[str, AvroSchema] = {}
        self._unknown: dict[str, float] = {}

    def __reduce__(self) -> tuple[type["Registry"], tuple[RegistrySettings]]:
        """Travel to another process as a registry that has not been asked yet."""
        return Registry, (self._settings,)

    def by_id(self, schema_id: int) -> AvroSchema | None:
        """Give the schema with this registry id, or None where the registry has none.

        Raises:
            RegistryAwayError: the registry could not be asked.
            InvalidInputError: its client does not take the settings.
        """
        return self._look_up(f"id {schema_id}", lambda client: client.get_schema(schema_id))

    def by_guid(self, guid: bytes) -> AvroSchema | None:
        """Give the schema with this 16-byte GUID, or None where the registry has none.

        Raises:
            RegistryAwayError: the registry could not be asked.
        """
        text = guid.hex()
        dashed = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
        return self._look_up(f"GUID {dashed}", lambda client: client.get_schema_by_guid(dashed))

    def _look_up(self, name: str, ask: Callable[[SchemaRegistryClient], Schema]) -> AvroSchema | None:
        if name in self._found:
            return self._found[name]
        if self._unknown.get(name, 0.0) > time.monotonic():
            return None
        if self._client is None:
            self._client = _made(self._settings)
        try:
            found = ask(self._client)
        except SchemaRegistryError as error:
            if error.http_status_code != _NOT_FOUND:
                raise RegistryAwayError(f"{self._settings.url}: {name}: {error}") from error
            self._remember_unknown(name)
            return None
        except Exception as error:  # the HTTP library, and so its errors, differs between the client's versions
            raise RegistryAwayError(f"{self._settings.url}: {name}: {error}") from error
        if found.schema_type not in (None, "AVRO") or found.references or found.schema_str is None:
            self._remember_unknown(name)
            return None
        try:
            # Parsed here, once: a record must not pay for its schema again.
            self._found[name] = parse(json.loads(found.schema_str))
        except (ValueError, SchemaParseException):
            self._remember_unknown(name)
            return None
        return self._found[name]

    def _remember_unknown(self, name: str) -> None:
        if len(self._unknown) >= MAX_UNKNOWN:
            self._unknown.clear()
        self._unknown[name] = time.monotonic() + UNKNOWN_FOR_S


def _made(settings: RegistrySettings) -> SchemaRegistryClient:
    try:
        return SchemaRegistryClient(client_options(settings))
    except (ValueError, TypeError) as error:  # what the client raises for a URL or an option that it does not take
        problem = f"registry.url is {settings.url!r} with options {', '.join(settings.options) or 'none'}: {error}"
        raise InvalidInputError("registry", (problem,)) from error


def client_options(settings: RegistrySettings) -> dict[str, Any]:
    """Give the registry client's options; those that are numbers to it are read from their text.

    Raises:
        ValueError: such an option is no number.
    """
    options: dict[str, Any] = {"url": settings.url, "timeout": REQUEST_TIMEOUT_S, **settings.options}
    return {name: float(value) if name in _NUMBERS else value for name, value in options.items()}
