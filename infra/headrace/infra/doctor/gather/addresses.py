"""Whether each broker's address takes connections: those configured, and those that brokers tell their clients."""

import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from headrace.infra.doctor.core.picture import BrokerSeen

CONNECT_S = 3.0
MOST_AT_ONCE = 16


def try_addresses(bootstrap_servers: str, told: Mapping[str, int]) -> tuple[BrokerSeen, ...]:
    """Connect to each address and close again. `told` are the brokers' own addresses, with their node."""
    given: dict[str, int | None] = {address.strip(): None for address in bootstrap_servers.split(",")}
    every: dict[str, int | None] = {**given, **told}
    with ThreadPoolExecutor(min(MOST_AT_ONCE, len(every)), thread_name_prefix="doctor-connect") as pool:
        problems = pool.map(_problem, every)
        return tuple(
            BrokerSeen(address, node, problem) for (address, node), problem in zip(every.items(), problems, strict=True)
        )


def _problem(address: str) -> str | None:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S):
            return None
    except TimeoutError:
        return f"no connection within {CONNECT_S:g} s"
    except OSError as error:
        return error.strerror or str(error)
