# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Retransmission timeout from round-trip samples, after RFC 6298: `rtt.h` of the C library."""

from __future__ import annotations

import ctypes
from typing import final

from switchfold.hostlib.native.library import library
from switchfold.hostlib.native.structures import RttStruct


@final
class RoundTripTimer:
    """Smoothed round-trip time and the timeout that follows from it, with exponential backoff.

    It takes only samples of packets that were sent once (Karn's rule). Times are seconds.
    `minimum_s` is the least margin over the smoothed round trip.
    """

    def __init__(self, *, initial_s: float, minimum_s: float, maximum_s: float) -> None:
        self._state: RttStruct = library.rtt_new(initial_s, minimum_s, maximum_s)
        self._at = ctypes.byref(self._state)

    @property
    def smoothed_s(self) -> float | None:
        """Smoothed round-trip time, or None before the first sample."""
        return self._state.smoothed_s if self._state.has_sample else None

    @property
    def queueing_s(self) -> float:
        """How much longer than the shortest round trip the smoothed one is, 0 without samples."""
        return library.rtt_queueing_s(self._at)

    @property
    def steady_s(self) -> float:
        """Retransmission timeout without backoff."""
        return library.rtt_steady_s(self._at)

    @property
    def timeout_s(self) -> float:
        """Present retransmission timeout, backoff included."""
        return library.rtt_timeout_s(self._at)

    def add_sample(self, sample_s: float) -> None:
        """Take one measured round-trip time into account and end any backoff."""
        library.rtt_add_sample(self._at, sample_s)

    def back_off(self) -> None:
        """Double the timeout, until the next sample: an expiry passed without one."""
        library.rtt_back_off(self._at)
