"""Whose word on tier and class is taken, and how a request is judged as a whole."""

import pytest
from multidict import CIMultiDict

from headrace.infra.gateway.core.generation import Endpoint
from headrace.infra.gateway.core.judgement import Asked, Rules, judge, secrets_of
from headrace.infra.gateway.core.refusal import Refusal
from headrace.infra.gateway.core.trust import Standing, standing
from headrace.infra.gateway.settings import GatewaySettings, TrustSettings

SECRETS = secrets_of("# of the edge proxies\nfirst-secret\n\n  second-secret  \n")
WANTED = {"X-Headrace-Class": "batch", "X-Headrace-Tier": "2"}
NO_ONE = TrustSettings()
BY_HEADER = TrustSettings(allow={"x-from-edge": ("yes", "true")}, default_tier=1)


def of(
    headers: dict[str, str], rule: TrustSettings = NO_ONE, secrets: frozenset[bytes] = SECRETS
) -> Standing | Refusal:
    return standing(CIMultiDict(headers), rule, secrets)


def test_anyones_headers_are_ignored() -> None:
    assert of(WANTED) == Standing("default", None, trusted=False)
    assert of(WANTED | {"X-Headrace-Trust": "first-secre"}) == Standing("default", None, trusted=False)
    assert of(WANTED | {"X-Headrace-Trust": ""}) == Standing("default", None, trusted=False)


def test_without_secrets_there_is_nothing_to_guess() -> None:
    assert of(WANTED | {"X-Headrace-Trust": ""}, secrets=frozenset()) == Standing("default", None, trusted=False)


@pytest.mark.parametrize("secret", ["first-secret", "second-secret"])
def test_a_caller_with_a_shared_secret_is_believed(secret: str) -> None:
    assert of(WANTED | {"x-headrace-trust": secret}) == Standing("batch", 2, trusted=True)


def test_a_caller_with_an_allow_listed_header_is_believed() -> None:
    assert of(WANTED | {"X-From-Edge": "true"}, BY_HEADER) == Standing("batch", 2, trusted=True)
    assert of(WANTED | {"X-From-Edge": "no"}, BY_HEADER) == Standing("default", 1, trusted=False)
    assert of(WANTED, BY_HEADER) == Standing("default", 1, trusted=False)


def test_a_trusted_caller_that_says_nothing_gets_the_defaults() -> None:
    assert of({"X-From-Edge": "yes"}, BY_HEADER) == Standing("default", 1, trusted=True)


@pytest.mark.parametrize("tier", ["", "-1", "1.5", "two", "1001", "99999", "٣"])
def test_a_trusted_callers_malformed_tier_is_an_error_it_is_told_of(tier: str) -> None:
    refused = of({"X-From-Edge": "yes", "X-Headrace-Tier": tier}, BY_HEADER)
    assert isinstance(refused, Refusal)
    assert refused.status == 400


def test_so_is_its_malformed_class() -> None:
    refused = of({"X-From-Edge": "yes", "X-Headrace-Class": "a|b"}, BY_HEADER)
    assert isinstance(refused, Refusal)
    assert "'a|b'" in refused.message


BODY = b'{"model": "m", "user": "u", "messages": []}'


def judged(headers: dict[str, str], settings: GatewaySettings, body: bytes = BODY) -> Asked | Refusal:
    return judge(Endpoint.CHAT, CIMultiDict(headers), body, "t", Rules.of(settings, SECRETS))


def test_a_request_is_judged_by_body_headers_and_rules() -> None:
    settings = GatewaySettings(trust=BY_HEADER)
    asked = judged(
        {"X-From-Edge": "yes", "X-Headrace-Class": "batch", "Accept": "*/*", "X-Headrace-Trust": "s"}, settings
    )
    assert isinstance(asked, Asked)
    assert (asked.model, asked.key, asked.standing) == ("m", "t|user|u", Standing("batch", 1, trusted=True))
    assert asked.body == BODY
    # An engine sees neither what proves trust nor what was said by it.
    assert asked.headers == [("Accept", "*/*"), ("Accept-Encoding", "identity")]


def test_the_callers_authorization_goes_on_only_where_that_is_configured_and_not_ours() -> None:
    headers = {"Authorization": "Bearer sk-1"}
    for settings, passed in [
        (GatewaySettings(), False),
        (GatewaySettings(forward_authorization=True), True),
        (GatewaySettings(forward_authorization=True, bearer_file="callers"), False),
    ]:
        asked = judged(headers, settings)
        assert isinstance(asked, Asked)
        assert (("Authorization", "Bearer sk-1") in asked.headers) is passed


def test_whatever_is_wrong_is_a_refusal() -> None:
    assert isinstance(judged({}, GatewaySettings(), b"{"), Refusal)
    settings = GatewaySettings(trust=BY_HEADER)
    assert isinstance(judged({"X-From-Edge": "yes", "X-Headrace-Tier": "?"}, settings), Refusal)
