# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What hosts and switches can carry: figures of named hardware, each with its source.

Figures of your own hosts come from `switchfold calibrate` (`calibration_file`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from ..errors import SchemeError
from .capacity import Capacity


@dataclass(frozen=True, kw_only=True)
class HostProfile:
    """Processor times of a host; 0: none. The fields are those of `Capacity`."""

    name: str
    source: str
    """Where the figures come from."""
    worker_chunk_s: float = 0.0
    tcp_byte_s: float = 0.0
    ring_step_s: float = 0.0
    shared_tcp_byte_s: float = 0.0

    def describe(self) -> str:
        """Return the figures in one line."""
        if not (self.worker_chunk_s or self.tcp_byte_s or self.ring_step_s):
            return f"hosts: {self.name}, which keep up with any link ({self.source})"
        return (
            f"hosts: {self.name}, {1e6 * self.worker_chunk_s:.3g} us of a core per chunk sent and"
            f" received, {1e9 * self.tcp_byte_s:.3g} ns per byte sent by TCP,"
            f" {1e6 * self.ring_step_s:.3g} us per step of a ring ({self.source})"
        )


@dataclass(frozen=True, kw_only=True)
class SwitchProfile:
    """Processor times of a switch; 0: it keeps up. The fields are those of `Capacity`."""

    name: str
    source: str
    """Where the figures come from."""
    switch_packet_s: float = 0.0
    switch_round_s: float = 0.0
    shared_chunk_s: float = 0.0
    most_bits_per_s: float = 0.0
    """Rate of its fastest ports; 0: no limit."""

    def describe(self) -> str:
        """Return the figures in one line."""
        carries = "which keeps up with its links"
        if self.switch_packet_s:
            carries = f"{1e6 * self.switch_packet_s:.3g} us of a core per packet"
        if self.most_bits_per_s:
            carries += f" of up to {self.most_bits_per_s / 1e9:g} Gbit/s"
        if self.switch_round_s:
            carries += f", {1e6 * self.switch_round_s:.3g} us per round of one chunk"
        return f"switch: {self.name}, {carries} ({self.source})"


_PAGE: Final = "docs/performance.md, a virtual machine with 2 cores"
HOSTS: Final[Mapping[str, HostProfile]] = {
    each.name: each
    for each in (
        HostProfile(
            name="frame-by-frame",
            source=f"{_PAGE}, links that carry single frames; not measured on your hosts",
            worker_chunk_s=3e-6,
            tcp_byte_s=3.4e-9,
            ring_step_s=470e-6,
        ),
        HostProfile(
            name="super-frames",
            source=f"{_PAGE}, links that carry 64 packets at once; not measured on your hosts",
            worker_chunk_s=1.6e-6,
            tcp_byte_s=0.9e-9,
            ring_step_s=470e-6,
        ),
        HostProfile(name="unlimited", source="no hosts are: a bound"),
    )
}
"""Hosts by name."""
SWITCHES: Final[Mapping[str, SwitchProfile]] = {
    each.name: each
    for each in (
        SwitchProfile(
            name="softswitch",
            source=f"{_PAGE}, links that carry single frames",
            switch_packet_s=2.5e-6,
            switch_round_s=675e-6,
            shared_chunk_s=7.1e-6,
        ),
        SwitchProfile(
            name="softswitch-super-frames",
            source=f"{_PAGE}, links that carry up to 64 packets at once",
            switch_packet_s=1.1e-6,
            shared_chunk_s=2.8e-6,
        ),
        SwitchProfile(
            name="bmv2",
            source="docs/performance.md, BMv2 1.15 with its default build: 549 wide packets/s",
            switch_packet_s=1 / 549,
        ),
        SwitchProfile(
            name="tofino",
            source="an ASIC that adds at the rate of its ports: SwitchML's published figures for"
            " 4 to 16 workers on links of 100 Gbit/s are 97 % of their rate; Switchfold's programs"
            " do not run on it, so this is a bound",
            most_bits_per_s=1e11,
        ),
        SwitchProfile(name="unlimited", source="no switch is: a bound"),
    )
}
"""Switches by name."""
DEFAULT_HOSTS: Final = "frame-by-frame"
DEFAULT_SWITCH: Final = "softswitch"
_P = TypeVar("_P", HostProfile, SwitchProfile)


def find_hosts(name: str) -> HostProfile:
    """Return the hosts of this name; SchemeError lists the names."""
    return _find("hosts", HOSTS, name)


def find_switch(name: str) -> SwitchProfile:
    """Return the switch of this name; SchemeError lists the names."""
    return _find("switch", SWITCHES, name)


def _find(what: str, known: Mapping[str, _P], name: str) -> _P:
    if name not in known:
        raise SchemeError(
            f"no {what} {name!r}; write {', '.join(known)}, or the .json file of `switchfold"
            " calibrate`"
        )
    return known[name]


def capacity_of(hosts: HostProfile, switch: SwitchProfile, shared_cores: int = 0) -> Capacity:
    """Return the capacity of these hosts around this switch."""
    return Capacity(
        worker_chunk_s=hosts.worker_chunk_s,
        tcp_byte_s=hosts.tcp_byte_s,
        ring_step_s=hosts.ring_step_s,
        switch_packet_s=switch.switch_packet_s,
        switch_round_s=switch.switch_round_s,
        shared_chunk_s=switch.shared_chunk_s,
        shared_tcp_byte_s=hosts.shared_tcp_byte_s,
        shared_cores=shared_cores,
    )
