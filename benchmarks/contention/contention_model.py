# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Limits of jobs that share a switch's slots: by a static split, and by best effort.

`link_bits_per_s` is always C g, the goodput of a job's own links.
"""

from __future__ import annotations

from switchfold.hostlib.slots import wire
from switchfold.hostlib.slots.switch_reducer import split_slots


def slots_rate(slots: float, round_trip_s: float, values_per_packet: int) -> float:
    """Return the bits/s of values that the slots carry, each with one packet per RTT.

    Do not count slots for exponents, which carry no values (`split_slots`).
    """
    return 8 * values_per_packet * wire.VALUE_BYTES * slots / round_trip_s


def static_split(
    num_jobs: int,
    shared_slots: int,
    *,
    link_bits_per_s: float,
    round_trip_s: float,
    values_per_packet: int,
) -> float:
    """Return the goodput of each of `num_jobs` that hold equal parts of the slots, bits/s."""
    value_slots = split_slots(max(2, shared_slots // num_jobs))[1]
    return min(link_bits_per_s, slots_rate(value_slots, round_trip_s, values_per_packet))


def best_effort(link_bits_per_s: float, fallback: float, num_workers: int) -> float:
    """Return C g / ((1 - f) + f n).

    A share f of the packets finds no slot, and these packets of all n workers cross the one link of
    a parameter server.
    """
    return link_bits_per_s / ((1 - fallback) + fallback * num_workers)


def best_effort_fallback(
    num_jobs: int,
    shared_slots: int,
    *,
    link_bits_per_s: float,
    round_trip_s: float,
    values_per_packet: int,
) -> float:
    """Return the share of packets without a slot if all jobs send at the rate of their links."""
    one_slot = slots_rate(1, round_trip_s, values_per_packet)
    wanted = num_jobs * link_bits_per_s / one_slot
    return max(0.0, 1.0 - split_slots(shared_slots)[1] / wanted)
