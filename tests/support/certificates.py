# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Certificates of tests: one authority, a stranger's, and ends that nobody must accept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from switchfold.hostlib.credentials import Credentials, Role
from switchfold.hostlib.credentials.authority import CertificateAuthority

EXPIRED_DAYS = -1e-3
"""Over for a minute: certificates count whole seconds, and the last one is valid."""


@dataclass(frozen=True)
class CertificateSet:
    """An authority with a certificate of each role, named after the role."""

    authority: CertificateAuthority
    stranger: CertificateAuthority

    @classmethod
    def create(cls, folder: Path) -> CertificateSet:
        """Make both authorities below `folder`."""
        made = cls(
            CertificateAuthority.create(folder / "authority"),
            CertificateAuthority.create(folder / "stranger"),
        )
        for role in Role:
            made.authority.issue(role, str(role))
        return made

    def of(self, role: Role) -> Credentials:
        """Return the credentials of a role's first certificate."""
        return Credentials(self.authority.folder / "issued" / str(role))

    def strange(self, role: Role) -> Credentials:
        """Return new credentials by the other authority, which trust that one."""
        return self.stranger.issue(role, f"{role}-{len(self.stranger.list_issued())}")

    def mixed(self, role: Role) -> Credentials:
        """Return credentials by the other authority that trust ours, as a thief would make them."""
        made = self.strange(role)
        made.authority.write_bytes((self.authority.folder / "ca.pem").read_bytes())
        made.revoked.write_bytes((self.authority.folder / "crl.pem").read_bytes())
        return made

    def another(self, role: Role, name: str) -> Credentials:
        """Return valid credentials of a new name."""
        return self.authority.issue(role, name)

    def expired(self, role: Role) -> Credentials:
        """Return credentials that were valid until now."""
        return self.authority.issue(role, f"expired-{role}", days=EXPIRED_DAYS)

    def revoked(self, role: Role) -> Credentials:
        """Return credentials that the authority has revoked."""
        made = self.authority.issue(role, f"revoked-{role}")
        self.authority.revoke(f"revoked-{role}")
        return made


def damaged_caller(certificates: CertificateSet, kind: str, role: Role) -> Credentials | None:
    """Return what a caller has that nobody must let in as `role`."""
    kinds: dict[str, Callable[[Role], Credentials | None]] = {
        "none": lambda _: None,
        "wrong authority": certificates.mixed,
        "expired": certificates.expired,
        "revoked": certificates.revoked,
        "wrong role": lambda role: certificates.of(
            Role.READ_ONLY if role is Role.WORKER else Role.WORKER
        ),
    }
    return kinds[kind](role)
