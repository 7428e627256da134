"""The security options of librdkafka, as Faust's transport wants them.

PLAINTEXT has no credentials; SSL and SASL_SSL get an SSL context made here (Faust's own way of making one raises).
OAUTHBEARER needs a callback that gives tokens, which no option can hold: it is refused.
"""

import ssl
import tempfile
from pathlib import Path

from faust import auth
from faust.types.auth import CredentialsT

from headrace.schemas.bus.security import Security, Tls
from headrace.schemas.errors import InvalidInputError


def faust_credentials(security: Security) -> CredentialsT | None:
    """Give Faust's credentials; None where the connection is neither encrypted nor logged in.

    Raises:
        InvalidInputError: the mechanism cannot be used with Faust.
        OSError, ssl.SSLError: a certificate or key cannot be read.
    """
    context = None if security.tls is None else ssl_context(security.tls)
    sasl = security.sasl
    if sasl is None:
        return None if context is None else auth.SSLCredentials(context)
    match sasl.mechanism:
        case "OAUTHBEARER":
            problem = (
                "sasl.mechanism is 'OAUTHBEARER'; `headrace streams` can use PLAIN, SCRAM-SHA-256, -512 and GSSAPI"
            )
            raise InvalidInputError("kafka.options", (problem,))
        case "GSSAPI":
            return auth.GSSAPICredentials(
                kerberos_service_name=sasl.kerberos_service, ssl_context=context, mechanism="GSSAPI"
            )
        case _:
            return auth.SASLCredentials(
                username=sasl.username, password=sasl.password, mechanism=sasl.mechanism, ssl_context=context
            )


def ssl_context(tls: Tls) -> ssl.SSLContext:
    """Give the SSL context of a client; without an authority the system's own are trusted."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=tls.ca_file, cadata=tls.ca_pem)
    context.check_hostname = tls.verify_certificate and tls.verify_hostname
    if not tls.verify_certificate:
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate_file is not None or tls.certificate_pem is not None:
        with tempfile.TemporaryDirectory(prefix="headrace-tls-") as folder:
            # The ssl module reads certificates from files alone; the folder is ours only (0700) and gone at once.
            certificate = tls.certificate_file or _written(Path(folder) / "certificate.pem", tls.certificate_pem)
            key = tls.key_file or _written(Path(folder) / "key.pem", tls.key_pem)
            context.load_cert_chain(certificate, key, tls.key_password)
    return context


def _written(path: Path, text: str | None) -> str:
    path.write_text("" if text is None else text, "utf-8")
    return str(path)
