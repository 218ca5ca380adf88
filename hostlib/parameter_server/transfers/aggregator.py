# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's listening end for groups: members connect here while its host is idle."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import final

from ...control.stations.station import GatherExpected, UpdateGathered
from ...errors import PeerClosedError
from ...peers.frames import Purpose
from ..options import ClientOptions
from ..transfer_options import TransferOptions
from .gatherer import Gatherer
from .outgoing import OutgoingUpdate
from .update_port import UpdatePort
from .worker_door import WorkerDoor, listen, serve


@final
class Aggregator:
    """Gathers in a thread of its own, so that the worker's own transfers do not wait for sums."""

    def __init__(
        self,
        options: TransferOptions,
        client: ClientOptions,
        num_servers: int,
        *,
        forward: Callable[[OutgoingUpdate], None],
        report: Callable[[UpdateGathered], None],
    ) -> None:
        """Listen; `forward` and `report` are called in the aggregator's thread.

        Raises ConfigurationError without an address, AddressUnreachableError.
        """
        self._peers = peers = listen(
            client,
            options.aggregate_address,
            options.aggregate_port,
            task="aggregate",
            option="aggregate_address",
        )
        self.place = (peers.address, peers.port)
        """Where it listens."""
        loop = peers.loop
        self.gatherer = Gatherer(loop, num_servers, forward=forward, report=report)
        """The groups, for the aggregator's thread; `counters` may be read from others."""
        door = WorkerDoor(
            Purpose.TRANSFERS,
            "an aggregator of updates",
            lambda connection, worker_id: UpdatePort(self.gatherer, loop, worker_id, connection),
        )
        serve(peers, client, door)

    def expect(self, told: GatherExpected) -> None:
        """Learn of a group; from any thread."""
        with contextlib.suppress(PeerClosedError):  # the worker is being closed
            self._peers.loop.post(lambda: self.gatherer.on_expected(told))

    def close(self) -> None:
        """End it: members send their updates to the servers themselves."""
        self._peers.close()
