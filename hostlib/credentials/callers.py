# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Certificates of gRPC callers: whether they are revoked, and what role they prove.

Only servers import this module: it needs the package cryptography.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast, final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec

from ..errors import CallerRoleError, CredentialsError, UnknownCallerError
from .files import Credentials
from .roles import Role, roles_of_names

_LOGGER = logging.getLogger(__name__)
_PEM: Final = "x509_pem_cert"
"""Where gRPC's authentication context has the certificate that the handshake has verified."""


@final
class CallerCertificates:
    """Judges callers by the certificates that they have shown; gRPC has checked their signatures.

    `check` takes the authentication context of a call, of gRPC's `context.auth_context()`.
    The list of revoked certificates counts from the next call on once its file has changed.
    """

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._version = credentials.version()
        self._revoked = self._load()

    def check(self, authentication: Mapping[str, Any], allowed: frozenset[Role]) -> None:
        """Raise UnknownCallerError or CallerRoleError unless the caller has one of the roles."""
        pem: bytes | None = next(iter(authentication.get(_PEM, ())), None)
        if pem is None:
            raise UnknownCallerError("this call came without a certificate")
        serial, roles = _identity(pem)
        self._renew()
        if serial in self._revoked:
            raise UnknownCallerError(
                "this certificate was revoked; ask the operator of the authority for another"
            )
        if not roles & allowed:
            raise CallerRoleError(
                f"a certificate of role {_listed(roles) or 'none'} is not for this call, which "
                f"needs {_listed(allowed)}"
            )

    def _renew(self) -> None:
        """Read the list again if it has changed; a damaged one changes nothing."""
        try:
            version = self._credentials.version()
            if version != self._version:
                self._revoked = self._load()
                self._version = version
        except CredentialsError as exc:
            _LOGGER.warning("the list of revoked certificates before stays in use: %s", exc)

    def _load(self) -> frozenset[int]:
        authority = x509.load_pem_x509_certificate(
            self._credentials.read(self._credentials.authority)
        )
        revoked = load_revocations(self._credentials.revoked, authority)
        return frozenset(one.serial_number for one in revoked)


def load_revocations(path: Path, authority: x509.Certificate) -> x509.CertificateRevocationList:
    """Read a list of revoked certificates that `authority` has signed; raises CredentialsError."""
    try:
        revoked = x509.load_pem_x509_crl(path.read_bytes())
        is_signed = revoked.is_signature_valid(
            cast("ec.EllipticCurvePublicKey", authority.public_key())
        )
    except OSError as exc:
        raise CredentialsError(f"cannot read {path}: {exc.strerror}") from exc
    except (ValueError, TypeError, InvalidSignature) as exc:
        raise CredentialsError(f"{path} is not a list of revoked certificates: {exc}") from exc
    if not is_signed:
        raise CredentialsError(f"{path} is not signed by its authority")
    return revoked


def dns_names(certificate: x509.Certificate) -> list[str]:
    """Return the DNS names of a certificate's subject."""
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return extension.value.get_values_for_type(x509.DNSName)


@functools.lru_cache(maxsize=4096)
def _identity(pem: bytes) -> tuple[int, frozenset[Role]]:
    certificate = x509.load_pem_x509_certificate(pem)
    return certificate.serial_number, roles_of_names(dns_names(certificate))


def _listed(roles: frozenset[Role]) -> str:
    return " or ".join(sorted(roles))
