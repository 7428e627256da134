"""A server run until it is told to stop, and where it listens: what every command that serves has in common."""

import asyncio
import signal
from contextlib import AbstractAsyncContextManager

import click


async def serve(running: AbstractAsyncContextManager[object]) -> None:
    """Run until SIGTERM or SIGINT; a second one ends it at once."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _ask, loop, stopped)
    async with running:
        await stopped.wait()


def _ask(loop: asyncio.AbstractEventLoop, stopped: asyncio.Event) -> None:
    stopped.set()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)


def host_and_port(listen: str) -> tuple[str, int]:
    """Read HOST:PORT, as `--listen` takes it.

    Raises:
        BadParameter: it is none.
    """
    host, _, port = listen.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) <= 65_535):
        raise click.BadParameter(f"{listen!r} is not HOST:PORT", param_hint="--listen")
    return host.strip("[]"), int(port)
