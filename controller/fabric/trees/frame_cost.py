# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The cost of an allreduce on a link, in frames and bytes of the wire format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ....hostlib.schemes.tcp import TCP_ACK_BYTES, TCP_FRAME_BYTES, TCP_PAYLOAD_BYTES
from ....hostlib.slots import wire

HOP_LATENCY_S: Final = 30e-6
"""Latency of a packet in one switch, on top of its time on the wire."""


PLANNED_BYTES: Final = 16 << 20
"""Trees are chosen for tensors of this size."""
VALUES_PER_PACKET: Final = {
    "narrow": wire.VALUES_PER_PACKET_NARROW,
    "wide": wire.VALUES_PER_PACKET_WIDE,
}
"""By program variant."""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """One allreduce: the same frames go up and down every link of its trees, shared among them."""

    tensor_bytes: int
    """Size of the tensor at one worker, 4 bytes per element."""
    values_per_packet: int
    is_float: bool = True
    """Whether exponents are agreed on first: one number per chunk, in frames of the same size."""
    frame_overhead_bytes: int = 0
    """Bytes per frame that a link's rate counts beyond the frame."""

    def __post_init__(self) -> None:
        if self.tensor_bytes < 1:
            raise ValueError(f"tensor_bytes is {self.tensor_bytes}, must be at least 1")

    @property
    def frame_bytes(self) -> int:
        """Size of a frame as port counters count it: without preamble, gap and check sequence."""
        return wire.frame_bytes(self.values_per_packet)

    @property
    def num_frames(self) -> int:
        """Frames in each direction over all trees: one per chunk, and those with exponents."""
        values = -(-self.tensor_bytes // wire.VALUE_BYTES)
        chunks = -(-values // self.values_per_packet)
        return chunks + (-(-chunks // self.values_per_packet) if self.is_float else 0)

    @property
    def counted_bytes(self) -> int:
        """Bytes in each direction over all trees, as port counters count."""
        return self.num_frames * self.frame_bytes

    @property
    def link_bytes(self) -> int:
        """Bytes in each direction over all trees, as links' rates count."""
        return self.num_frames * (self.frame_bytes + self.frame_overhead_bytes)

    def latency_s(self, rates_bits_per_s: tuple[float, ...]) -> float:
        """Return the time of one frame over links with these rates, stored and forwarded."""
        bits = 8 * (self.frame_bytes + self.frame_overhead_bytes)
        return sum(bits / rate + HOP_LATENCY_S for rate in rates_bits_per_s)

    def ring_bytes(self, num_workers: int) -> tuple[float, float]:
        """Return the bytes that a ring sends by TCP from each worker to the next, and back."""
        payload = 2 * (num_workers - 1) / num_workers * self.tensor_bytes
        segments = payload / TCP_PAYLOAD_BYTES
        overhead = self.frame_overhead_bytes
        return (
            segments * (TCP_FRAME_BYTES + overhead),
            segments / 2 * (TCP_ACK_BYTES + overhead),
        )
