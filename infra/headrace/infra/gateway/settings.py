"""Settings of the gateway, with their bounds. Pure: `headrace.infra.configuration` reads them from `headrace.toml`.

Everything that a client or an engine could make large or slow has a bound here: bodies, headers, connections, requests
in flight, and the time of each phase of a request.

    ── connect_s ──► ── first_byte_s ──► ── idle_s between two chunks ──► ...            all of it within total_s
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge, Gt, Le

Seconds = Annotated[float, Gt(0), Le(86_400)]
Bytes = Annotated[int, Ge(1_024), Le(1 << 40)]
HeaderName = str

ANY_ENGINE = "*"
"""Key in `gateway.engines` for what holds for every engine without an entry of its own."""


@dataclass(frozen=True, slots=True)
class EngineAccess:
    """How one engine is reached.

    Attributes:
        address: base URL, over whatever address the snapshot has.
        alias: what clients, metrics and logs call it; default: its id, or a hash where the id holds an address.
        auth_header: header that carries the credential.
        auth_env: environment variable that holds the credential.
        auth_file: file that holds it, read at start. `Bearer ` is put before a bare word in `authorization`.
    """

    address: str | None = None
    alias: str | None = None
    auth_header: HeaderName = "authorization"
    auth_env: str | None = None
    auth_file: str | None = None


@dataclass(frozen=True, slots=True)
class TrustSettings:
    """Whose tier and class headers are believed: only those of a caller that proves itself; others get the defaults.

    Attributes:
        class_header: names the request class.
        tier_header: names the tier, an integer, 0 = shed last.
        secret_file: file of shared secrets, one a line; a caller that sends one in `secret_header` is trusted.
        secret_header: carries the shared secret.
        allow: values by header; a caller that sends one of them is trusted. Only for headers that a proxy in front
            sets itself and strips from what comes from outside.
        default_class: of everyone else, and where no class is given.
        default_tier: likewise; None is the route's own.
    """

    class_header: HeaderName = "x-headrace-class"
    tier_header: HeaderName = "x-headrace-tier"
    secret_file: str | None = None
    secret_header: HeaderName = "x-headrace-trust"  # noqa: S105 - a header's name
    allow: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    default_class: str = "default"
    default_tier: Annotated[int, Ge(0), Le(1_000)] | None = None


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Settings of one gateway.

    Attributes:
        cluster: whose routes of a snapshot are used: where this gateway stands.
        host: address to listen at.
        port: port to listen at; 0 is any free one, said in the log.
        session_header: carries the session key, before anything found in the body.
        session_prefix_chars: length of the prompt's prefix that makes a completion's session.
        shared_prefix_chars: length of the prompt that all sessions share, before that prefix.
        bearer_file: file of callers' bearer credentials, `name credential` or `credential` a line; none: no auth.
        open_metrics: /metrics needs no credential, even where requests do.
        tls_certificate_file: PEM chain; with it the front speaks TLS only.
        tls_key_file: PEM key of that certificate.
        engine_ca_file: PEM of who signs the engines' certificates; default: the system's.
        forward_authorization: pass the caller's Authorization on to engines without a credential of their own; only
            where `bearer_file` is not set, since then it is the gateway's own secret.
        engines: how engines are reached, by engine id; `*` is for those without an entry.
        trust: whose tier and class are believed.
        max_body_bytes: of one request.
        max_buffered_bytes: of all request bodies held at once, each until its request ends.
        max_header_bytes: of the request line, and of each header.
        max_headers: number of headers.
        max_connections: of clients, idle ones too; more get a 503 and are closed.
        max_in_flight: requests at once; more get a 503 with Retry-After.
        max_event_bytes: of one event of a stream, beyond which its latency is no longer measured.
        head_s: from a connection's opening to its first whole request head.
        keepalive_s: that a client's connection may idle between requests.
        body_s: that a client may take to send a body.
        connect_s: to open a connection to an engine.
        first_byte_s: from the request's sending to the first byte of the engine's body.
        idle_s: between two chunks of the engine's, and that a client may refuse to read.
        total_s: of a request, all in all.
        engine_keepalive_s: that an unused connection to an engine is kept: below the engines' own limit (vLLM: 5).
        retry_statuses: an engine's answers that count as "not served" and may be tried elsewhere.
        probe_path: asked of an engine that is down, to learn that it is up.
        probe_period_s: how often.
        drain_s: that requests in flight may take to end after SIGTERM.
    """

    cluster: str = "default"
    host: str = "127.0.0.1"
    port: Annotated[int, Ge(0), Le(65_535)] = 8_080
    session_header: HeaderName = "x-session-id"
    session_prefix_chars: Annotated[int, Ge(1), Le(1 << 20)] = 1_024
    shared_prefix_chars: Annotated[int, Ge(0), Le(1 << 24)] = 0
    bearer_file: str | None = None
    open_metrics: bool = False
    tls_certificate_file: str | None = None
    tls_key_file: str | None = None
    engine_ca_file: str | None = None
    forward_authorization: bool = False
    engines: Mapping[str, EngineAccess] = field(default_factory=dict[str, EngineAccess])
    trust: TrustSettings = field(default_factory=TrustSettings)
    max_body_bytes: Bytes = 16 << 20
    max_buffered_bytes: Bytes = 1 << 30
    max_header_bytes: Annotated[int, Ge(1_024), Le(1 << 20)] = 16_384
    max_headers: Annotated[int, Ge(8), Le(1_024)] = 100
    max_connections: Annotated[int, Ge(1), Le(1_000_000)] = 10_000
    max_in_flight: Annotated[int, Ge(1), Le(1_000_000)] = 4_096
    max_event_bytes: Bytes = 1 << 20
    head_s: Seconds = 10.0
    keepalive_s: Seconds = 75.0
    body_s: Seconds = 30.0
    connect_s: Seconds = 2.0
    first_byte_s: Seconds = 120.0
    idle_s: Seconds = 60.0
    total_s: Seconds = 1_800.0
    engine_keepalive_s: Seconds = 3.0
    retry_statuses: tuple[Annotated[int, Ge(500), Le(599)], ...] = (502, 503, 504)
    probe_path: str = "/health"
    probe_period_s: Seconds = 1.0
    drain_s: Seconds = 30.0
