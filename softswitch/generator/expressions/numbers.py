# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers in C: values with their range, literals, types that hold them, how they are stored.

A value of up to 127 bits and a sign is a native integer, a larger one a pointer to limbs: 64-bit
words in two's complement, least significant first (runtime/program/wide.h).
"""

from dataclasses import dataclass

from ..c_text import c_string
from ..context import Refusal
from ..headers import storage_bits, storage_type

_BITS = {"int32_t": 31, "int64_t": 63, "wide_int_t": 127}
MAX_BITS = 8192
"""Longest intermediate value; runtime/program/wide.h divides numbers of this size."""


@dataclass(frozen=True)
class Kind:
    """How C represents a value: a native type, or a number of limbs."""

    name: str
    limbs: int = 0

    def holds(self, other: "Kind") -> bool:
        """Whether every value of the other kind fits."""
        if self.limbs or other.limbs:
            return self.limbs >= other.limbs
        return _BITS[self.name] >= _BITS[other.name]


def kind_of(low: int, high: int) -> Kind:
    """Smallest representation that holds a range."""
    for name, bits in _BITS.items():
        if -(1 << bits) <= low and high < (1 << bits):
            return Kind(name)
    bits = max((~low if low < 0 else low).bit_length(), high.bit_length()) + 1
    if bits > MAX_BITS:
        raise Refusal(
            "expression",
            f"an intermediate value needs more than {MAX_BITS} bits",
            "Cast to narrower types before computing",
        )
    return Kind("limbs", (bits + 63) // 64)


@dataclass(frozen=True)
class Value:
    """C code of a number within [low, high], or of a truth value.

    The code is represented as `kind` says, where native types convert by themselves.
    """

    code: str
    low: int
    high: int
    is_bool: bool = False

    @property
    def kind(self) -> Kind:
        """Smallest representation that holds every value."""
        return kind_of(self.low, self.high)

    @property
    def type(self) -> str:
        """Native C type of a value of at most 127 bits and a sign."""
        kind = self.kind
        assert not kind.limbs, self
        return kind.name

    def as_kind(self, kind: Kind) -> str:
        """Code converted to a representation that holds the value, or keeps its low limbs."""
        own = self.kind
        if not kind.limbs:
            return f"({kind.name})({self.code})" if not own.limbs else _lowest(self.code, kind.name)
        if own.limbs >= kind.limbs:
            return self.code
        room = f"WIDE({kind.limbs}), {kind.limbs}"
        if own.limbs:
            return f"wide_extend({room}, {self.code}, {own.limbs})"
        if self.low == self.high:
            return limbs_constant(self.low, kind.limbs)
        if own.name == "wide_int_t" and kind.limbs > 1:
            return f"wide_from_128({room}, {self.code})"
        return f"wide_from_64({room}, (int64_t)({self.code}))"

    def as_unsigned(self, kind: str) -> str:
        """Low bits as an unsigned native type."""
        return f"({kind})({self.code})" if not self.kind.limbs else _lowest(self.code, kind)


def _lowest(code: str, kind: str) -> str:
    name = "wide_low_128" if kind.startswith("wide") else "wide_low_64"
    return f"({kind}){name}({code})"


def result_of(code: str, kind: Kind, low: int, high: int) -> Value:
    """Value computed in a representation that may be larger than its range needs."""
    if kind.limbs and not kind_of(low, high).limbs:
        code = _lowest(code, kind_of(low, high).name)
    return Value(code, low, high)


def constant(value: int) -> str:
    """C code of a number, as its smallest representation."""
    if -(1 << 31) < value < (1 << 31):
        return str(value)
    if -(1 << 63) < value < (1 << 63):
        return f"INT64_C({value})"
    if (kind := kind_of(value, value)).limbs:
        return limbs_constant(value, kind.limbs)
    unsigned = value & ((1 << 128) - 1)
    high, low = unsigned >> 64, unsigned & ((1 << 64) - 1)
    return f"(wide_int_t)((wide_uint_t)UINT64_C({high}) << 64 | UINT64_C({low}))"


def limbs_constant(value: int, limbs: int) -> str:
    """C array of the low limbs of a number."""
    words = [value >> (64 * index) & ((1 << 64) - 1) for index in range(limbs)]
    return f"(const uint64_t[]){{{', '.join(f'UINT64_C({word})' for word in words)}}}"


def unsigned_constant(value: int, kind: str) -> str:
    """C literal of an unsigned type."""
    if kind == "wide_uint_t":
        return f"((wide_uint_t)UINT64_C({value >> 64}) << 64 | UINT64_C({value & (1 << 64) - 1}))"
    return f"UINT64_C({value})" if kind == "uint64_t" else f"UINT32_C({value})"


def bytes_constant(value: int, width: int) -> str:
    """C string of the big-endian bytes of a number."""
    return c_string((value & ((1 << width) - 1)).to_bytes((width + 7) // 8, "big"))


def unsigned_type(bits: int) -> str:
    """Native C type that computes modulo 2**bits or more, at most 128 bits."""
    assert bits <= 128, bits
    return "uint32_t" if bits <= 32 else "uint64_t" if bits <= 64 else "wide_uint_t"


def store(reference: str, width: int, is_signed: bool, code: str) -> str:
    """C statement that stores the low bits of a native unsigned value."""
    if width > 64:
        return f"store_128({reference}, {width}, {code});"
    kind, size = storage_type(width, is_signed), storage_bits(width)
    if width == size:
        return f"{reference} = ({kind})({code});"
    if is_signed:
        gap = size - width
        wide = f"uint{size}_t"
        shifted = f"({kind})({wide})(({wide})({code}) << {gap})"
        return f"{reference} = ({kind})({shifted} >> {gap});"
    return f"{reference} = ({kind})(({code}) & {unsigned_constant((1 << width) - 1, 'uint64_t')});"
