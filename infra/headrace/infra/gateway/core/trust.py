"""Whose word on tier and class is taken: a caller's that proves itself by a shared secret or by an allow-listed header.

    trusted = secret header in secrets  or  any allow-listed header has an allowed value

Everyone else gets the configured defaults, and their headers are ignored, not refused: a client cannot raise its own
importance, and one that tries is served as if it had not. A trusted caller's malformed value is an error it is told of.
"""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from headrace.infra.gateway.core.refusal import Refusal
from headrace.infra.gateway.settings import TrustSettings
from headrace.schemas.ids import is_identifier

MAX_TIER = 1_000


@dataclass(frozen=True, slots=True)
class Standing:
    """What a request counts as."""

    request_class: str
    tier: int | None
    trusted: bool


def is_trusted(headers: Mapping[str, str], rule: TrustSettings, secrets: frozenset[bytes]) -> bool:
    """Say whether a caller proved itself. Every secret is compared in full, whichever matches.

    `headers` must find names whatever their case.
    """
    given = headers.get(rule.secret_header)
    if given is not None:
        raw = given.encode("utf-8", "surrogateescape")
        if sum(hmac.compare_digest(raw, secret) for secret in secrets):
            return True
    return any(headers.get(name) in allowed for name, allowed in rule.allow.items() if name in headers)


def standing(headers: Mapping[str, str], rule: TrustSettings, secrets: frozenset[bytes]) -> Standing | Refusal:
    """Give a request's class and tier by its headers and the rule."""
    if not is_trusted(headers, rule, secrets):
        return Standing(rule.default_class, rule.default_tier, trusted=False)
    request_class = headers.get(rule.class_header, rule.default_class)
    if not is_identifier(request_class):
        return Refusal.bad_request(f"{rule.class_header} is {request_class[:40]!r}; a class is an identifier")
    text = headers.get(rule.tier_header)
    if text is None:
        return Standing(request_class, rule.default_tier, trusted=True)
    if not (text.isascii() and text.isdigit() and len(text) < 5 and int(text) <= MAX_TIER):
        return Refusal.bad_request(f"{rule.tier_header} is {text[:40]!r}; a tier is 0 to {MAX_TIER}")
    return Standing(request_class, int(text), trusted=True)
