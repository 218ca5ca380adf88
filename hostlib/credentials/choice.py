# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether an end may do without credentials: only where its user chose so, and it says so."""

from __future__ import annotations

import logging
import os
from typing import Final

from ..errors import CredentialsError
from .roles import Role

VARIABLE: Final = "SWITCHFOLD_INSECURE"
"""1: the user's choice for all processes that have it. It is read here, where it counts."""
_UNIX: Final = "unix:"
_logger = logging.getLogger(__name__)


def require_choice(
    credentials: object,
    *,
    who: str,
    role: Role,
    options: tuple[str, str] = ("--credentials", "--insecure"),
    insecure: bool,
    address: str = "",
) -> None:
    """Raise CredentialsError unless `who` has credentials, or its user chose to do without.

    The choice is `insecure` or the variable, and is logged as a warning at each start; `options`
    are the names by which users give both, for the error. A Unix socket as the only `address`
    needs neither: the rights of its file say who connects.
    """
    if credentials or address.startswith(_UNIX):
        return
    if not (insecure or _is_chosen_by_variable()):
        folder, choice = options
        raise CredentialsError(
            f"{who}: no credentials: make certificates with 'switchfold certs init' and 'issue"
            f" --role {role}', and name their folder in {folder}; or choose {choice} or"
            f" {VARIABLE}=1, without TLS"
        )
    _logger.warning(
        "INSECURE: %s: without credentials, nothing is encrypted and nobody proves who he is; "
        "make certificates with 'switchfold certs'", who,
    )  # fmt: skip


def _is_chosen_by_variable() -> bool:
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "0", "1"):
        raise CredentialsError(
            f"environment variable {VARIABLE} is {value!r}; write 1 to do without TLS, or unset it"
        )
    return value == "1"
