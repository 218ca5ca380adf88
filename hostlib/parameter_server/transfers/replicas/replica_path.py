# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's connections to the replica of one server: the model at first, then each update.

The worker keeps an update until the replica has applied it: the server sends the replica nothing.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from collections.abc import Callable, Iterator
from typing import Final, final

from ....errors import HostlibError, PeerClosedError
from ....peers.event_loop import EventLoop
from ....peers.frames import FrameKind
from ...rows import PulledRows
from ...tables.dense import DenseTensor
from ..granted_rate import GrantedRate
from ..outgoing import OutgoingUpdate, PartOutcome
from ..update_link import UpdateLink

_UNREACHABLE_S: Final = 1e9
"""A replica is dialled until the scheduler says that it is gone."""
_logger = logging.getLogger(__name__)


@final
class ReplicaPath:
    """Runs in the loop's thread; made as soon as the worker hears of a replica."""

    def __init__(
        self,
        tensor: DenseTensor,
        shard: int,
        address: tuple[str, int],
        *,
        numbers: Iterator[int],
        on_ready: Callable[[], None],
        on_copy_done: Callable[[OutgoingUpdate, PartOutcome | HostlibError], None],
    ) -> None:
        """`on_ready()`: the replica has the model that the server had.

        `on_copy_done(update, outcome)`: what became of an update there.
        """
        client = tensor.client
        self.address: Final = address
        self._tensor = tensor
        self._shard = shard
        self._loop: EventLoop = client.loop
        self._on_ready = on_ready
        self._on_copy_done = on_copy_done
        self._table = tensor.definition.table()
        self._copies: dict[int, OutgoingUpdate] = {}
        """By number: what the replica has not applied, as it was made for the server."""
        self._is_closed = False
        options = dataclasses.replace(client.options, reconnect_s=_UNREACHABLE_S)
        self.session: Final = client.sessions[shard].like(address, options)
        self.link: Final = UpdateLink(
            self._loop,
            self.session,
            client.incarnation,
            unreachable_s=_UNREACHABLE_S,
            timeout_s=math.inf,
            on_measured=_ignore,
            is_held=True,  # a copy may be granted before the replica has let this worker in
            numbers=numbers,
        )
        self.session.enter(self._on_entered)

    @property
    def num_copies(self) -> int:
        """How many updates the replica has not applied."""
        return len(self._copies)

    def has_copy(self, number: int) -> bool:
        """Whether an update is on its path to the replica."""
        return number in self._copies

    def copy(self, update: OutgoingUpdate) -> None:
        """Send an update that is granted to the replica as well, with the number that it has."""
        grant, number = update.grant, update.number
        assert grant is not None, "it is granted"
        spans = grant.replica_spans or ()
        self._copies[number] = update

        def done(outcome: PartOutcome | HostlibError) -> None:
            self._finish(number, outcome)

        self.link.send(
            dataclasses.replace(
                update,
                rate=GrantedRate(spans, time.monotonic()) if spans else None,
                sent_bytes=0,
                is_begun=False,
                last_s=0.0,
                is_measured=True,
                done=done,
            )
        )

    def close(self, error: PeerClosedError) -> None:
        """End the connections; copies are forgotten."""
        self._is_closed = True
        self._copies.clear()
        self.link.close(error)
        self.session.close(error)

    def become_server(self) -> None:
        """Wait for the former replica as for any server from now on."""
        options = self._tensor.client.options
        self.link.limit_waits(options.reconnect_s, options.timeout_s)
        self.session.limit_waits(options.reconnect_s)

    def _finish(self, number: int, outcome: PartOutcome | HostlibError) -> None:
        update = self._copies.pop(number, None)
        if update is not None:
            self._on_copy_done(update, outcome)

    # The replica gets the model, and learns of the tensor.

    def _on_entered(self, error: HostlibError | None) -> None:
        if self._failed(error):
            self._end_copies(error)
            return
        payload = memoryview(self._table.pack())
        self.session.change(FrameKind.DEFINE, payload, self._on_defined)

    def _on_defined(self, error: HostlibError | None) -> None:
        if self._failed(error):
            self._end_copies(error)
            return
        self.link.release()
        server = self._tensor.client.sessions[self._shard]
        keys = self._tensor.keys_on(self._shard)
        server.pull(self._table.number, keys, self._table.width, self._on_model)

    def _on_model(self, rows: PulledRows | HostlibError) -> None:
        if isinstance(rows, HostlibError):
            self._failed(rows)
            return
        if rows.commits.any():
            self._started(None)  # the scheduler compares both before the replica joins
            return
        keys = self._tensor.keys_on(self._shard)
        payload = memoryview(keys.tobytes() + rows.values.tobytes())
        self.session.change(
            FrameKind.START,
            payload,
            self._started,
            table=self._table.number,
            num_keys=keys.size,
        )

    def _started(self, error: HostlibError | None) -> None:
        if not self._failed(error):
            self._on_ready()

    def _end_copies(self, error: HostlibError | None) -> None:
        if error is not None:
            self.link.close(error)

    def _failed(self, error: HostlibError | None) -> bool:
        if error is not None and not self._is_closed:
            _logger.warning("the replica of server %d cannot be used: %s", self._shard, error)
        return error is not None or self._is_closed


def _ignore(_update: OutgoingUpdate, _seconds: float) -> None:
    """Do nothing: rates to replicas are not reported."""
