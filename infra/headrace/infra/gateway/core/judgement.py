"""A request judged: what it asks for, what it counts as, which session it is of, and what an engine gets of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from headrace.infra.gateway.core.generation import Endpoint, read_generation
from headrace.infra.gateway.core.header_rules import Headers, to_engine
from headrace.infra.gateway.core.refusal import Refusal
from headrace.infra.gateway.core.session_key import PrefixRule, established, session_key
from headrace.infra.gateway.core.trust import Standing, standing
from headrace.infra.gateway.settings import GatewaySettings, TrustSettings


@dataclass(frozen=True, slots=True)
class Rules:
    """What requests are judged by.

    Attributes:
        private: headers that engines do not get, in lower case.
        forward_authorization: engines get the caller's Authorization.
    """

    trust: TrustSettings
    secrets: frozenset[bytes]
    session_header: str
    prefix: PrefixRule
    private: frozenset[str]
    forward_authorization: bool

    @classmethod
    def of(cls, settings: GatewaySettings, secrets: frozenset[bytes]) -> Self:
        """Give the rules that settings make; `secrets` are those of `trust.secret_file`."""
        trust = settings.trust
        private = {trust.class_header, trust.tier_header, trust.secret_header, *trust.allow}
        return cls(
            trust=trust,
            secrets=secrets,
            session_header=settings.session_header,
            prefix=PrefixRule(settings.shared_prefix_chars, settings.session_prefix_chars),
            private=frozenset(name.lower() for name in private),
            forward_authorization=settings.forward_authorization and settings.bearer_file is None,
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, judged. `headers` and `body` are what an engine gets; the document that was read is let go."""

    endpoint: Endpoint
    model: str
    standing: Standing
    key: str | None
    established: bool | None
    headers: Headers
    body: bytes


def judge(endpoint: Endpoint, headers: Mapping[str, str], body: bytes, tenant: str, rules: Rules) -> Asked | Refusal:
    """Judge one request. `headers` must find names whatever their case; `tenant` keeps callers' sessions apart."""
    generation = read_generation(endpoint, body)
    if isinstance(generation, Refusal):
        return generation
    found = standing(headers, rules.trust, rules.secrets)
    if isinstance(found, Refusal):
        return found
    key = session_key(generation, headers.get(rules.session_header), tenant, rules.prefix)
    passed = to_engine(headers.items(), rules.private)
    authorization = headers.get("Authorization")
    if rules.forward_authorization and authorization is not None:
        passed.append(("Authorization", authorization))
    return Asked(endpoint, generation.model, found, key, established(generation), passed, body)


def secrets_of(text: str) -> frozenset[bytes]:
    """Read a file of shared secrets, one a line; empty lines and comments (#) are left out."""
    lines = (line.strip() for line in text.splitlines())
    return frozenset(line.encode() for line in lines if line and not line.startswith("#"))
