# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Certificates for a benchmark with TLS; needs the extra `controller`."""

from __future__ import annotations

from pathlib import Path

from switchfold.hostlib.credentials import Role
from switchfold.hostlib.credentials.authority import CertificateAuthority


def make_credentials(folder: Path) -> None:
    """Make folders with the credentials of a worker and of a server: `worker` and `server`."""
    authority = CertificateAuthority.create(folder / "authority")
    for role in (Role.WORKER, Role.SERVER):
        authority.issue(role, str(role))
        (folder / str(role)).symlink_to(authority.folder / "issued" / str(role))
