"""Who may look: whoever has the token, by header or by a cookie that the login gives for it.

On a loopback address without a token: anyone who asks under a loopback name, so that no other site's page can reach it
by a name of its own (DNS rebinding).

The token is compared in constant time, never logged, never in an address, and never in the cookie: that holds a random
session, which ends with the process, by its time, or by logging out.
"""

import hmac
import ipaddress
import secrets
from collections import OrderedDict
from collections.abc import Iterable

MIN_TOKEN = 16
MAX_SESSIONS = 1_000
SCHEME = "bearer "


def is_loopback(host: str) -> bool:
    """Say whether an address or name is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def token_problem(token: str) -> str | None:
    """Say what is wrong with a token, without saying the token."""
    if len(token) < MIN_TOKEN:
        return f"its first line has {len(token)} characters; at least {MIN_TOKEN}"
    if not (token.isascii() and token.isprintable()) or " " in token:
        return "its first line holds a blank, or what is no printable ASCII"
    return None


class Gate:
    """Judges requests.

    Args:
        token: what opens; None lets anyone in who asks under one of `hosts`.
        hosts: names under which the console may be asked for without a token, beside loopback ones.
        session_s: how long a session lasts.
    """

    def __init__(self, token: str | None, hosts: Iterable[str], session_s: float) -> None:
        self._token = None if token is None else token.encode()
        self._hosts = frozenset(host.lower() for host in hosts)
        self._session_s = session_s
        self._sessions: OrderedDict[str, float] = OrderedDict()

    @property
    def asks(self) -> bool:
        """Whether a token is asked for."""
        return self._token is not None

    def knows_host(self, host_header: str) -> bool:
        """Say whether the console may be asked for under this name; with a token, under any."""
        if self._token is not None:
            return True
        host = _name(host_header)
        return is_loopback(host) or host.lower() in self._hosts

    def lets_in(self, authorization: str | None, session: str | None, now_s: float) -> bool:
        """Say whether a request may pass, by its Authorization header or its cookie."""
        if self._token is None:
            return True
        if authorization is not None and authorization[: len(SCHEME)].lower() == SCHEME:
            return self.is_token(authorization[len(SCHEME) :].strip())
        expires_s = None if session is None else self._sessions.get(session)
        return expires_s is not None and now_s < expires_s

    def is_token(self, given: str) -> bool:
        """Compare in a time that says nothing of where they differ."""
        return self._token is not None and hmac.compare_digest(given.encode(), self._token)

    def open_session(self, now_s: float) -> str:
        """Begin a session, and give its name for the cookie."""
        name = secrets.token_urlsafe(32)
        self._sessions[name] = now_s + self._session_s
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return name

    def end_session(self, session: str | None) -> None:
        """End a session, if there is one of this name."""
        if session is not None:
            self._sessions.pop(session, None)


def _name(host_header: str) -> str:
    """Give the name in a Host header: `localhost:8090`, `[::1]:8090`."""
    if host_header.startswith("["):
        return host_header[1:].partition("]")[0]
    return host_header.partition(":")[0]
