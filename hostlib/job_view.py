# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker knows of its job and of the addresses at both ends."""

from __future__ import annotations

from dataclasses import dataclass

from hostlib.errors import ConfigurationError
from hostlib.wire import (
    MAX_WORKERS,
    UDP_PORT,
    VALUES_PER_PACKET_NARROW,
    VALUES_PER_PACKET_WIDE,
)

UNKNOWN_MAC = "00:00:00:00:00:00"
"""Where the kernel builds the frames, nobody here knows the MAC address."""
MIN_SLOTS = 2
"""One slot for exponents and one for values."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One end of the data path: IPv4 address, MAC address and UDP port."""

    address: str
    """Dotted IPv4 address."""
    udp_port: int = UDP_PORT
    mac: str = UNKNOWN_MAC
    """Needed by transports that build frames themselves."""


@dataclass(frozen=True, kw_only=True)
class JobView:
    """A worker's view of its job in one generation; refuses impossible numbers."""

    job_id: int
    generation: int
    worker_id: int
    num_workers: int
    slot_count: int
    """Slots of the job on the switch; all workers must hold the same number."""
    values_per_packet: int
    switch: Endpoint
    """Where contributions go and results come from."""
    allow_partial: bool = False

    def __post_init__(self) -> None:
        """Check the ranges that the wire format and the protocol set."""
        check_worker(self.worker_id, self.num_workers)
        if self.slot_count < MIN_SLOTS:
            raise ConfigurationError(
                f"job {self.job_id}: {self.slot_count} slots; a job needs at least {MIN_SLOTS},"
                " ask the controller for more slots"
            )
        if self.values_per_packet not in (VALUES_PER_PACKET_NARROW, VALUES_PER_PACKET_WIDE):
            raise ConfigurationError(
                f"job {self.job_id}: {self.values_per_packet} values per packet; this library"
                f" speaks {VALUES_PER_PACKET_NARROW} and {VALUES_PER_PACKET_WIDE}"
            )

    @property
    def worker_bit(self) -> int:
        """This worker's bit in bitmaps."""
        return 1 << self.worker_id

    def missing_workers(self, bitmap: int) -> list[int]:
        """Return the ids of the workers whose bit is clear in `bitmap`."""
        return [i for i in range(self.num_workers) if not bitmap >> i & 1]


def check_worker(worker_id: int, num_workers: int) -> None:
    """Raise ConfigurationError unless 0 <= worker_id < num_workers <= 32."""
    if not 1 <= num_workers <= MAX_WORKERS:
        raise ConfigurationError(
            f"num_workers is {num_workers}; one job holds 1 to {MAX_WORKERS} workers,"
            " use a tree of jobs for more"
        )
    if not 0 <= worker_id < num_workers:
        raise ConfigurationError(
            f"worker_id is {worker_id}; with {num_workers} workers it must be"
            f" 0 to {num_workers - 1}"
        )
