"""librdkafka's security options, read into a structure."""

import pytest

from headrace.schemas.bus.security import Sasl, Security, Tls, read_security
from headrace.schemas.errors import InvalidInputError


def test_no_security_options_are_plaintext() -> None:
    assert read_security({"linger.ms": "5"}) == Security()


def test_sasl_over_tls_with_a_private_authority() -> None:
    options = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "ann",
        "sasl.password": "hush",
        "ssl.ca.location": "/ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
    }
    security = read_security(options)
    assert security.protocol == "SASL_SSL"
    assert security.sasl == Sasl("SCRAM-SHA-512", "ann", "hush")
    assert security.tls == Tls(ca_file="/ca.pem", verify_hostname=False)
    assert security.untranslated == ()
    assert "hush" not in repr(security)


def test_a_client_certificate_in_pem_text() -> None:
    security = read_security({"security.protocol": "SSL", "ssl.certificate.pem": "C", "ssl.key.pem": "K"})
    assert security.tls == Tls(certificate_pem="C", key_pem="K")
    assert security.sasl is None


def test_an_option_without_a_place_here_is_named_and_not_lost() -> None:
    options = {"security.protocol": "SSL", "ssl.keystore.location": "/k.p12", "ssl.cipher.suites": "X"}
    assert read_security(options).untranslated == ("ssl.cipher.suites", "ssl.keystore.location")


def test_options_of_a_protocol_that_is_not_used_are_untranslated() -> None:
    assert read_security({"sasl.username": "ann"}).untranslated == ("sasl.username",)


def test_all_problems_are_told_at_once() -> None:
    options = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "ssl.ca.location": "/ca.pem",
        "ssl.ca.pem": "PEM",
        "ssl.certificate.location": "/c.pem",
        "enable.ssl.certificate.verification": "perhaps",
    }
    with pytest.raises(InvalidInputError) as caught:
        read_security(options)
    assert caught.value.problems == (
        "sasl.password is missing; PLAIN needs it",
        "enable.ssl.certificate.verification is 'perhaps'; allowed are true, false",
        "ssl.ca.location and ssl.ca.pem are both given; one of them is enough",
        "ssl.certificate is given without ssl.key.location or ssl.key.pem",
    )


def test_an_unknown_protocol_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidInputError, match=r"'TLS'; allowed are PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"):
        read_security({"security.protocol": "TLS"})
