# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A folder with a certificate, its key, the authority and its list of revoked certificates."""

from __future__ import annotations

import functools
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import CredentialsError

AUTHORITY_FILE: Final = "ca.pem"
CERTIFICATE_FILE: Final = "cert.pem"
KEY_FILE: Final = "key.pem"
REVOKED_FILE: Final = "crl.pem"


@dataclass(frozen=True)
class Credentials:
    """One process's credentials, in PEM files; made by `switchfold certs issue`.

    Every use looks for changed files, so a renewed certificate counts from the next connection on.
    """

    folder: Path
    """Holds ca.pem (authority), cert.pem, key.pem (without a passphrase) and crl.pem (revoked)."""

    @property
    def authority(self) -> Path:
        """Certificate of the authority that signs all others."""
        return self.folder / AUTHORITY_FILE

    @property
    def certificate(self) -> Path:
        """This process's certificate."""
        return self.folder / CERTIFICATE_FILE

    @property
    def key(self) -> Path:
        """The certificate's private key."""
        return self.folder / KEY_FILE

    @property
    def revoked(self) -> Path:
        """The authority's list of revoked certificates."""
        return self.folder / REVOKED_FILE

    def version(self) -> tuple[tuple[int, int, int], ...]:
        """Return what differs once a file has been replaced; raises CredentialsError."""
        found: list[tuple[int, int, int]] = []
        for path in (self.authority, self.certificate, self.key, self.revoked):
            try:
                status = path.stat()
            except OSError as error:
                raise self._unreadable(path, error) from error
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
        return tuple(found)

    def check(self) -> None:
        """Raise CredentialsError unless all files are there and belong together."""
        self.new_server_context()

    def own_problem(self) -> str:
        """Return why others will refuse this certificate, "" if nothing is known.

        A handshake in memory with itself shows it: expired, revoked, or of another authority. The
        refusing end often closes the connection and gives no reason. Raises CredentialsError.
        """
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        calling = self.new_client_context()
        calling.check_hostname = False
        ends = [
            calling.wrap_bio(to_client, to_server),
            self.new_server_context().wrap_bio(to_server, to_client, server_side=True),
        ]
        try:
            while ends:
                try:
                    ends[0].do_handshake()
                    del ends[0]
                except ssl.SSLWantReadError:
                    ends.reverse()
        except ssl.SSLCertVerificationError as error:
            return (
                f"our certificate {self.certificate} is not valid: {error.verify_message};"
                " renew it with 'switchfold certs renew', or issue another"
            )
        return ""

    def server_context(self) -> ssl.SSLContext:
        """Return what an accepting end needs: TLS 1.3, a certificate demanded of the client.

        A client's certificate must be the authority's and not revoked; its role is the caller's to
        check. Raises CredentialsError.
        """
        return _server_context(self, self.version())

    def client_context(self) -> ssl.SSLContext:
        """Return what a calling end needs; give `role_name` of the server as server_hostname.

        Raises CredentialsError.
        """
        return _client_context(self, self.version())

    def new_client_context(self) -> ssl.SSLContext:
        """Return a client's context that the caller may change."""
        return self._loaded(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def new_server_context(self) -> ssl.SSLContext:
        """Return a server's context that the caller may change."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        context.num_tickets = 0  # no resumption: each connection shows its certificate
        return self._loaded(context)

    def read(self, path: Path) -> bytes:
        """Return the content of one of the files; raises CredentialsError, which names it."""
        try:
            return path.read_bytes()
        except OSError as error:
            raise self._unreadable(path, error) from error

    def _unreadable(self, path: Path, error: OSError) -> CredentialsError:
        return CredentialsError(
            f"credentials in {self.folder}: {path.name} cannot be read: {error.strerror};"
            " make them with 'switchfold certs issue'"
        )

    def _loaded(self, context: ssl.SSLContext) -> ssl.SSLContext:
        for path in (self.authority, self.certificate, self.key, self.revoked):
            self.read(path)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF | ssl.VERIFY_X509_STRICT
        self._load(
            f"{CERTIFICATE_FILE} and {KEY_FILE} are not a certificate and its key",
            lambda: context.load_cert_chain(self.certificate, self.key, _refuse_passphrase),
        )
        self._load(
            f"{AUTHORITY_FILE} is not a certificate",
            lambda: context.load_verify_locations(self.authority),
        )
        self._load(
            f"{REVOKED_FILE} is not a list of revoked certificates",
            lambda: context.load_verify_locations(self.revoked),
        )
        return context

    def _load(self, problem: str, load: Callable[[], None]) -> None:
        try:
            load()
        except (ssl.SSLError, ValueError) as error:
            raise CredentialsError(
                f"credentials in {self.folder}: {problem} in PEM: {_reason(error)};"
                " make them with 'switchfold certs issue'"
            ) from error


def credentials_in(folder: str | Path | None) -> Credentials | None:
    """Return the credentials of a folder, None if none is given. Raises CredentialsError."""
    if not folder:
        return None
    credentials = Credentials(Path(folder))
    credentials.check()
    return credentials


@functools.lru_cache(maxsize=64)
def _server_context(credentials: Credentials, version: object) -> ssl.SSLContext:
    """Connections share a context, which takes over a millisecond to make, until files change."""
    del version
    return credentials.new_server_context()


@functools.lru_cache(maxsize=64)
def _client_context(credentials: Credentials, version: object) -> ssl.SSLContext:
    del version
    return credentials.new_client_context()


def _refuse_passphrase() -> str:
    raise ValueError("the key has a passphrase; give a key without one")


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return str(error)
