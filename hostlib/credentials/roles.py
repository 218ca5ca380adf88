# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Roles that a certificate proves, as DNS names of its subject: worker.switchfold.

Names are of roles and not of machines: a process that moves to another address keeps its
certificate, and a client who dials a controller takes no other role's certificate for it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any, Final

_DOMAIN: Final = "switchfold"


class Role(enum.StrEnum):
    """What the owner of a certificate or a token may do."""

    CONTROLLER = "controller"
    """Serve workers and operators, and program switches."""
    SWITCH = "switch"
    """Serve P4Runtime."""
    SERVER = "server"
    """Be a parameter server."""
    DATABASE = "database"
    """Keep the state of controllers; a PostgreSQL server, known by its address."""
    WORKER = "worker"
    """Take part in jobs."""
    OPERATOR = "operator"
    """Look at jobs, switches and links, and change them."""
    READ_ONLY = "read-only"
    """Look at them."""


def role_name(role: Role, name: str = "") -> str:
    """Return the DNS name that proves a role, or that proves to be this one of the role."""
    return f"{name}.{role}.{_DOMAIN}" if name else f"{role}.{_DOMAIN}"


def roles_of_names(names: Iterable[str]) -> frozenset[Role]:
    """Return the roles that a certificate's DNS names prove; other names do not matter."""
    proved = set(names)
    return frozenset(role for role in Role if role_name(role) in proved)


def roles_of(certificate: Mapping[str, Any] | None) -> frozenset[Role]:
    """Return the roles of a verified certificate, as `ssl.SSLSocket.getpeercert` returns it."""
    names = (certificate or {}).get("subjectAltName", ())
    return roles_of_names(value for kind, value in names if kind == "DNS")
