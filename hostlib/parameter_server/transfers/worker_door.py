# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's listening end for other workers of its job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from ...errors import ConfigurationError, PeerClosedError, PeerRefusedError
from ...peers import PeerServer
from ...peers.connection import Connection
from ...peers.frames import Greeting, Purpose
from ..options import GENERATION, ClientOptions

_ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - it is refused


@final
class WorkerDoor:
    """Gives each connection from a worker's peer server a port; runs in the loop's thread."""

    def __init__(
        self,
        purpose: Purpose,
        what: str,
        open_port: Callable[[Connection, int], object],
        *,
        may_enter: Callable[[int], bool] = lambda worker_id: True,
    ) -> None:
        """`what` this worker is, for those whose purpose is another one.

        `open_port(connection, worker_id)` takes a connection over. `may_enter(worker_id)`: whether
        this worker may send here.
        """
        self._purpose = purpose
        self._what = what
        self._open_port = open_port
        self._may_enter = may_enter
        self._connections: list[Connection] = []

    def adopt(self, connection: Connection, greeting: Greeting) -> None:
        """Take over a connection; PeerRefusedError if it is not for this."""
        if greeting.purpose is not self._purpose:
            raise PeerRefusedError(f"this is {self._what}")
        if not self._may_enter(greeting.sender):
            raise PeerRefusedError(f"worker {greeting.sender} has nothing to send to {self._what}")
        self._connections = [each for each in self._connections if not each.is_closed]
        self._connections.append(connection)
        self._open_port(connection, greeting.sender)

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            connection.close(PeerClosedError(f"closed: this was {self._what}"))


def listen(client: ClientOptions, address: str, port: int, *, task: str, option: str) -> PeerServer:
    """Listen for other workers at `address`, or at the client's own if that is empty.

    `task`: what the worker is to do; `option`: the field of TransferOptions with the address.
    Raises ConfigurationError without an address, AddressUnreachableError.
    """
    address = address or client.source
    if address == _ANY_ADDRESS:
        raise ConfigurationError(
            f"worker {client.worker_id} is to {task}, and others need to know where: give"
            f" TransferOptions.{option} or ClientOptions.source, an address of its host"
        )
    return PeerServer(address, port, token=client.token, credentials=client.credentials)


def serve(peers: PeerServer, client: ClientOptions, door: WorkerDoor) -> None:
    """Let the workers of the client's job in."""
    peers.loop.run(lambda: peers.add_view(GENERATION, door))
    peers.enter_job(client.job, client.worker_id)
