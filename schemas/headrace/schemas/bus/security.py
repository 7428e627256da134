"""librdkafka's security options as a typed structure, for clients that are not librdkafka. Pure.

    security.protocol   PLAINTEXT | SSL | SASL_PLAINTEXT | SASL_SSL
    sasl.mechanism(s)   PLAIN | SCRAM-SHA-256 | SCRAM-SHA-512 | GSSAPI | OAUTHBEARER
    ssl.*               files or PEM text of the authority, the certificate and its key

Names, spellings and defaults are librdkafka's (its CONFIGURATION.md); what librdkafka would refuse is refused here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, cast, get_args

from headrace.schemas.errors import InvalidInputError

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER"]

_PREFIXES: Final = ("security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.", "https.")
_WITH_PASSWORD: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True, slots=True)
class Sasl:
    """How to log in. `username` and `password` are None for mechanisms that use neither."""

    mechanism: Mechanism
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    kerberos_service: str = "kafka"


@dataclass(frozen=True, slots=True)
class Tls:
    """How to encrypt. Each of authority, certificate and key is a file (`_file`) or PEM text (`_pem`), or neither.

    Without an authority the system's own are trusted.
    """

    ca_file: str | None = None
    ca_pem: str | None = None
    certificate_file: str | None = None
    certificate_pem: str | None = None
    key_file: str | None = None
    key_pem: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    verify_certificate: bool = True
    verify_hostname: bool = True


@dataclass(frozen=True, slots=True)
class Security:
    """How a connection is secured.

    Attributes:
        protocol: librdkafka's security.protocol.
        sasl: None where the protocol does not log in.
        tls: None where the protocol does not encrypt.
        untranslated: names of the security options given that have no place in this structure, sorted; a client that
            is not librdkafka would have to do without them.
    """

    protocol: Protocol = "PLAINTEXT"
    sasl: Sasl | None = None
    tls: Tls | None = None
    untranslated: tuple[str, ...] = ()


def read_security(options: Mapping[str, str]) -> Security:
    """Read the security options out of all librdkafka options; others are passed over.

    Raises:
        InvalidInputError: with every option that is unknown, missing or does not fit the others.
    """
    problems: list[str] = []
    rest = {name: value for name, value in options.items() if name.startswith(_PREFIXES)}
    protocol = cast("Protocol", _choice(rest, ("security.protocol",), get_args(Protocol), "PLAINTEXT", problems))
    sasl = _sasl(rest, problems) if protocol.startswith("SASL") else None
    tls = _tls(rest, problems) if protocol.endswith("SSL") else None
    if problems:
        raise InvalidInputError("kafka.options", tuple(problems))
    return Security(protocol, sasl, tls, tuple(sorted(rest)))


def _sasl(rest: dict[str, str], problems: list[str]) -> Sasl:
    names = ("sasl.mechanism", "sasl.mechanisms")
    mechanism = cast("Mechanism", _choice(rest, names, get_args(Mechanism), "GSSAPI", problems))
    username, password = rest.pop("sasl.username", None), rest.pop("sasl.password", None)
    if mechanism in _WITH_PASSWORD:
        given = {"sasl.username": username, "sasl.password": password}
        problems += [f"{name} is missing; {mechanism} needs it" for name, value in given.items() if not value]
    return Sasl(mechanism, username, password, rest.pop("sasl.kerberos.service.name", "kafka"))


def _tls(rest: dict[str, str], problems: list[str]) -> Tls:
    hostname = _choice(rest, ("ssl.endpoint.identification.algorithm",), ("https", "none"), "https", problems)
    verify = _choice(rest, ("enable.ssl.certificate.verification",), ("true", "false"), "true", problems)
    tls = Tls(
        ca_file=rest.pop("ssl.ca.location", None),
        ca_pem=rest.pop("ssl.ca.pem", None),
        certificate_file=rest.pop("ssl.certificate.location", None),
        certificate_pem=rest.pop("ssl.certificate.pem", None),
        key_file=rest.pop("ssl.key.location", None),
        key_pem=rest.pop("ssl.key.pem", None),
        key_password=rest.pop("ssl.key.password", None),
        verify_certificate=verify == "true",
        verify_hostname=hostname == "https",
    )
    pairs = (
        ("ssl.ca", tls.ca_file, tls.ca_pem),
        ("ssl.certificate", tls.certificate_file, tls.certificate_pem),
        ("ssl.key", tls.key_file, tls.key_pem),
    )
    problems += [
        f"{name}.location and {name}.pem are both given; one of them is enough" for name, a, b in pairs if a and b
    ]
    if (tls.certificate_file or tls.certificate_pem) and not (tls.key_file or tls.key_pem):
        problems.append("ssl.certificate is given without ssl.key.location or ssl.key.pem")
    return tls


def _choice(
    rest: dict[str, str], names: tuple[str, ...], allowed: tuple[str, ...], default: str, problems: list[str]
) -> str:
    """Take the option out of `rest` under any of its names, whatever its case; complain where it is not allowed."""
    found = default
    for name in names:
        value = rest.pop(name, None)
        if value is None:
            continue
        match = next((choice for choice in allowed if choice.lower() == value.strip().lower()), None)
        if match is None:
            problems.append(f"{name} is {value!r}; allowed are {', '.join(allowed)}")
        else:
            found = match
    return found
