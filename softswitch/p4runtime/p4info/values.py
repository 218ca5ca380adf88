# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""P4Runtime byte strings (section 8.4) to and from the fixed-width fields of the pipeline."""

from finsy.proto import rpc_code

from ..service.status import RequestError


def field_bytes(width: int) -> int:
    """Return the bytes that a field of `width` bits takes in the pipeline's keys and parameters."""
    return (width + 7) // 8


def decode(value: bytes, width: int, field: str) -> bytes:
    """Return `value` as `field_bytes(width)` big-endian bytes; leading zeros are accepted.

    Raises RequestError INVALID_ARGUMENT for an empty string, OUT_OF_RANGE for too large a value.
    """
    size = (width + 7) >> 3
    surplus = len(value) - size
    if surplus < 0:
        if not value:
            raise RequestError(
                rpc_code.INVALID_ARGUMENT, f"{field}: empty value; zero is written as one zero byte"
            )
        return value.rjust(size, b"\0")
    if surplus > 0:
        if value.count(0, 0, surplus) != surplus:
            raise _too_wide(value, width, field)
        value = value[surplus:]
    if width & 7 and value[0] >> (width & 7):
        raise _too_wide(value, width, field)
    return value


def encode(value: bytes) -> bytes:
    """Return the canonical byte string: no leading zero bytes, at least one byte."""
    return value.lstrip(b"\0") or b"\0"


def decode_signed(value: bytes, width: int, field: str) -> bytes:
    """Return an int<width> as `field_bytes(width)` bytes, two's complement within the width.

    Raises RequestError as `decode` does; leading copies of the sign are accepted.
    """
    if not value:
        raise RequestError(
            rpc_code.INVALID_ARGUMENT, f"{field}: empty value; zero is written as one zero byte"
        )
    number = int.from_bytes(value, "big", signed=True)
    if not -(1 << (width - 1)) <= number < 1 << (width - 1):
        raise _too_wide(value, width, field)
    return (number & ((1 << width) - 1)).to_bytes(field_bytes(width), "big")


def encode_signed(value: bytes, width: int) -> bytes:
    """Return the canonical byte string of an int<width>: the fewest bytes that keep its sign."""
    number = int.from_bytes(value, "big")
    if number >> (width - 1):
        number -= 1 << width
    bits = (number if number >= 0 else ~number).bit_length() + 1
    return number.to_bytes((bits + 7) // 8, "big", signed=True)


def split(packed: bytes, widths: tuple[int, ...]) -> list[bytes]:
    """Split a key or parameter string into its fields."""
    fields: list[bytes] = []
    start = 0
    for width in widths:
        end = start + field_bytes(width)
        fields.append(packed[start:end])
        start = end
    return fields


def full_mask(width: int) -> bytes:
    """Return the mask that compares all `width` bits."""
    return ((1 << width) - 1).to_bytes(field_bytes(width), "big")


def prefix_mask(prefix_len: int, width: int) -> bytes:
    """Return the mask of the `prefix_len` most significant bits."""
    ones = ((1 << prefix_len) - 1) << (width - prefix_len)
    return ones.to_bytes(field_bytes(width), "big")


def covers(mask: bytes, value: bytes) -> bool:
    """Return whether `value` has no bit outside `mask`; both have the same length."""
    bits = int.from_bytes(value, "big")
    return bits & int.from_bytes(mask, "big") == bits


def _too_wide(value: bytes, width: int, field: str) -> RequestError:
    return RequestError(
        rpc_code.OUT_OF_RANGE, f"{field}: value 0x{value.hex()} does not fit into {width} bits"
    )
