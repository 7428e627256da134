"""Which headers pass, either way. Hop-by-hop ones (RFC 9110, 7.6.1) never do, nor those they name, nor ours.

To an engine: not the caller's credential (unless configured), and no compression, so that a stream can be measured as
it passes. To a client: nothing that names a machine behind the gateway.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

_HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_NOT_TO_ENGINE: Final = _HOP_BY_HOP | {
    "host",
    "content-length",
    "content-encoding",
    "accept-encoding",
    "authorization",
    "expect",
}
_NOT_TO_CLIENT: Final = _HOP_BY_HOP | {"server", "date", "via", "location", "content-location", "alt-svc", "set-cookie"}
_OURS: Final = "x-headrace-"
_USUAL: Final = frozenset({"keep-alive", "close"})
"""What `Connection` says as a rule: no header that passes has these names."""

Headers = list[tuple[str, str]]


def to_engine(headers: Iterable[tuple[str, str]], private: frozenset[str]) -> Headers:
    """Give a client's headers that an engine gets; `private` names (lower case) stay here as well."""
    kept = _kept(headers, _NOT_TO_ENGINE, private)
    kept.append(("Accept-Encoding", "identity"))
    return kept


def to_client(headers: Iterable[tuple[str, str]]) -> Headers:
    """Give an engine's headers that a client gets."""
    return _kept(headers, _NOT_TO_CLIENT)


def with_credential(headers: Headers, name: str, value: str) -> Headers:
    """Give the headers with the engine's own credential, over whatever stands under that name."""
    return [(n, v) for n, v in headers if n.lower() != name.lower()] + [(name, value)]


def credential_text(header: str, content: str) -> str:
    """Give a credential as its header carries it: a bare word in `authorization` is a bearer's."""
    content = content.strip()
    return f"Bearer {content}" if header.lower() == "authorization" and " " not in content else content


def is_event_stream(headers: Mapping[str, str]) -> bool:
    """Say whether an answer is a stream of events (`headers` must find names whatever their case)."""
    return headers.get("Content-Type", "").lower().startswith("text/event-stream")


def _kept(headers: Iterable[tuple[str, str]], dropped: frozenset[str], more: Collection[str] = ()) -> Headers:
    kept: Headers = []
    named: set[str] = set()
    for header in headers:
        name = header[0].lower()
        if name == "connection":
            named.update(token.strip().lower() for token in header[1].split(","))
        elif name not in dropped and name not in more and not name.startswith(_OURS):
            kept.append(header)
    return [header for header in kept if header[0].lower() not in named] if named - _USUAL else kept
