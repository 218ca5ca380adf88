# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What OpenSSL's errors mean for whoever has to find the wrong certificate."""

from __future__ import annotations

import ssl

from ..credentials import Role

_ONE_AUTHORITY = "give both ends certificates of one authority"
_SEEN = {  # X509_V_ERR_* of OpenSSL's x509_vfy.h
    3: "this end has no valid list of revoked certificates (crl.pem); fetch it from the authority",
    9: "the other end's certificate is not valid yet; compare the clocks of both hosts",
    10: "the other end's certificate has expired; renew it, or set this host's clock",
    12: "this end's list of revoked certificates (crl.pem) has expired; fetch a new one",
    18: f"the other end's certificate is of no authority; {_ONE_AUTHORITY}",
    19: f"the other end's certificate is of another authority; {_ONE_AUTHORITY}",
    20: f"the other end's certificate is of another authority; {_ONE_AUTHORITY}",
    21: f"the other end's certificate is of another authority; {_ONE_AUTHORITY}",
    23: "the other end's certificate is revoked; give it another one",
}
_WRONG_NAME = 62
_TOLD = {  # parts of the names of TLS alerts, RFC 8446 section 6.2
    "CERTIFICATE_REQUIRED": "the other end demands a certificate, and this end showed none; give"
    " this end credentials",
    "UNKNOWN_CA": f"the other end does not know the authority of this end's certificate;"
    f" {_ONE_AUTHORITY}",
    "CERTIFICATE_EXPIRED": "the other end says that this end's certificate has expired; renew it,"
    " and compare the clocks of both hosts",
    "CERTIFICATE_REVOKED": "the other end says that this end's certificate is revoked; ask the"
    " authority for another one",
    "BAD_CERTIFICATE": "the other end refuses this end's certificate: a wrong role, or one of"
    " another authority",
    "CERTIFICATE_UNKNOWN": "the other end cannot check this end's certificate: its log says why",
    "UNSUPPORTED_CERTIFICATE": "the other end takes no certificates such as this end's; issue it"
    " with Switchfold's own command",
    "PROTOCOL_VERSION": "the ends have no version of TLS in common; both need TLS 1.3",
}


def describe_refusal(error: ssl.SSLError, role: Role | None) -> str | None:
    """Return why a certificate is refused, here or at the other end, and what to do about it.

    `role`: that of the called server, None at the server itself. None: it is not about
    certificates.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == _WRONG_NAME:
            return (
                f"the other end's certificate is not that of a {role}; is the address right? Give"
                f" a {role} the credentials of a {role}"
            )
        return _SEEN.get(
            error.verify_code,
            f"the other end's certificate is refused: {error.verify_message}; {_ONE_AUTHORITY}",
        )
    reason = error.reason or ""
    if "DID_NOT_RETURN_A_CERTIFICATE" in reason:
        return "the other end showed no certificate; give it credentials"
    if "ALERT" not in reason:
        return None
    for name, text in _TOLD.items():
        if name in reason:
            return text
    return None
