"""The source of functions made from a schema and its dataclass: what a record's reader and its writer are built of."""

from typing import Any

from headrace.schemas.avro_schemas import AvroSchema


class RecordSource:
    """Lines of source, and what they name. One of these makes a record's function and those of the records inside."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._names: dict[str, Any] = {}
        self._named: dict[str, AvroSchema] = {}
        self._made: set[str] = set()

    def built(self, name: str, **known: object) -> object:
        """Give the function of this name; `known` is what the lines call."""
        found: dict[str, Any] = {**known, **self._names}
        exec("\n".join(self._lines), found)  # noqa: S102 - source of our own making, from the schemas that ship with it
        return found[name]

    def _begun(self, name: str, avro: AvroSchema) -> bool:
        """Note a record's schema by its name; say whether its function was begun before."""
        self._named[avro["name"]] = avro
        begun = name in self._made
        self._made.add(name)
        return begun

    def _name(self, value: object) -> str:
        """Give a name by which the lines have a value."""
        name = f"n{len(self._names)}_"
        self._names[name] = value
        return name
