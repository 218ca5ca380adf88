# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the operator's token and certificate for a command that is given none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ...bmv2_topos.config import (
    OPERATOR_CREDENTIAL_FILE,
    OPERATOR_CREDENTIALS,
    SWITCH_OPERATOR_CREDENTIALS,
)
from .endpoint import UNIX_PREFIX

_VARIABLES: Final = ("SWITCHFOLD_OPERATOR_TOKEN", "SWITCHFOLD_TOKEN")


def operator_token(address: str) -> str:
    """Return the token for the controller at `address`, "" when none is known.

    A testbed's own token comes first: tokens in the environment belong to another controller.
    """
    path = _beside(address, OPERATOR_CREDENTIAL_FILE)
    if path is not None:
        return path.read_text("ascii").strip()
    return next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), "")


def operator_credentials(address: str) -> Path | None:
    """Return the folder of certificates for the controller at `address`, None when none is known.

    A testbed's own comes first, as with tokens.
    """
    return _beside(address, OPERATOR_CREDENTIALS) or named_credentials()


def named_credentials() -> Path | None:
    """Return the operator's own folder of certificates, None when the environment names none."""
    named = os.environ.get("SWITCHFOLD_CREDENTIALS")
    return Path(named) if named else None


def switch_credentials_at(address: str) -> Path | None:
    """Return the folder of certificates for the testbed's switch at `address`, None elsewhere."""
    return _beside(address, SWITCH_OPERATOR_CREDENTIALS)


def _beside(address: str, name: str) -> Path | None:
    """Return a file or folder of the testbed that has this socket, None without."""
    if not address.startswith(UNIX_PREFIX):
        return None
    path = Path(address.removeprefix(UNIX_PREFIX)).parent / name
    return path if os.access(path, os.R_OK) else None
