# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A second network that joins the hosts of a testbed past all of its switches."""

from __future__ import annotations

from typing import Any, Final

from switchfold.bmv2_topos import Testbed
from switchfold.bmv2_topos.network.namespaces import call_with_route, namespace_path

_BRIDGE: Final = "back"
_PREFIX_LENGTH: Final = 24


def back_address(worker_id: int) -> str:
    """Return a worker's address in the second network."""
    return f"10.213.7.{worker_id + 1}"


def add_back_network(testbed: Testbed) -> None:
    """Join all hosts by a bridge of the kernel.

    It is in the namespace of the first switch, and goes with it. The process of that switch does
    not use it.
    """
    centre = testbed.namespace_of(testbed.switch)
    assert centre is not None, "mode veth"

    def make_bridge(route: Any) -> None:
        route.link("add", ifname=_BRIDGE, kind="bridge")
        route.link("set", index=_index(route, _BRIDGE), state="up")

    call_with_route(centre, make_bridge)
    for host in testbed.topology.hosts:
        near = testbed.namespace_of(host)
        assert near is not None
        port = f"{_BRIDGE}-{host.name}"

        def join(route: Any, near: str = near, port: str = port) -> None:
            peer = {"ifname": _BRIDGE, "net_ns_fd": str(namespace_path(near))}
            route.link("add", ifname=port, kind="veth", peer=peer)
            bridge = _index(route, _BRIDGE)
            route.link("set", index=_index(route, port), master=bridge, state="up")

        def address(route: Any, worker_id: int = host.worker_id) -> None:
            index = _index(route, _BRIDGE)
            route.addr(
                "add", index=index, address=back_address(worker_id), prefixlen=_PREFIX_LENGTH
            )
            route.link("set", index=index, state="up")

        call_with_route(centre, join)
        call_with_route(near, address)


def _index(route: Any, interface: str) -> int:
    return route.link_lookup(ifname=interface)[0]
