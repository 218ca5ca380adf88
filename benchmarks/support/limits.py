# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Lower limits of an allreduce's time, and the measured times beside them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from switchfold.hostlib.schemes.tcp import TCP_FRAME_BYTES, TCP_PAYLOAD_BYTES
from switchfold.hostlib.slots import wire

CPU_BOUND_SHARE = 0.9
"""Above this share of all cores' time, the processor limits a time, not the links."""
SWITCH_BOUND_SHARE = 0.75
"""Above this share of one core, the switch limits a time: its data plane is one thread."""


def switchfold_efficiency(values_per_packet: int) -> float:
    """Return payload over frame bytes as the shaper counts them: without preamble, gap and FCS."""
    payload = values_per_packet * wire.VALUE_BYTES
    headers = wire.ETHERNET_BYTES + wire.IPV4_BYTES + wire.UDP_BYTES + wire.HEADER_BYTES
    return payload / (payload + headers)


def switchfold_limit_s(payload_bytes: int, rate_bits_per_s: float, values_per_packet: int) -> float:
    """Return 8 S / (C g): every byte crosses each worker's link once in each direction."""
    return 8 * payload_bytes / (rate_bits_per_s * switchfold_efficiency(values_per_packet))


def ring_limit_s(payload_bytes: int, rate_bits_per_s: float, num_workers: int) -> float:
    """Return 2 (n - 1) / n times 8 S / (C g'), the time of a ring's bytes on each link."""
    share = 2 * (num_workers - 1) / num_workers
    efficiency = TCP_PAYLOAD_BYTES / TCP_FRAME_BYTES
    return share * 8 * payload_bytes / (rate_bits_per_s * efficiency)


def host_allreduce_limit_s(payload_bytes: int, rates_bits_per_s: Sequence[float]) -> float:
    """Return the limit of any sum among hosts by TCP, whose links have these rates.

    Each host sends its vector, and n - 1 vectors must come to sums, and n - 1 sums to the others:
    with equal rates, that is a ring's limit.
    """
    shared = 2 * (len(rates_bits_per_s) - 1) / sum(rates_bits_per_s)
    efficiency = TCP_PAYLOAD_BYTES / TCP_FRAME_BYTES
    return 8 * payload_bytes / efficiency * max(1 / min(rates_bits_per_s), shared)


def routed_ring_limit_s(
    payload_bytes: int, num_workers: int, loads: Iterable[tuple[int, float]]
) -> float:
    """Return the limit of a ring whose streams, one from each worker to the next, share links.

    `loads` has the number of streams and the rate in bits/s for each direction of a link.
    """
    return max(ring_limit_s(payload_bytes, rate / count, num_workers) for count, rate in loads)


@dataclass(frozen=True, kw_only=True)
class Series:
    """The verified runs of one contender, without warm-up."""

    label: str
    limit_s: float
    times_s: tuple[float, ...]
    busy_shares: tuple[float, ...]
    """Used share of all cores' time in each run, by any process."""
    worker_cpu_s: tuple[float, ...]
    """Processor time of all workers together in each run."""
    switch_cpu_s: tuple[float, ...]
    """Processor time of all switches together in each run."""
    busiest_switch_s: tuple[float, ...]
    """Processor time of the busiest switch in each run."""

    @property
    def median_s(self) -> float:
        return statistics.median(self.times_s)

    @property
    def share_of_limit(self) -> float:
        return self.limit_s / self.median_s

    @property
    def busy_share(self) -> float:
        return statistics.median(self.busy_shares)

    @property
    def is_cpu_bound(self) -> bool:
        switch_share = statistics.median(self.busiest_switch_s) / self.median_s
        return self.busy_share > CPU_BOUND_SHARE or switch_share > SWITCH_BOUND_SHARE

    def as_dict(self) -> dict[str, Any]:
        return {
            "times_s": list(self.times_s),
            "median_s": self.median_s,
            "min_s": min(self.times_s),
            "max_s": max(self.times_s),
            "limit_s": self.limit_s,
            "share_of_limit": self.share_of_limit,
            "busy_share": self.busy_share,
            "is_cpu_bound": self.is_cpu_bound,
            "worker_cpu_s": statistics.median(self.worker_cpu_s),
            "switch_cpu_s": statistics.median(self.switch_cpu_s),
        }


def collect_series(label: str, workers: list[dict[str, Any]], limit_s: float) -> Series:
    """Join the workers' runs: each lasts from the first worker's start to the last one's end.

    Raises ValueError if workers hold different results of the same run.
    """
    runs = [run for worker in workers for run in worker["runs"] if run["label"] == label]
    repeats = sorted({run["repeat"] for run in runs})
    by_repeat = [[run for run in runs if run["repeat"] == repeat] for repeat in repeats]
    for repeat, each in zip(repeats, by_repeat, strict=True):
        if len({run["checksum"] for run in each}) != 1:
            raise ValueError(f"workers hold different results after {label} repeat {repeat}")
    counted = by_repeat[1:]
    spans = [_span(each, "total_s") for each in counted]
    switches = [_switch_spans(each) for each in counted]
    return Series(
        label=label,
        limit_s=limit_s,
        times_s=tuple(
            max(run["ended_s"] for run in each) - min(run["began_s"] for run in each)
            for each in counted
        ),
        busy_shares=tuple(
            _span(each, "busy_s") / span if span else 0.0
            for each, span in zip(counted, spans, strict=True)
        ),
        worker_cpu_s=tuple(sum(run["cpu_s"] for run in each) for each in counted),
        switch_cpu_s=tuple(sum(each) for each in switches),
        busiest_switch_s=tuple(max(each, default=0.0) for each in switches),
    )


def _span(runs: list[dict[str, Any]], counter: str) -> float:
    """Return the increase of a counter that all workers read, from first start to last end."""
    before, after = (
        [run[side][counter] for run in runs] for side in ("processor_before", "processor_after")
    )
    return max(after) - min(before)


def _switch_spans(runs: list[dict[str, Any]]) -> list[float]:
    """Return the processor time of each switch, from first start to last end."""
    before, after = (
        zip(*(run[side]["switches_s"] for run in runs), strict=True)
        for side in ("processor_before", "processor_after")
    )
    return [max(ends) - min(starts) for starts, ends in zip(before, after, strict=True)]
