"""A schema registry that is asked until it fails once: a doctor does not wait for each record's schema anew."""

from collections.abc import Callable
from dataclasses import replace

from headrace.schemas.avro_schemas import AvroSchema
from headrace.schemas.bus.settings import RegistrySettings
from headrace.schemas.codec import SchemaSource
from headrace.schemas.errors import HeadraceError

ANY_ID = 1


class BoundedRegistry:
    """Looks schemas up; after the first failure it knows none, and `problem` says why."""

    def __init__(self, source: SchemaSource) -> None:
        self._source = source
        self.problem: str | None = None

    def by_id(self, schema_id: int) -> AvroSchema | None:
        """Give the schema with this id, or None."""
        return self._asked(lambda: self._source.by_id(schema_id))

    def by_guid(self, guid: bytes) -> AvroSchema | None:
        """Give the schema with this GUID, or None."""
        return self._asked(lambda: self._source.by_guid(guid))

    def _asked(self, ask: Callable[[], AvroSchema | None]) -> AvroSchema | None:
        if self.problem is not None:
            return None
        try:
            return ask()
        except HeadraceError as error:
            self.problem = str(error)
            return None


def open_registry(settings: RegistrySettings) -> BoundedRegistry | None:
    """Give the configured registry, asked once whether it answers; None where none is configured."""
    if not settings.url:
        return None
    from headrace.schemas.bus.registry import Registry  # noqa: PLC0415 - an optional extra

    # Asked once: a registry that hangs would else be waited for several times over.
    once = replace(settings, options={**settings.options, "max.retries": "0"})
    registry = BoundedRegistry(Registry(once))
    registry.by_id(ANY_ID)
    return registry
