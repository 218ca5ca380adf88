# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Encrypted gRPC channels and servers whose both ends show certificates."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Sequence
from typing import Any, Final

from ..control.grpc_seam import load_grpc
from ..errors import CredentialsError
from .files import Credentials

_grpc = load_grpc()
_logger = logging.getLogger(__name__)
_UNIX: Final = "unix:"
_PROBE_S: Final = 3.0
"""Longest time that a look for a handshake's problem takes."""
_ALPN: Final = "h2"


def open_channel(
    module: Any,
    address: str,
    *,
    credentials: Credentials | None,
    server: str,
    options: Sequence[tuple[str, Any]] = (),
    **arguments: Any,
) -> Any:
    """Return a channel of `module` (grpc or grpc.aio); without credentials it is not encrypted.

    `server` is the name that the other end must prove, of `role_name`. Raises CredentialsError.
    """
    if credentials is None:
        return module.insecure_channel(address, options=list(options), **arguments)
    if problem := credentials.own_problem():
        raise CredentialsError(problem)
    return module.secure_channel(
        address,
        channel_credentials(credentials),
        options=[*options, ("grpc.ssl_target_name_override", server)],
        **arguments,
    )


def channel_credentials(credentials: Credentials) -> Any:
    """Return gRPC's credentials of a calling end, from the files as they are now."""
    return _grpc.ssl_channel_credentials(
        root_certificates=credentials.read(credentials.authority),
        private_key=credentials.read(credentials.key),
        certificate_chain=credentials.read(credentials.certificate),
    )


def server_credentials(credentials: Credentials) -> Any:
    """Return gRPC's credentials of a serving end, which demand a certificate of each client.

    Each new connection gets the certificate that is in the file by then. Neither revocation nor
    roles are gRPC's to check: see the interceptors of the servers. Raises CredentialsError.
    """
    if problem := credentials.own_problem():
        _logger.error("clients will refuse this server: %s", problem)
    return _grpc.dynamic_ssl_server_credentials(
        _configuration(credentials),
        _Renewal(credentials),
        require_client_authentication=True,
    )


def _configuration(credentials: Credentials) -> Any:
    pair = credentials.read(credentials.key), credentials.read(credentials.certificate)
    authority = credentials.read(credentials.authority)
    return _grpc.ssl_server_certificate_configuration([pair], root_certificates=authority)


class _Renewal:
    """Gives gRPC the files again once they have changed; files that are damaged change nothing."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self._version = credentials.version()

    def __call__(self) -> Any:
        try:
            version = self._credentials.version()
            if version == self._version:
                return None
            if problem := self._credentials.own_problem():
                raise CredentialsError(problem)
            configuration = _configuration(self._credentials)
        except CredentialsError as error:
            _logger.warning("the certificate before stays in use: %s", error)
            return None
        self._version = version
        _logger.info("certificate in %s was renewed", self._credentials.folder)
        return configuration


def handshake_problem(address: str, credentials: Credentials | None, server: str) -> str:
    """Return why a TLS handshake with a gRPC server fails, "" if it does not or nobody is there.

    gRPC does not tell. Without credentials: whether the server wants TLS.
    """
    try:
        with _connect(address) as sock:
            return _problem(sock, credentials, server)
    except OSError:
        return ""


def _connect(address: str) -> socket.socket:
    if address.startswith(_UNIX):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(_PROBE_S)
            sock.connect(address.removeprefix(_UNIX))
        except OSError:
            sock.close()
            raise
        return sock
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_S)


def _problem(sock: socket.socket, credentials: Credentials | None, server: str) -> str:
    if credentials is None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context = credentials.new_client_context()
    context.set_alpn_protocols([_ALPN])
    is_refused = has_shown = False
    try:
        with context.wrap_socket(sock, server_hostname=server) as encrypted:
            has_shown = credentials is not None
            if credentials is None:
                return (
                    "it wants TLS and a certificate; name a folder of 'switchfold certs issue' in"
                    " SWITCHFOLD_CREDENTIALS"
                )
            # A refusal of our certificate comes after the handshake; else gRPC greets.
            is_refused = not encrypted.recv(1)
    except ssl.SSLEOFError:
        return ""  # a server without room closes connections before it has seen a certificate
    except ssl.SSLError as error:
        return "" if credentials is None else explain(error, credentials, server)
    except ConnectionResetError:
        is_refused = has_shown
    if is_refused and credentials is not None:
        return (
            f"it closed the connection when it had seen our certificate {credentials.certificate}"
        )
    return ""


def explain(error: ssl.SSLError, credentials: Credentials, server: str) -> str:
    """Return in words what a failed handshake of a client means, and what to do."""
    ours = f"our certificate {credentials.certificate}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the other end is no valid {server}: {error.verify_message}"
    reason = (error.reason or "").lower()
    if "wrong_version_number" in reason or "http_request" in reason:
        return (
            "it does not use TLS; give it a certificate of 'switchfold certs issue', or set"
            " nothing in SWITCHFOLD_CREDENTIALS"
        )
    for mark, meaning in (
        ("certificate_required", "wants a certificate, and we showed none"),
        ("unknown_ca", f"does not know the authority of {ours}"),
        ("expired", f"says that {ours} has expired; renew it with 'switchfold certs renew'"),
        ("revoked", f"says that {ours} was revoked; issue another with 'switchfold certs issue'"),
        ("certificate", f"refused {ours} ({reason.replace('_', ' ')})"),
    ):
        if mark in reason:
            return f"it {meaning}"
    return f"TLS handshake failed: {reason.replace('_', ' ') or error}"
