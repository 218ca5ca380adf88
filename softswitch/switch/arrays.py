# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Control operations on a program's counters, registers, meters and value sets."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_uint64
from typing import NamedTuple

from ..errors import BadArgumentError
from .native import NativeSwitch
from .pipeline import MeterRatesT


class MeterRates(NamedTuple):
    """Two rates per second and their bursts, in packets or bytes as the meter counts."""

    cir: int
    """Committed rate: packets beyond it are yellow."""
    cburst: int
    pir: int
    """Peak rate, at least the committed one: packets beyond it are red."""
    pburst: int


class Arrays:
    """Counters, registers, meters and value sets; positions, atomicity and errors as in Tables."""

    def __init__(self, native: NativeSwitch) -> None:
        self._native = native

    def read_counter(self, array: int, index: int) -> tuple[int, int]:
        """Return packets and bytes of one counter."""
        packets, octets = c_uint64(), c_uint64()
        self._native.control(
            f"counter {array}[{index}]",
            "switch_counter_read",
            array,
            index,
            byref(packets),
            byref(octets),
        )
        return packets.value, octets.value

    def write_counter(self, array: int, index: int, packets: int, octets: int) -> None:
        """Set one counter."""
        self._native.control(
            f"counter {array}[{index}]", "switch_counter_write", array, index, packets, octets
        )

    def read_register(self, array: int, index: int) -> bytes:
        """Return one cell, big-endian, `(width + 7) // 8` bytes."""
        cell = ctypes.create_string_buffer(256)
        length = self._native.control(
            f"register {array}[{index}]", "switch_register_read", array, index, cell, len(cell)
        )
        return cell.raw[:length]

    def write_register(self, array: int, index: int, value: bytes) -> None:
        """Set one cell, big-endian."""
        self._native.control(
            f"register {array}[{index}]", "switch_register_write", array, index, value, len(value)
        )

    def read_meter(self, array: int, index: int) -> MeterRates | None:
        """Return the rates of a meter; None if it is not configured."""
        rates = MeterRatesT()
        self._native.control(
            f"meter {array}[{index}]", "switch_meter_read", array, index, byref(rates)
        )
        return meter_rates(rates)

    def write_meter(self, array: int, index: int, rates: MeterRates | None) -> None:
        """Configure a meter and fill its buckets; None: every packet is green."""
        self._native.control(
            f"meter {array}[{index}]", "switch_meter_write", array, index, seam_rates(rates)
        )

    def write_value_set(self, position: int, members: Sequence[tuple[bytes, bytes]]) -> None:
        """Replace the members of a parser's value set: value and mask of each.

        Both hold the fields of the select's key, big-endian, `(width + 7) // 8` bytes each.
        """
        if any(len(value) != len(mask) for value, mask in members):
            raise BadArgumentError(f"value set {position}: a mask is not as long as its value")
        data = b"".join(value + mask for value, mask in members)
        self._native.control(
            f"value set {position}",
            "switch_value_set_write",
            position,
            data,
            len(data),
            len(members),
        )


def seam_rates(rates: MeterRates | None) -> MeterRatesT:
    """Return rates in the seam's form; None means not configured."""
    return MeterRatesT() if rates is None else MeterRatesT(*rates, 1)


def meter_rates(rates: MeterRatesT) -> MeterRates | None:
    """Return rates of the seam; None for a meter that is not configured."""
    if not rates.is_configured:
        return None
    return MeterRates(rates.cir, rates.cburst, rates.pir, rates.pburst)
