# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Parameter servers and exchanges of factors on hosts in namespaces."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from switchfold.bmv2_topos import Testbed
from switchfold.bmv2_topos.network.namespaces import call_in_namespace
from switchfold.hostlib.factors import FactorExchange
from switchfold.hostlib.parameter_server import (
    ClientOptions,
    ParameterClient,
    ParameterServer,
    ServerOptions,
)
from switchfold.hostlib.peers import PeerServer

T = TypeVar("T")


class Fabric:
    """Hosts around a bridge: the workers, then a server."""

    def __init__(self, testbed: Testbed) -> None:
        self._testbed = testbed
        self.addresses = [host.address for host in testbed.topology.hosts]

    def at(self, position: int, make: Callable[[], T]) -> T:
        """Make an object whose threads, and so their sockets, are in a host's namespace."""
        namespace = self._testbed.namespace_of(self._testbed.topology.hosts[position])
        assert namespace is not None
        return call_in_namespace(namespace, make)

    def carried(self) -> list[tuple[int, int]]:
        """Bytes that each host has sent and received."""
        links = self._testbed.link_bytes()
        return [(link.from_host_bytes, link.to_host_bytes) for link in links]


@contextmanager
def parameter_cluster(
    fabric: Fabric, num_workers: int, *, is_colocated: bool = False, pair_bytes: int = 2 << 20
) -> Generator[tuple[list[ParameterClient], list[ParameterServer]]]:
    """Yield clients on the first hosts; servers on the same, or one on the host after them."""
    places = list(range(num_workers)) if is_colocated else [num_workers]
    with contextlib.ExitStack() as stack:

        def server(shard: int, place: int) -> ParameterServer:
            options = ServerOptions(num_workers=num_workers, shard=shard)
            return ParameterServer(options, address=fabric.addresses[place])

        servers = [
            stack.enter_context(fabric.at(place, lambda s=shard, p=place: server(s, p)))
            for shard, place in enumerate(places)
        ]
        addresses = [(end.address, end.port) for end in servers]

        def client(worker_id: int) -> ParameterClient:
            options = ClientOptions(
                worker_id=worker_id, source=fabric.addresses[worker_id], pair_bytes=pair_bytes
            )
            local = servers[worker_id] if is_colocated else None
            return ParameterClient(addresses, options, local_server=local)

        clients = [
            stack.enter_context(fabric.at(w, lambda w=w: client(w))) for w in range(num_workers)
        ]
        yield clients, servers


@contextmanager
def factor_workers(fabric: Fabric, num_workers: int) -> Generator[list[FactorExchange]]:
    """Yield an exchange of factors on each of the first hosts."""
    with contextlib.ExitStack() as stack:
        servers = [
            fabric.at(w, lambda w=w: PeerServer(fabric.addresses[w])) for w in range(num_workers)
        ]
        peers = [(server.address, server.port) for server in servers]
        yield [
            stack.enter_context(FactorExchange(w, peers, server=server))
            for w, server in enumerate(servers)
        ]
