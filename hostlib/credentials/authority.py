# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A certificate authority in a folder, for development and for clusters that have no other.

Only what makes certificates imports this module: it needs the package cryptography.

DIR/ca.pem, DIR/ca.key   the authority; the key signs everything, so the folder is its owner's
DIR/crl.pem              its list of revoked certificates
DIR/certificates/        all certificates that it has signed, by serial number
DIR/issued/NAME/         one process's credentials: ca.pem, cert.pem, key.pem, crl.pem
"""

from __future__ import annotations

import datetime
import fcntl
import ipaddress
import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast, final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ..errors import CredentialsError
from .callers import dns_names, load_revocations
from .files import (
    AUTHORITY_FILE,
    REVOKED_FILE,
    Credentials,
)
from .roles import Role, role_name, roles_of_names

DEFAULT_DAYS: Final = 90.0
"""How long a certificate is valid."""
AUTHORITY_DAYS: Final = 3650.0
_CLOCK_SKEW: Final = datetime.timedelta(minutes=5)
"""Certificates are valid from so long ago: clocks of other machines may be late."""
_AUTHORITY_KEY: Final = "ca.key"
_ISSUED: Final = "issued"
_SIGNED: Final = "certificates"
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, kw_only=True)
class IssuedCertificate:
    """What the authority knows of a certificate."""

    name: str
    role: Role
    serial: int
    not_after: datetime.datetime
    """UTC."""
    is_revoked: bool


@final
class CertificateAuthority:
    """Issues, renews and revokes certificates. Errors are CredentialsErrors."""

    def __init__(self, folder: Path) -> None:
        """Open the authority in `folder`."""
        self.folder = folder
        self._certificate = _load_certificate(folder / AUTHORITY_FILE)
        path = folder / _AUTHORITY_KEY
        pem = _read(path)
        try:
            key = serialization.load_pem_private_key(pem, password=None)
        except (ValueError, TypeError) as exc:
            raise CredentialsError(f"{path} is not a private key: {exc}") from exc
        if key.public_key() != self._certificate.public_key():
            raise CredentialsError(f"{folder}: {_AUTHORITY_KEY} is not the key of {AUTHORITY_FILE}")
        self._key = cast("ec.EllipticCurvePrivateKey", key)

    @classmethod
    def create(
        cls, folder: Path, *, name: str = "switchfold", days: float = AUTHORITY_DAYS
    ) -> CertificateAuthority:
        """Make an authority in a new or empty folder."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise CredentialsError(
                    f"{folder} is not empty; name a new folder, or use the authority in it with"
                    " 'switchfold certs issue'"
                )
            folder.chmod(0o700)
        except OSError as exc:
            raise CredentialsError(f"cannot make {folder}: {exc.strerror}") from exc
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} authority")])
        builder = _builder(subject, subject, key.public_key(), days)
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        _write(folder / _AUTHORITY_KEY, _key_pem(key))
        _write(folder / AUTHORITY_FILE, certificate.public_bytes(serialization.Encoding.PEM))
        authority = cls(folder)
        authority._publish(())
        return authority

    def issue(
        self, role: Role, name: str, *, days: float = DEFAULT_DAYS, addresses: Sequence[str] = ()
    ) -> Credentials:
        """Make a key and a certificate for a new name, and return their folder.

        `addresses` are IP addresses and DNS names, for other programs that call this process.
        """
        if not _NAME.fullmatch(name):
            raise CredentialsError(
                f"{name!r} is not a name of 1 to 63 letters, digits, '_', '.' and '-'"
            )
        with self._locked():
            credentials = self._credentials(name)
            if credentials.certificate.exists() and not self._is_revoked(name):
                raise CredentialsError(
                    f"{credentials.folder} has a certificate; renew it with 'switchfold certs "
                    "renew', or revoke it first"
                )
            credentials.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            key = ec.generate_private_key(ec.SECP256R1())
            certificate = self._sign(role, name, key.public_key(), days, _alternatives(addresses))
            _write(credentials.key, _key_pem(key))
            _write(credentials.authority, _read(self.folder / AUTHORITY_FILE))
            _write(credentials.revoked, _read(self.folder / REVOKED_FILE))
            _write(credentials.certificate, certificate)
        return credentials

    def renew(self, name: str, *, days: float = DEFAULT_DAYS) -> Credentials:
        """Make a new certificate for a name's present key; the old one stays valid until its end.

        The key stays, so that the one file that changes is replaced at once, under running
        processes.
        """
        with self._locked():
            credentials = self._credentials(name)
            old = self._issued(name)
            if self._is_revoked(name):
                raise CredentialsError(
                    f"the certificate of {name} is revoked; issue another with 'switchfold certs "
                    "issue'"
                )
            names = old.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            role = _role(old)
            own = {x509.DNSName(role_name(role)), x509.DNSName(role_name(role, name))}
            others = [one for one in names if one not in own]
            key = cast("ec.EllipticCurvePublicKey", old.public_key())
            _write(credentials.certificate, self._sign(role, name, key, days, others))
        return credentials

    def revoke(self, name: str) -> IssuedCertificate:
        """Revoke a name's certificate and those that it replaced.

        The list of revoked certificates in all folders of this authority follows. Other machines
        need the new crl.pem, too.
        """
        with self._locked():
            newest = self._issued(name)
            revoked = {one.serial_number: one for one in self._revocations()}
            for certificate in map(_load_certificate, (self.folder / _SIGNED).iterdir()):
                if certificate.subject == newest.subject:
                    revoked.setdefault(certificate.serial_number, _revocation(certificate))
            self._publish(list(revoked.values()))
        return self._described(name, newest)

    def list_issued(self) -> list[IssuedCertificate]:
        """Return the newest certificate of each name, by name."""
        folder = self.folder / _ISSUED
        names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        return [self._described(name, self._issued(name)) for name in names]

    def _described(self, name: str, certificate: x509.Certificate) -> IssuedCertificate:
        return IssuedCertificate(
            name=name,
            role=_role(certificate),
            serial=certificate.serial_number,
            not_after=certificate.not_valid_after_utc,
            is_revoked=certificate.serial_number
            in {one.serial_number for one in self._revocations()},
        )

    def _credentials(self, name: str) -> Credentials:
        return Credentials(self.folder / _ISSUED / name)

    def _issued(self, name: str) -> x509.Certificate:
        path = self._credentials(name).certificate
        if not _NAME.fullmatch(name) or not path.exists():
            raise CredentialsError(
                f"the authority in {self.folder} has no certificate of {name!r}; 'switchfold certs"
                " list' shows all"
            )
        return _load_certificate(path)

    def _is_revoked(self, name: str) -> bool:
        return self._described(name, self._issued(name)).is_revoked

    def _revocations(self) -> x509.CertificateRevocationList:
        return load_revocations(self.folder / REVOKED_FILE, self._certificate)

    def _sign(
        self,
        role: Role,
        name: str,
        key: ec.EllipticCurvePublicKey,
        days: float,
        others: Sequence[x509.GeneralName],
    ) -> bytes:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = [x509.DNSName(role_name(role)), x509.DNSName(role_name(role, name)), *others]
        certificate = (
            _builder(subject, self._certificate.subject, key, days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
                ),
                critical=False,
            )
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(self._key_identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        signed = self.folder / _SIGNED
        signed.mkdir(mode=0o700, exist_ok=True)
        _write(signed / f"{certificate.serial_number:x}.pem", pem)
        return pem

    @property
    def _key_identifier(self) -> x509.AuthorityKeyIdentifier:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())

    def _publish(self, revoked: Sequence[x509.RevokedCertificate]) -> None:
        """Write the list of revoked certificates, valid as long as the authority."""
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self._certificate.subject)
            .last_update(_now() - _CLOCK_SKEW)
            .next_update(self._certificate.not_valid_after_utc)
            .add_extension(self._key_identifier, critical=False)
            .add_extension(x509.CRLNumber(len(revoked)), critical=False)
        )
        for one in revoked:
            builder = builder.add_revoked_certificate(one)
        pem = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        _write(self.folder / REVOKED_FILE, pem)
        issued = self.folder / _ISSUED
        for folder in issued.iterdir() if issued.is_dir() else ():
            _write(folder / REVOKED_FILE, pem)

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Keep other processes from changing this authority meanwhile."""
        try:
            descriptor = os.open(self.folder / _AUTHORITY_KEY, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as exc:
            raise CredentialsError(f"cannot lock {self.folder}: {exc.strerror}") from exc
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        except OSError as exc:
            raise CredentialsError(f"cannot write in {self.folder}: {exc.strerror}") from exc
        finally:
            os.close(descriptor)


def _role(certificate: x509.Certificate) -> Role:
    roles = roles_of_names(dns_names(certificate))
    if len(roles) != 1:
        raise CredentialsError(f"certificate {certificate.serial_number} has no role of Switchfold")
    (role,) = roles
    return role


def _alternatives(addresses: Sequence[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for text in addresses:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(text)))
        except ValueError:
            if not _NAME.fullmatch(text) or roles_of_names([text]) or text.endswith(".switchfold"):
                raise CredentialsError(f"{text!r} is no IP address or DNS name") from None
            names.append(x509.DNSName(text))
    return names


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: float
) -> x509.CertificateBuilder:
    now = _now()
    try:
        end = now + datetime.timedelta(days=days)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(now, end) - _CLOCK_SKEW)
            .not_valid_after(end)
        )
    except (OverflowError, ValueError) as exc:
        raise CredentialsError(f"a certificate cannot be valid for {days} days: {exc}") from exc


def _revocation(certificate: x509.Certificate) -> x509.RevokedCertificate:
    builder = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number)
    return builder.revocation_date(_now()).build()


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _load_certificate(path: Path) -> x509.Certificate:
    pem = _read(path)
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as exc:
        raise CredentialsError(f"{path} is not a certificate: {exc}") from exc


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise CredentialsError(
            f"cannot read {path}: {exc.strerror}; make an authority with 'switchfold certs init'"
        ) from exc


def _write(path: Path, content: bytes) -> None:
    """Replace a file at once, readable for its owner alone."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
