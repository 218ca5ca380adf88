# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What has crossed the links of a testbed: by the kernel's counters, in mode udp by P4's."""

from __future__ import annotations

from pathlib import Path

from ..processes import daemons
from ..processes.certificates import switch_operator
from ..state import Record
from .link_counters import (
    LinkBytes,
    SwitchLinkBytes,
    read_link_bytes,
    read_switch_link_bytes,
)
from .network import namespace_name
from .port_counters import SwitchCalls, read_port_bytes, read_switch_port_bytes


class LinkTotals:
    """Reads the counters of one testbed."""

    def __init__(self, record: Record, p4info: Path | None) -> None:
        """`p4info` is that of the aggregation program; None: another one, with other counters."""
        self._record = record
        self._p4info = p4info

    def of_hosts(self) -> tuple[LinkBytes, ...]:
        """Return what crossed each host's link; nothing where nobody counts it."""
        if self._record.mode == "veth":
            return read_link_bytes(self._record.topology, self._namespaces())
        if self._p4info is None:
            return ()
        return read_port_bytes(self._record.topology, self._calls(self._p4info))

    def of_switches(self) -> tuple[SwitchLinkBytes, ...]:
        """Return what crossed each link between switches; nothing where nobody counts it."""
        if self._record.mode == "veth":
            return read_switch_link_bytes(self._record.topology, self._namespaces())
        if self._p4info is None:
            return ()
        return read_switch_port_bytes(self._record.topology, self._calls(self._p4info))

    def _namespaces(self) -> dict[str, str]:
        record = self._record
        return {
            switch.name: namespace_name(record.name, switch) for switch in record.topology.switches
        }

    def _calls(self, p4info: Path) -> SwitchCalls:
        folder = self._record.directory
        return SwitchCalls(
            addresses={
                switch.name: daemons.switch_address(folder, switch)
                for switch in self._record.topology.switches
            },
            p4info=p4info,
            credentials=switch_operator(folder),
        )
