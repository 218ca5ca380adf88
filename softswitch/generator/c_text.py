# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Names and bytes of the program as C text, whatever characters they have."""

import re

_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 _.,:()<>=-"
"""Characters that a string literal may hold as they are; they make no escape or trigraph."""


def identifier(name: str) -> str:
    """Make a C identifier part of a P4 name."""
    return re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "x"


def comment(text: str) -> str:
    """C comment to the end of the line; a name of the program cannot end or extend it."""
    return "// " + re.sub(r"[^ -~]|\\|\?(?=\?)", "_", text)


def c_string(data: bytes) -> str:
    """C string literal of these bytes."""
    inside = "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in data)
    return f'"{inside}"'
