"""Settings of the console, with their bounds. Pure: `headrace.infra.configuration` reads them from `headrace.toml`."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """Settings of one console.

    Attributes:
        host: address to listen at; any but a loopback one needs `token_file`.
        port: port to listen at; 0 is any free one, said in the log.
        token_file: file whose first line is the token that opens the page; none: whoever reaches the port may look.
        hosts: names under which a browser may ask for it, beside `host` and the loopback ones: those of a proxy.
        tls_certificate_file: PEM chain; with it the console speaks TLS only.
        tls_key_file: PEM key of that certificate.
        history_ms: how far back versions are read when it starts.
        max_versions: versions held.
        max_parts: parts of versions held (targets, exclusions, fallbacks, protections), some 600 bytes each.
        recent_ms: how far back engines' own words are read when it starts; who was silent for longer says nothing.
        session_ms: how long a browser that gave the token need not give it again.
        max_clients: pages that follow live at once; more are told to come back.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Ge(0), Le(65_535)] = 8_090
    token_file: str | None = None
    hosts: tuple[str, ...] = ()
    tls_certificate_file: str | None = None
    tls_key_file: str | None = None
    history_ms: Annotated[int, Ge(10_000), Le(7 * 86_400_000)] = 1_800_000
    max_versions: Annotated[int, Ge(2), Le(1_000_000)] = 7_200
    max_parts: Annotated[int, Ge(1_000), Le(100_000_000)] = 1_000_000
    recent_ms: Annotated[int, Ge(10_000), Le(7 * 86_400_000)] = 600_000
    session_ms: Annotated[int, Ge(60_000), Le(30 * 86_400_000)] = 43_200_000
    max_clients: Annotated[int, Ge(1), Le(10_000)] = 64
