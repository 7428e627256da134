"""Free TCP ports for brokers, from below the range that the system hands to outgoing connections.

A port found by binding to 0 lies in that range, so an outgoing connection may take it in the seconds that a broker
needs to start. Ports from here can only be taken by another server.
"""

import secrets
import socket

from headrace.schemas.errors import HeadraceError

FIRST_PORT = 20_000
LAST_PORT = 32_000
LOOPBACK = "127.0.0.1"


class NoFreePortError(HeadraceError):
    """Every port of the range is taken."""


def free_ports(count: int) -> tuple[int, ...]:
    """Give `count` different ports on which nothing listens at the loopback address.

    Each search begins at a place of its own, so that two that start brokers at once seldom meet.

    Raises:
        NoFreePortError: fewer are free between FIRST_PORT and LAST_PORT.
    """
    size = LAST_PORT - FIRST_PORT
    start = secrets.randbelow(size)
    found: list[int] = []
    for step in range(size):
        port = FIRST_PORT + (start + step) % size
        if not is_taken(port):
            found.append(port)
            if len(found) == count:
                return tuple(found)
    raise NoFreePortError(f"{len(found)} ports are free between {FIRST_PORT} and {LAST_PORT}; {count} are needed")


def is_taken(port: int) -> bool:
    """Say whether something listens on the port, or has it bound."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return True
    return False
