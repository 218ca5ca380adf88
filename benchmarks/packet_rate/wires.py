# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces, of switches and of the load generator, with veth pairs between them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from switchfold.bmv2_topos.network.links import wait_for_carrier
from switchfold.bmv2_topos.network.namespaces import (
    call_in_namespace,
    call_with_route,
    create_namespace,
    namespace_path,
    remove_namespace,
)

T = TypeVar("T")
CARRIER_TIMEOUT_S = 10.0


@dataclass
class Wires:
    """The two namespaces and their veth pairs."""

    switch_namespace: str
    load_namespace: str
    pairs: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Interfaces (at the switch, at the load generator)."""

    def add(self, count: int) -> list[tuple[str, str]]:
        """Make veth pairs; both ends are up and have no queueing discipline."""
        first = len(self.pairs)
        made = [(f"sw{index}", f"load{index}") for index in range(first, first + count)]

        def make(route: Any) -> None:
            for at_switch, at_load in made:
                peer = {"ifname": at_load, "net_ns_fd": str(namespace_path(self.load_namespace))}
                route.link("add", ifname=at_switch, kind="veth", peer=peer)
                _set_up(route, at_switch)

        def finish(route: Any) -> None:
            for _, at_load in made:
                _set_up(route, at_load)

        call_with_route(self.switch_namespace, make)
        call_with_route(self.load_namespace, finish)
        self.pairs += made
        for namespace, side in ((self.switch_namespace, 0), (self.load_namespace, 1)):
            names = [pair[side] for pair in made]
            wait_for_carrier(names, namespace=namespace, timeout_s=CARRIER_TIMEOUT_S)
        return made

    def at_switch(self, function: Callable[[], T]) -> T:
        """Run a function in the switches' namespace; processes that it starts stay there."""
        return call_in_namespace(self.switch_namespace, function)

    def at_load(self, function: Callable[[], T]) -> T:
        """Run a function in the load generator's namespace; sockets that it opens stay there."""
        return call_in_namespace(self.load_namespace, function)


def _set_up(route: Any, interface: str) -> None:
    (index,) = route.link_lookup(ifname=interface)
    route.link("set", index=index, state="up", arp=False)


@contextmanager
def wires() -> Iterator[Wires]:
    """Make the namespaces; the end of `with` removes them with everything in them."""
    made = Wires(f"sfrate{os.getpid()}s", f"sfrate{os.getpid()}l")
    with ExitStack() as stack:
        for name in (made.switch_namespace, made.load_namespace):
            create_namespace(name)
            stack.callback(remove_namespace, name)
        yield made
