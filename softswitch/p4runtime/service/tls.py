# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""TLS and mutual TLS of the P4Runtime server: reads and checks the files."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from ...errors import SoftswitchError


class TlsError(SoftswitchError):
    """A certificate or key cannot be used."""


@dataclass(frozen=True, kw_only=True)
class TlsFiles:
    """PEM files of the server."""

    certificate: Path
    """The server's certificate, with its chain."""
    key: Path
    """The certificate's private key, without a passphrase."""
    client_ca: Path | None = None
    """Certificate of the authority that signs clients' certificates; clients must then show one."""

    def credentials(self) -> grpc.ServerCredentials:
        """Read the files. Raises TlsError, which names the file."""
        certificate = _read(self.certificate, "certificate")
        key = _read(self.key, "key")
        client_ca = None if self.client_ca is None else _read(self.client_ca, "client CA")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate, self.key, password=_refuse_passphrase)
        except (ssl.SSLError, ValueError) as exc:
            raise TlsError(
                f"TLS: {self.certificate} and {self.key} are not a PEM certificate and its "
                f"private key: {_reason(exc)}"
            ) from exc
        if self.client_ca is not None:
            try:
                context.load_verify_locations(self.client_ca)
            except ssl.SSLError as exc:
                raise TlsError(
                    f"TLS: {self.client_ca} holds no PEM certificate: {_reason(exc)}"
                ) from exc
        return grpc.ssl_server_credentials(
            [(key, certificate)],
            root_certificates=client_ca,
            require_client_auth=client_ca is not None,
        )


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise TlsError(f"TLS: the {what} cannot be read: {exc.strerror}: {path}") from exc


def _refuse_passphrase() -> str:
    raise ValueError("the key has a passphrase; give a key without one")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error)
