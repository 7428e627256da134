"""What strains a gateway: many requests of every kind, and bytes that are nearly HTTP."""

import asyncio
import gc
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

from gateway_inputs import GOOD, MODEL, Rig, faulty, say, until
from headrace.infra.gateway_engine.behaviour import Behaviour, Fault

AT_ONCE = 32
FAULTS = (Fault.NONE, Fault.CLOSE_BEFORE_HEAD, Fault.CLOSE_MID_STREAM, Fault.STATUS_429, Fault.ERROR_MID_STREAM)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def mixed(r: Rig, count: int) -> None:
    """Ask: streams and whole answers, models that do not exist, clients that leave; engines fail one in seven."""
    turns = asyncio.Semaphore(AT_ONCE)
    url = f"{r.url}/v1/chat/completions"

    async def one(client: aiohttp.ClientSession, i: int) -> None:
        body: dict[str, Any] = {"model": MODEL if i % 11 else "no-such", "messages": say(str(i)), "stream": i % 2 == 0}
        async with turns:
            try:
                async with client.post(url, json=body) as answer:
                    if i % 5 == 0:
                        return  # leaves without reading
                    await answer.read()
            except aiohttp.ClientError:
                pass  # engines that die are the point

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=AT_ONCE)) as client:
        for begin in range(0, count, 1_000):
            await asyncio.gather(*(one(client, i) for i in range(begin, min(begin + 1_000, count))))


async def settled(r: Rig) -> tuple[int, int]:
    """Wait until no request is on its way; gives how many files and tasks there are."""
    await until(lambda: r.gateway.admission.in_flight == 0 and r.metric("connections") == 0)
    await until(lambda: all(engine.in_service == 0 for engine in r.engines.values()))
    await asyncio.sleep(0.3)  # engines' unused connections end
    gc.collect()
    return open_files(), len(asyncio.all_tasks())


def mixed_engines() -> Mapping[str, Behaviour]:
    """Give an engine for each fault, which meets every seventh of its requests, and a good one."""
    return {f"e{i}": replace(faulty(fault, every=7), tokens=4) for i, fault in enumerate(FAULTS)} | {"good": GOOD}


async def raw(r: Rig, sent: bytes, seconds: float = 5.0) -> bytes:
    """Send bytes on a connection of their own; gives all that comes until the gateway closes it, or until then."""
    reader, writer = await asyncio.open_connection("127.0.0.1", r.gateway.port)
    received = bytearray()
    try:
        async with asyncio.timeout(seconds):
            writer.write(sent)
            while part := await reader.read(1 << 16):
                received += part
    except (TimeoutError, ConnectionError):
        pass
    finally:
        writer.transport.abort()
    return bytes(received)


WHOLE = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\r\n"
    b'{"model":"m","messages":[]}'
)
NASTY = (
    b"",
    b"\x00" * 500,
    b"\r\n" * 50,
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # a TLS hello
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    WHOLE.replace(b"27", b"-1"),
    WHOLE.replace(b"27", b"99999999999999999999"),
    WHOLE.replace(b"Content-Length: 27", b"Content-Length: 27\r\nContent-Length: 3"),
    WHOLE.replace(b"Content-Length: 27", b"Transfer-Encoding: chunked\r\nContent-Length: 27"),
    WHOLE.replace(b"Content-Length: 27", b"Transfer-Encoding: chunked")[:-27] + b"ZZ\r\n",
    WHOLE.replace(b"Content-Type", b"Content-Encoding: gzip\r\nX"),
    WHOLE.replace(b"Host: x", b"Host: x\r\nExpect: 100-continue"),
    WHOLE.replace(b"Host: x", b"Host: x\r\nUpgrade: websocket\r\nConnection: upgrade"),
    WHOLE * 5,
    WHOLE + WHOLE[:40],
)


def fuzzed(count: int, seed: int) -> Iterable[bytes]:
    """Give byte strings that are nearly requests: the nasty ones, then mutations of a whole one."""
    rng = np.random.default_rng(seed)
    yield from NASTY[:count]
    for _ in range(count - len(NASTY)):
        content = bytearray(WHOLE)
        for _ in range(int(rng.integers(1, 8))):
            at = int(rng.integers(0, len(content)))
            match int(rng.integers(0, 4)):
                case 0:
                    content[at] = int(rng.integers(0, 256))
                case 1:
                    del content[at : at + int(rng.integers(1, 20))]
                case 2:
                    content[at:at] = bytes(rng.integers(0, 256, int(rng.integers(1, 20)), dtype=np.uint8))
                case _:
                    content[at:at] = content[: int(rng.integers(1, 60))]
            if not content:
                break
        yield bytes(content)


def batched(items: Iterable[bytes], size: int) -> Iterator[list[bytes]]:
    """Give the items in lists of so many: tasks for all at once would be what memory is measured of."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


async def survives_malformed_http(r: Rig, count: int, seed: int) -> None:
    """Send malformed HTTP, many connections at a time; nothing may be left of it."""
    turns = asyncio.Semaphore(50)

    async def one(content: bytes) -> None:
        async with turns:
            await raw(r, content, 0.5)

    for batch in batched(fuzzed(count, seed), 500):
        await asyncio.gather(*(one(content) for content in batch))
    await until(lambda: r.gateway.admission.in_flight == 0 and r.metric("connections") == 0, 30.0)
    assert r.gateway.admission.bodies.reserved == 0
