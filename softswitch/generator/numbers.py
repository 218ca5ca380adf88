# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers in C: values with their range, literals, types that hold them, how they are stored."""

from dataclasses import dataclass

from softswitch.generator.context import Refusal
from softswitch.generator.headers import storage_type

_BITS = {"int32_t": 31, "int64_t": 63, "wide_int_t": 127}


@dataclass(frozen=True)
class Value:
    """C code of a number within [low, high], or of a truth value."""

    code: str
    low: int
    high: int
    is_bool: bool = False

    @property
    def type(self) -> str:
        """Smallest C type that holds every value."""
        for name, bits in _BITS.items():
            if -(1 << bits) <= self.low and self.high < (1 << bits):
                return name
        raise Refusal(
            "expression",
            "an intermediate value needs more than 127 bits",
            "Cast to narrower types before computing",
        )

    def as_type(self, name: str) -> str:
        """Code converted to a C type."""
        return f"({name})({self.code})"


def constant(value: int) -> str:
    """C literal of a number of at most 128 bits."""
    if -(1 << 31) < value < (1 << 31):
        return str(value)
    if -(1 << 63) < value < (1 << 63):
        return f"INT64_C({value})"
    unsigned = value & ((1 << 128) - 1)
    high, low = unsigned >> 64, unsigned & ((1 << 64) - 1)
    return f"(wide_int_t)((wide_uint_t)UINT64_C({high}) << 64 | UINT64_C({low}))"


def unsigned_constant(value: int, kind: str) -> str:
    """C literal of an unsigned type."""
    if kind == "wide_uint_t":
        return f"((wide_uint_t)UINT64_C({value >> 64}) << 64 | UINT64_C({value & (1 << 64) - 1}))"
    return f"UINT64_C({value})" if kind == "uint64_t" else f"UINT32_C({value})"


def unsigned_type(bits: int) -> str:
    """C type that computes modulo 2**bits or more."""
    if bits > 128:
        raise Refusal(
            f"value of {bits} bits",
            "native code computes with at most 128 bits",
            "Split it into fields of 64 bits or less",
        )
    return "uint32_t" if bits <= 32 else "uint64_t" if bits <= 64 else "wide_uint_t"


def store(reference: str, width: int, is_signed: bool, code: str) -> str:
    """C statement that stores the low bits of an unsigned value."""
    kind = storage_type(width, is_signed)
    size = int("".join(char for char in kind if char.isdigit()))
    if width == size:
        return f"{reference} = ({kind})({code});"
    if is_signed:
        gap = size - width
        wide = f"uint{size}_t"
        shifted = f"({kind})({wide})(({wide})({code}) << {gap})"
        return f"{reference} = ({kind})({shifted} >> {gap});"
    return f"{reference} = ({kind})(({code}) & {unsigned_constant((1 << width) - 1, 'uint64_t')});"
