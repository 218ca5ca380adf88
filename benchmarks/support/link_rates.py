# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Changes the rates of a testbed's links while its workers run."""

from __future__ import annotations

from typing import Any

from pyroute2.netlink.exceptions import NetlinkError

from switchfold.bmv2_topos import Testbed
from switchfold.bmv2_topos.errors import KernelError
from switchfold.bmv2_topos.network.links import shape
from switchfold.bmv2_topos.network.namespaces import call_with_route

ROOT_QUEUE = 0xFFFFFFFF


def set_rates(testbed: Testbed, rate_bits_per_s: int) -> None:
    """Set the rate of all links of a testbed in mode veth; no packet may be in flight.

    The links must be shaped already. Raises KernelError.
    """
    for link in testbed.topology.links:
        host = next(host for host in testbed.topology.hosts if host.name == link.host)
        for node, interface in ((host, link.host_interface), (None, link.switch_interface)):
            namespace = testbed.namespace_of(node or testbed.topology.switch_named(link.switch))
            assert namespace is not None
            _remove_queue(namespace, interface)
            shape(interface, rate_bits_per_s, namespace=namespace)


def _remove_queue(namespace: str, interface: str) -> None:
    def remove(route: Any) -> None:
        index = next(iter(route.link_lookup(ifname=interface)))
        route.tc("del", index=index, parent=ROOT_QUEUE)

    try:
        call_with_route(namespace, remove)
    except NetlinkError as exc:
        raise KernelError(f"cannot change the rate of {interface}: {exc}") from exc
