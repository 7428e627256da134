"""A pool: what the program loads as one, since no request can tell its engines apart."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pool:
    """Engines that no row can tell apart. `engines` are indices into the layout's, rising.

    `alone` names an engine that a pin is about: it is a pool of its own, whatever it shares with others.
    """

    site: str
    models: tuple[str, ...]
    capabilities: tuple[str, ...]
    residency: tuple[str, ...]
    alone: str
    engines: tuple[int, ...]

    @property
    def name(self) -> str:
        """Name in records: what its engines share, without the parts that are empty."""
        parts = (self.site, "+".join(self.models), "+".join(self.capabilities), "+".join(self.residency), self.alone)
        return " ".join(part for part in parts if part)
