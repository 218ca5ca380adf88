# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The state of a testbed: processes, links, bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .network.link_counters import LinkBytes, SwitchLinkBytes
from .network.link_rates import LinkRates
from .network.namespaces import namespace_inode
from .processes.processes import read_records
from .processes.rendezvous import PLACES_FILE
from .state import Record


@dataclass(frozen=True, kw_only=True)
class TestbedStatus:
    """A testbed as it is now."""

    __test__ = False

    name: str
    mode: str
    target: str
    variant: str
    """Of the aggregation program; the name of a user's own program."""
    is_up: bool
    """Whether every process that should run does, and every namespace exists."""
    owner_pid: int | None
    run_directory: str
    controller_address: str
    shaper: str | None
    processes: tuple[tuple[str, int, bool], ...]
    """Name, pid, whether it lives."""
    links: tuple[tuple[str, int, int | None, LinkBytes | None], ...]
    """Host, switch port, rate in bits per second, bytes so far where they can be read."""
    switch_links: tuple[tuple[str, int, str, int, int | None, SwitchLinkBytes | None], ...]
    """Both switches with their ports, rate in bits per second, bytes so far as above."""
    switch_of: dict[str, str]
    """Name of each host's switch."""
    cut_links: tuple[str, ...]
    """Names of the links that are cut."""
    changed_rates: tuple[tuple[str, str, int | None], ...]
    """Sender, receiver and present rate in bits per second of directions that `testbed rate` has
    changed; None: unshaped."""
    places: str | None
    """Value of SWITCHFOLD_PLACES for processes of this machine (mode udp)."""


def read_status(
    record: Record,
    controller_address: str,
    read_link_bytes: Callable[[], tuple[LinkBytes, ...]],
    read_switch_link_bytes: Callable[[], tuple[SwitchLinkBytes, ...]],
) -> TestbedStatus:
    """Return processes, rates and bytes as they are now; bytes only while they can be read."""
    processes = tuple(
        (process.name, process.pid, process.is_leader_alive())
        for process in read_records(record.directory)
    )
    switches = {switch.name for switch in record.topology.switches}
    living = {name for name, _, is_alive in processes if is_alive}
    expected = {name for name, _, _ in processes if name in switches | {"controller"}}
    is_network_there = all(
        inode is not None and namespace_inode(name) == inode
        for name, inode in record.namespaces.items()
    )
    counted: dict[str, LinkBytes] = {}
    between: dict[tuple[str, str], SwitchLinkBytes] = {}
    if is_network_there and (record.namespaces or switches <= living):
        counted = {link.host: link for link in read_link_bytes()}
        between = {(link.a, link.b): link for link in read_switch_link_bytes()}
    return TestbedStatus(
        name=record.name,
        mode=record.mode,
        places=str(record.directory / PLACES_FILE) if record.mode == "udp" else None,
        target=record.target,
        variant=Path(record.own_program).stem or record.variant,
        is_up=is_network_there and expected <= living,
        owner_pid=record.owner_pid,
        run_directory=str(record.directory),
        controller_address=controller_address,
        shaper=record.shaper,
        processes=processes,
        links=tuple(
            (link.host, link.port, link.rate_bits_per_s, counted.get(link.host))
            for link in record.topology.links
        ),
        switch_links=tuple(
            (
                link.a,
                link.a_port,
                link.b,
                link.b_port,
                link.rate_bits_per_s,
                between.get((link.a, link.b)),
            )
            for link in record.topology.switch_links
        ),
        switch_of={link.host: link.switch for link in record.topology.links},
        cut_links=tuple(record.cut_links),
        changed_rates=_changed_rates(LinkRates(record=record)),
    )


def _changed_rates(rates: LinkRates) -> tuple[tuple[str, str, int | None], ...]:
    changed, topology = rates.changed(), rates.record.topology
    return tuple(
        (end.sender, end.receiver, end.rate_bits_per_s)
        for link in (*topology.links, *topology.switch_links)
        for end in rates.ends(link)
        if end.interface in changed
    )
