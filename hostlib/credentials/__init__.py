# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Who may call whom: certificates and their roles for every channel, and tokens."""

from ..errors import CredentialsError
from .choice import require_choice
from .files import Credentials, credentials_in
from .roles import Role, role_name, roles_of

__all__ = [
    "Credentials",
    "CredentialsError",
    "Role",
    "credentials_in",
    "require_choice",
    "role_name",
    "roles_of",
]
