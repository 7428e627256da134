"""How engines are reached: from a decision to a base URL, an alias and a credential."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarl import URL

from headrace.dataplane.decision import Decision
from headrace.infra.configuration.expected import why_unreadable
from headrace.infra.gateway.core.decision_header import engine_alias
from headrace.infra.gateway.core.generation import Endpoint
from headrace.infra.gateway.core.header_rules import credential_text
from headrace.infra.gateway.settings import ANY_ENGINE, EngineAccess
from headrace.schemas.errors import InvalidInputError

MAX_KNOWN: Final = 20_000
"""Engines remembered; beyond, all are looked up anew."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine as the gateway reaches it. `credential` is a header's name and value; `urls` are read once."""

    engine_id: str
    alias: str
    base_url: str
    credential: tuple[str, str] | None
    urls: Mapping[Endpoint, URL | str]


class Engines:
    """The engines' access by id. Credentials are read here, once.

    Raises:
        InvalidInputError: a credential's variable is not set, or its file cannot be read.
    """

    def __init__(self, access: Mapping[str, EngineAccess], env: Mapping[str, str] = os.environ) -> None:
        problems: list[str] = []
        self._access = dict(access)
        self._credentials = {
            name: credential
            for name, each in access.items()
            if (credential := _credential(name, each, env, problems)) is not None
        }
        if problems:
            raise InvalidInputError("gateway.engines", tuple(problems))
        self._known: dict[tuple[str, str | None], Engine | None] = {}

    def reach(self, decision: Decision) -> Engine | None:
        """Give the engine of a decision; None where there is none, or nobody gave its address."""
        if decision.engine_id is None:
            return None
        at = (decision.engine_id, decision.address)
        if at not in self._known:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[at] = self._engine(*at)
        return self._known[at]

    def alias(self, engine_id: str) -> str:
        """Give the name that an engine goes by outside."""
        access = self._access.get(engine_id)
        return engine_alias(engine_id, None if access is None else access.alias)

    def _engine(self, engine_id: str, address: str | None) -> Engine | None:
        access = self._access.get(engine_id)
        address = access.address if access is not None and access.address is not None else address
        if address is None:
            return None
        base_url = (address if "://" in address else f"http://{address}").rstrip("/")
        credential = self._credentials.get(engine_id if engine_id in self._access else ANY_ENGINE)
        urls = {endpoint: _url(base_url + endpoint.value) for endpoint in Endpoint}
        return Engine(engine_id, self.alias(engine_id), base_url, credential, urls)


def _url(text: str) -> URL | str:
    """Give a URL as what it is read to be; one that cannot be read as it is, for aiohttp to say so at each attempt."""
    try:
        return URL(text)
    except ValueError:
        return text


def _credential(name: str, access: EngineAccess, env: Mapping[str, str], problems: list[str]) -> tuple[str, str] | None:
    content: str | None = None
    if access.auth_file is not None:
        try:
            content = Path(access.auth_file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{name}.auth_file is {access.auth_file!r}; it {why_unreadable(error)}")
    elif access.auth_env is not None:
        content = env.get(access.auth_env)
        if content is None:
            problems.append(f"{name}.auth_env is {access.auth_env!r}; no such variable is set")
    if content is None:
        return None
    value = credential_text(access.auth_header, content)
    if not value or not value.isprintable():
        problems.append(f"{name}: the credential is empty, or more than one line of text")
        return None
    return access.auth_header, value
