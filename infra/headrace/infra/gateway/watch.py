"""Which engines are down, as this gateway has found: told to the router at once, and asked again until they answer.

    no connection                ->  down at once; only that engine's sessions move
    connection lost              ->  asked at once; down if it does not answer
    every probe_period_s         ->  all that are down are asked; up as soon as one answers (status below 500)

An engine that no route names any more is forgotten, so the work is bounded by the fleet.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection

import aiohttp

from headrace.dataplane.router import Router
from headrace.infra.gateway.core.header_rules import with_credential
from headrace.infra.gateway.engines import Engine


class EngineWatch:
    """Asks engines that failed whether they are back.

    Args:
        router: is told.
        session: asks.
        path: of the question.
        period_s: between two questions.
        known: the ids of the engines that routes name now.
        on_change: called with the engine and whether it is up.
    """

    def __init__(
        self,
        router: Router,
        session: aiohttp.ClientSession,
        path: str,
        period_s: float,
        known: Callable[[], Collection[str]],
        on_change: Callable[[Engine, bool], None],
    ) -> None:
        self._router = router
        self._session = session
        self._path = path
        self._period_s = period_s
        self._known = known
        self._on_change = on_change
        self._watched: dict[str, Engine] = {}
        self._asked = asyncio.Event()

    @property
    def down(self) -> int:
        """How many engines are down now."""
        return sum(self._router.is_down(engine_id) for engine_id in self._watched)

    def not_reachable(self, engine: Engine) -> None:
        """Take note that no connection could be made."""
        self._set(engine, up=False)
        self._watched[engine.engine_id] = engine

    def suspect(self, engine: Engine) -> None:
        """Take note that a connection was lost: ask before judging."""
        if engine.engine_id not in self._watched:
            self._watched[engine.engine_id] = engine
            self._asked.set()

    async def run(self) -> None:
        """Ask, until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._period_s):
                    await self._asked.wait()
            self._asked.clear()
            await asyncio.gather(*[self._ask(engine) for engine in list(self._watched.values())])

    async def _ask(self, engine: Engine) -> None:
        gone = engine.engine_id not in self._known()
        up = gone or await self._answers(engine)
        self._set(engine, up=up)
        if up:
            self._watched.pop(engine.engine_id, None)

    def _set(self, engine: Engine, *, up: bool) -> None:
        was_up = not self._router.is_down(engine.engine_id)
        self._router.set_health(engine.engine_id, up)
        if up != was_up:
            self._on_change(engine, up)

    async def _answers(self, engine: Engine) -> bool:
        headers = dict([] if engine.credential is None else with_credential([], *engine.credential))
        try:
            async with asyncio.timeout(max(1.0, self._period_s)):
                response = await self._session.get(engine.base_url + self._path, headers=headers, allow_redirects=False)
                response.close()
        except (aiohttp.ClientError, TimeoutError):
            return False
        return response.status < 500
