# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What an allreduce could take at best, and what the measured times say beside it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from hostlib import wire

TCP_FRAME_BYTES = 1514
TCP_PAYLOAD_BYTES = 1448
"""MTU 1500 less IPv4, TCP and its timestamp option."""


def switchfold_efficiency(values_per_packet: int) -> float:
    """Return payload over frame bytes as the shaper counts: no preamble, gap or FCS."""
    payload = values_per_packet * wire.VALUE_BYTES
    headers = wire.ETHERNET_BYTES + wire.IPV4_BYTES + wire.UDP_BYTES + wire.HEADER_BYTES
    return payload / (payload + headers)


def switchfold_limit_s(payload_bytes: int, rate_bits_per_s: float, values_per_packet: int) -> float:
    """Return 8 S / (C g): every byte crosses each worker's link once in each direction."""
    return 8 * payload_bytes / (rate_bits_per_s * switchfold_efficiency(values_per_packet))


def ring_limit_s(payload_bytes: int, rate_bits_per_s: float, num_workers: int) -> float:
    """Return 2 (n - 1) / n times 8 S / (C g'): what a ring sends over each link."""
    rounds = 2 * (num_workers - 1) / num_workers
    efficiency = TCP_PAYLOAD_BYTES / TCP_FRAME_BYTES
    return rounds * 8 * payload_bytes / (rate_bits_per_s * efficiency)


@dataclass(frozen=True, kw_only=True)
class Series:
    """The verified times of one way of summing, warm-up left out."""

    label: str
    times_s: tuple[float, ...]
    limit_s: float

    @property
    def median_s(self) -> float:
        return statistics.median(self.times_s)

    @property
    def share_of_limit(self) -> float:
        return self.limit_s / self.median_s

    def as_dict(self) -> dict[str, Any]:
        return {
            "times_s": list(self.times_s),
            "median_s": self.median_s,
            "min_s": min(self.times_s),
            "max_s": max(self.times_s),
            "limit_s": self.limit_s,
            "share_of_limit": self.share_of_limit,
        }


def collect_series(label: str, workers: list[dict[str, Any]], limit_s: float) -> Series:
    """Join the workers' runs: a time lasts from the first worker's start to the last one's end.

    Raises ValueError when workers hold different results of the same run.
    """
    times: list[float] = []
    repeats = sorted({run["repeat"] for run in workers[0]["runs"]})
    for repeat in repeats:
        runs = [
            run
            for worker in workers
            for run in worker["runs"]
            if run["label"] == label and run["repeat"] == repeat
        ]
        if len({run["checksum"] for run in runs}) != 1:
            raise ValueError(f"workers hold different results after {label} repeat {repeat}")
        times.append(max(run["ended_s"] for run in runs) - min(run["began_s"] for run in runs))
    return Series(label=label, times_s=tuple(times[1:]), limit_s=limit_s)
