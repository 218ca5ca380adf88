# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How a token travels: as metadata of every call to a controller."""

from __future__ import annotations

from typing import Final

HEADER: Final = "authorization"
SCHEME: Final = "Bearer "
MAX_TOKEN_LENGTH: Final = 1024


def token_problem(token: str) -> str:
    """Return why a token cannot be sent, "" if it can; the text does not show the token."""
    if len(token) > MAX_TOKEN_LENGTH:
        return f"has {len(token)} characters; at most {MAX_TOKEN_LENGTH} are allowed"
    if not all("!" <= character <= "~" for character in token):
        return "must consist of printable ASCII characters without spaces"
    return ""


def token_metadata(token: str) -> tuple[tuple[str, str], ...]:
    """Return the metadata of a call with this token; none without."""
    return ((HEADER, SCHEME + token),) if token else ()
