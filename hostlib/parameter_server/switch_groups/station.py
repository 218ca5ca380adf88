# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A server's switch groups: its lease at the controller, and the path of sums into its tables."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple, cast, final

import numpy as np
from numpy.typing import NDArray

from ...control.row_server_link import RowServerRequest
from ...control.stations.station import SwitchMembers
from ...errors import PeerClosedError
from ...peers.event_loop import EventLoop
from ...peers.frames import MAX_BATCH_BYTES, SummedUpdate, TransferFrame
from ..hot_server.link import RowLinkFactory
from ..options import ServerOptions
from ..summed_updates import head_bytes
from ..tables.parts import places_of
from ..tables.service import TableService
from ..tables.state import KEY_BYTES, VALUE_BYTES
from ..transfers.update_port import IncomingUpdate, UpdatePort
from ..transfers.update_service import UpdateService
from .lease import GroupLease
from .server import GroupUpdate, SwitchGroupServer
from .stream import Floats

FIRST_SUM: Final = 1 << 63
"""Numbers of sums from here on: no update of a worker has them."""


class SumRoom(NamedTuple):
    """A sum that is coming, as the updates of workers come."""

    update: IncomingUpdate
    values: Floats


@final
class SwitchGroupStation:
    """Attaches to the job as soon as it is made."""

    def __init__(  # noqa: PLR0917 - what it stands between
        self,
        updates: UpdateService,
        tables: TableService,
        loop: EventLoop,
        server: ServerOptions,
        place: tuple[str, int],
        make_link: RowLinkFactory,
    ) -> None:
        """`place`: address and port of the server. Raises TransportError."""
        options, shard = server.switch_groups, server.shard
        assert options is not None
        self._tables, self._updates, self._loop = tables, updates, loop
        self._numbers = itertools.count(FIRST_SUM)
        self._keys: dict[int, NDArray[np.int64]] = {}
        # The controller knows a server that comes back by its address and port.
        port = options.udp_port or (place[1] if server.hot is None else 0)
        lease = self._lease = GroupLease(
            loop,
            (options.address or place[0], port),
            options.server_id(shard),
            on_change=self._on_change,
            on_packets=self._on_packets,
        )
        groups = self.groups = SwitchGroupServer(loop, lease, self, give_up_s=options.give_up_s)
        updates.on_switch_group = groups.expect
        updates.on_registered = groups.on_registered
        end = lease.local
        request = RowServerRequest(
            job=options.job,
            server_id=options.server_id(shard),
            identity=tables.full_identity,
            local=replace(end, mac=options.mac or end.mac),
            rows_wanted=options.rows,
            ingress_port=options.ingress_port,
            switch_name=options.switch_name,
            token=options.token,
            credentials=options.credentials,
            job_token=options.job_token,
        )
        link = self._link = make_link(
            options.controller,
            request,
            on_view=lambda view: self._post(lambda: lease.on_view(view)),
            on_installed=lambda generation, number: self._post(
                lambda: lease.on_installed(generation, number)
            ),
            on_down=lambda error: self._post(lambda: lease.on_down(error)),
        )
        loop.run(lambda: lease.start(link))
        link.start()

    def close(self) -> None:
        """Give the rows back, and end all groups; a second call does nothing."""
        link, self._link = self._link, None
        if link is None:
            return
        self._loop.run(self._stop)
        link.close()

    # The groups call the methods below.

    def keys_of_group(self, table: int) -> NDArray[np.int64] | None:
        """Return the numbers of a dense tensor's blocks that this server has.

        None beside a replica, which would not get the sums.
        """
        if self._updates.gate.is_closed:
            return None
        state = self._tables.state
        found, placement = state.tables.get(table), state.placement
        if found is None or placement is None:
            return None
        definition = found.definition
        most = MAX_BATCH_BYTES // (KEY_BYTES + VALUE_BYTES) * placement.num_servers
        if (
            definition.is_synchronous
            or definition.hot_keys
            or definition.optimiser.num_states
            or definition.max_rows > most  # no dense tensor
        ):
            return None
        if table not in self._keys:
            blocks = np.arange(definition.max_rows, dtype=np.int64)
            parts = dict(places_of(blocks, placement.num_servers))
            self._keys[table] = blocks[parts.get(placement.shard, blocks[:0])]
        keys = self._keys[table]
        return keys if keys.size else None

    def begin_sum(
        self, members: tuple[GroupUpdate, ...], table: int, num_values: int
    ) -> SumRoom | None:
        """Return memory for a sum, which is that of a worker's update."""
        keys = self.keys_of_group(table)
        assert keys is not None
        begin = head_bytes(len(members)) + KEY_BYTES * keys.size
        num_bytes = KEY_BYTES * keys.size + VALUE_BYTES * num_values
        first = members[0].port
        head = TransferFrame(
            number=next(self._numbers),
            open_from=0,
            transfer_id=members[0].transfer_id,
            version=min(member.version for member in members),
            sequence=members[0].sequence,
            factor=1.0,
            table=table,
            num_keys=keys.size,
            num_bytes=num_bytes,
            is_granted=True,
        )
        summed = tuple(
            SummedUpdate(
                member.port.worker_id,
                member.port.incarnation,
                member.number,
                member.open_from,
                member.transfer_id,
                member.version,
                member.sequence,
            )
            for member in members
        )
        update = IncomingUpdate(
            first.worker_id,
            first.incarnation,
            head,
            time.monotonic(),
            is_repeated=False,
            port=cast("UpdatePort", first),
            summed=summed,
        )
        if not self._updates.reserve(update):
            return None
        memory = np.zeros(head_bytes(len(members)) + num_bytes, np.uint8)
        memory[head_bytes(len(members)) : begin] = keys.view(np.uint8)
        update.payload = memory.data
        return SumRoom(update, memory[begin:].view(np.float32))

    def take_sum(self, room: SumRoom) -> None:
        """Have the sum applied; the updates answer their workers."""
        room.update.filled_bytes = room.update.head.num_bytes
        self._updates.arrive(room.update)

    def drop_sum(self, room: SumRoom) -> None:
        """Free the memory of a group that was given up."""
        self._updates.release(room.update)

    def tell_members(self, worker_ids: tuple[int, ...]) -> None:
        """Tell the scheduler whose updates can be added up now."""
        self._updates.report(SwitchMembers(worker_ids))

    # The lease calls the methods below.

    def _on_change(self) -> None:
        self.groups.on_lease()

    def _on_packets(self, packets: NDArray[np.void]) -> None:
        self.groups.on_packets(packets)

    # The methods below are this class's own.

    def _stop(self) -> None:
        self.groups.close()
        self._lease.close()

    def _post(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(PeerClosedError):  # the server is closed
            self._loop.post(call)
