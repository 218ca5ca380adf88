# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers and names as readable text."""

from ipaddress import IPv6Address

from .snapshot import FieldName

_ADDRESS = ("addr", "address", "ip", "src", "dst", "tpa", "spa")


def field_name(name: FieldName) -> str:
    """Return header.field; local variables and metadata of the program without p4c's prefix."""
    header, field = name
    if header == "scalars":
        return field
    return f"{header}.{field}"


def format_value(value: int, width: int, name: str = "") -> str:
    """Return a number in its most readable form: addresses as such, small numbers in decimal."""
    last = name.rpartition(".")[2].lower()
    if width == 48 and not any(word in last for word in ("time", "stamp")):
        return ":".join(f"{byte:02x}" for byte in value.to_bytes(6, "big"))
    if width == 32 and any(word in last for word in _ADDRESS):
        return ".".join(str(byte) for byte in value.to_bytes(4, "big"))
    if width == 128 and any(word in last for word in _ADDRESS):
        return str(IPv6Address(value))
    if value < 10:
        return str(value)
    return f"{value} (0x{value:x})" if value < 1 << 32 else f"0x{value:x}"
