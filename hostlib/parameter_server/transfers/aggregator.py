# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's listening end for groups: members connect here while its host is idle."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final, final

from ...control.stations.station import GatherExpected, UpdateGathered
from ...errors import ConfigurationError, PeerClosedError
from ...peers import PeerServer
from ..options import GENERATION, ClientOptions
from ..transfer_options import TransferOptions
from .gatherer import Gatherer
from .outgoing import OutgoingUpdate
from .update_port import UpdateDoor

ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - it is refused


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
        address = options.aggregate_address or client.source
        if address == ANY_ADDRESS:
            raise ConfigurationError(
                f"worker {client.worker_id} is to aggregate, and others need to know where: give"
                " TransferOptions.aggregate_address or ClientOptions.source, an address of its host"
            )
        self._peers = PeerServer(
            address, options.aggregate_port, token=client.token, credentials=client.credentials
        )
        self.place = (address, self._peers.port)
        """Where it listens."""
        loop = self._peers.loop
        self.gatherer = Gatherer(loop, num_servers, forward=forward, report=report)
        """The groups, for the aggregator's thread; `counters` may be read from others."""
        self._door = UpdateDoor(self.gatherer, loop, "an aggregator of updates")
        loop.run(lambda: self._peers.add_view(GENERATION, self._door))
        self._peers.enter_job(client.job, client.worker_id)

    def expect(self, told: GatherExpected) -> None:
        """Learn of a group; from any thread."""
        with contextlib.suppress(PeerClosedError):  # the worker is being closed
            self._peers.loop.post(lambda: self.gatherer.on_expected(told))

    def close(self) -> None:
        """End it: members send their updates to the servers themselves."""
        self._peers.close()
