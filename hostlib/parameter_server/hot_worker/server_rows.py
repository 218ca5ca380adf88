# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The hot rows of one server at a worker: pushes, pulls, frames, packets and timers."""

from __future__ import annotations

import logging
import math
import time
from functools import partial
from typing import final

import numpy as np
from numpy.typing import NDArray

from ...control.view import Endpoint
from ...errors import HostlibError, TransportError
from ...hot_rows.hot_cells import KEY_BYTES, HotCells, KeyedGradients
from ...hot_rows.row_packets import RowPackets
from ...hot_rows.sketch import Keys
from ...latency import PULL, PUSH, SwitchMeter, SwitchRequest
from ...native.hot_row_library import hot_library
from ...native.library import address
from ...peers.event_loop import EventLoop, Timer
from ...peers.frames import (
    Frame,
    FrameKind,
    HotRowsState,
    RoundsFrame,
)
from ...transports.base import Datagrams
from ..options import ClientOptions
from .cold_path import ColdPath, DonePull
from .key_counts import KeyCounts, MakeCounts
from .key_samples import KeySamples
from .merged_pull import MergedPull
from .open_calls import Done, OpenCalls, Places
from .packet_room import PacketRoom
from .pushes import HotPushes
from .reads import HotReads
from .row_map import RowMap
from .row_socket import RowSocket
from .scheme_choice import HotRowChoice

_logger = logging.getLogger(__name__)


@final
class ServerRows:
    """Runs in the loop's thread. Without HOT_ROWS, everything goes by TCP."""

    def __init__(
        self,
        loop: EventLoop,
        cold: ColdPath,
        options: ClientOptions,
        choice: HotRowChoice,
        *,
        make_counts: MakeCounts = KeyCounts,
        meter: SwitchMeter | None = None,
    ) -> None:
        self._loop = loop
        self._meter = meter
        self._measured: dict[int, SwitchRequest] = {}  # recorded pushes, by call
        self._cold = cold
        self._options = options
        self._choice = choice
        self._calls = OpenCalls()
        self._pushes = HotPushes(self, self._calls)
        self._reads = HotReads(self)
        self._socket: RowSocket | None = None
        self._packets: RowPackets | None = None
        self._timer: Timer | None = None
        self._tick_s = math.inf  # of the timer
        self._samples = KeySamples(loop, cold, options, make_counts)
        self._is_served = False  # the server has told of hot rows, or of none

    @property
    def num_open(self) -> int:
        """Pushes with parts that are not decided, or have no receipt."""
        return self._calls.num_open

    # The client calls these.

    def count_keys(self, table: int, capacity: int) -> None:
        """Count the keys of a table's pushes from now on."""
        self._samples.begin(table, capacity)

    def push(self, table: int, payload: memoryview, num_keys: int, done: Done) -> None:
        """Push keys and their gradients, which the payload holds: hot ones to the switch."""
        keys = np.frombuffer(payload, np.int64, num_keys)
        if self._cold.num_ahead:  # the worker's process before has pushed them
            self._cold.push(table, payload, num_keys, done)
            return
        if self._is_served:
            self._samples.count(table, keys, payload.nbytes)
        hot = self._hot_cells(table)
        if hot is None or payload.nbytes != num_keys * (KEY_BYTES + 4 * hot.width):
            self._cold.push(table, payload, num_keys, done)
            return
        now_s = time.monotonic()
        if not self._choice.note(num_keys, now_s):
            self._cold.push(table, payload, num_keys, done)
            return
        split = self._pushes.split(hot, keys, now_s)
        if not split.hot.size:
            self._cold.push(table, payload, num_keys, done)
            return
        self._cold.begin()
        call = self._calls.open(done)
        if split.cold.size:
            self._calls.add_part(call)
            rest = hot.gather_cold(split)
            settle = partial(self._calls.settle_one, call)
            self._cold.push(table, rest, split.cold.size, settle)
        meter = self._meter
        request = None if meter is None else meter.begin(PUSH, split.hot.size)
        if meter is None or request is None:
            self._pushes.add(hot, split, call, now_s)
        else:
            part = self._measure_push(meter, request, call)
            self._pushes.add(hot, split, part, now_s)
            meter.end_sending()
            self._calls.settle_one(part)
        self._calls.settle_one(call)
        self._schedule()

    def pull(self, table: int, keys: Keys, width: int, done: DonePull) -> None:
        """Pull rows: of hot keys, from the switch. The keys must stay as they are until `done`."""
        hot = self._hot_cells(table)
        if hot is None or hot.width != width:
            self._cold.pull(table, keys, width, done)
            return
        now_s = time.monotonic()
        if not self._choice.note(keys.size, now_s):
            self._cold.pull(table, keys, width, done)
            return
        split = self._pushes.split(hot, keys, now_s)
        if not split.hot.size:
            self._cold.pull(table, keys, width, done)
            return
        merged = MergedPull(self._cold, table, keys, width, split.hot, done)
        merged.pull_rest(split.cold)
        meter = self._meter
        request = None if meter is None else meter.begin(PULL, split.hot.size)
        if meter is None or request is None:
            self._reads.read(hot, split, merged, merged.finish, now_s)
        else:
            finish = self._measure_pull(meter, request, merged)
            self._reads.read(hot, split, merged, finish, now_s)
            meter.end_sending()
        self._schedule()

    def _hot_cells(self, table: int) -> HotCells | None:
        """Return the hot rows of a table, if there are any and their switch can be reached."""
        return None if self._packets is None else self._pushes.map.tables.get(table)

    def _measure_push(self, meter: SwitchMeter, request: SwitchRequest, call: int) -> int:
        """Return a call for the hot part of a call, of which it is a part."""

        def end(error: HostlibError | None) -> None:
            del self._measured[part]
            meter.end(request, has_failed=error is not None)
            self._calls.settle_one(call, error)

        part = self._calls.open(end)
        self._measured[part] = request
        self._calls.add_part(call)
        return part

    @staticmethod
    def _measure_pull(meter: SwitchMeter, request: SwitchRequest, pull: MergedPull) -> Done:
        """Return what to call when the hot part of a pull has ended."""
        pull.by_tcp = lambda: meter.by_tcp([request])

        def end(error: HostlibError | None) -> None:
            meter.end(request, has_failed=error is not None)
            pull.finish(error)

        return end

    # The session calls these.

    def on_frame(self, frame: Frame, payload: memoryview) -> None:
        """Take HOT_ROWS or DECISIONS. Raises PeerProtocolError."""
        now_s = time.monotonic()
        if frame.kind is FrameKind.HOT_ROWS:
            self._adopt(HotRowsState.unpack(payload), now_s)
        else:
            said = RoundsFrame.unpack(frame)
            decisions = said.rounds(payload)
            if said.generation == self._pushes.map.generation and decisions.size:
                self._reads.note_version(decisions["version"][-1])
            self._pushes.decide(said.generation, payload, now_s)
        self._schedule()

    def fail(self, error: HostlibError) -> None:
        """Fail all that is open; whether it counts is unknown."""
        self._pushes.fail(error)
        self._reads.fail(error)

    def close(self) -> None:
        """Close the socket, and stop the timers."""
        self._samples.close()
        if self._timer is not None:
            self._timer.cancel()
        if self._socket is not None:
            self._socket.close()

    # The pushes and reads call these.

    def send(self, datagrams: Datagrams) -> None:
        """Send datagrams to the switch."""
        if self._socket is not None:
            if self._meter is not None:
                self._meter.send(datagrams.nbytes)
            self._socket.send(datagrams)

    def decide(self, generation: int, rounds: NDArray[np.void]) -> None:
        """Ask the server to decide rounds."""
        if self._cold.can_send:
            payload = memoryview(rounds.tobytes())
            self._cold.send_frame(RoundsFrame(FrameKind.DECIDE, len(payload), generation), payload)

    def push_cold(self, part: KeyedGradients, done: Done, calls: Places | None = None) -> None:
        """Push by TCP; for these calls, which meant to push to the switch."""
        if self._meter is not None and self._measured and calls is not None:
            with self._meter.by_tcp(self._measured.get(call) for call in calls.tolist()):
                self.push_cold(part, done)
            return
        payload = memoryview(part.keys.tobytes() + part.gradients.tobytes())
        self._cold.push(part.table, payload, part.keys.size, done)

    # Packets, time, and what the server says.

    def _take(self, datagrams: Datagrams) -> None:
        if self._packets is None:
            return
        if self._meter is not None and self._socket is not None:
            self._meter.receive(self._socket.arrived_ns)
        count = datagrams.nbytes // self._packets.datagram_bytes
        hot_library.hot_rows_take(self._pushes.at, self._reads.at, address(datagrams), count)
        self._reads.finish_take()
        self._pushes.finish_take(time.monotonic())
        self._schedule()

    def _adopt(self, state: HotRowsState, now_s: float) -> None:
        rows = RowMap(state)
        self._is_served = True
        self._connect(state)
        room = PacketRoom(rows.size, self._packets)
        self._reads.adopt(rows, room)
        self._pushes.adopt(rows, room, now_s)

    def _connect(self, state: HotRowsState) -> None:
        """Have a socket to the switch of a state, and packets; neither without hot rows."""
        self._packets = None
        if not state.generation or not state.tables:
            return
        packets = RowPackets(
            job_id=state.job_id,
            generation=state.generation,
            worker_id=state.worker_id,
            worker_bitmap=state.worker_bitmap,
            num_workers=state.num_workers,
            values_per_packet=state.values_per_packet,
        )
        switch = Endpoint(address=state.switch_address, udp_port=state.switch_udp_port)
        place = switch, packets.datagram_bytes
        if self._socket is None or (self._socket.switch, self._socket.datagram_bytes) != place:
            if self._socket is not None:
                self._socket.close()
                self._socket = None
            try:
                self._socket = RowSocket(
                    self._loop,
                    *place,
                    address=self._options.hot_address,
                    take=self._take,
                    lost=self._lose,
                )
            except TransportError as error:
                self._warn(error)
                return
        self._packets = packets

    def _lose(self, error: TransportError) -> None:
        """Go on by TCP, after the socket failed; timers ask for decisions of what is open."""
        self._socket = self._packets = None
        self._warn(error)

    def _warn(self, error: TransportError) -> None:
        _logger.warning(
            "the hot rows of parameter server %d cannot be used until it names others: %s",
            self._cold.shard,
            error,
        )

    def _schedule(self) -> None:
        """Have a timer for the next tick, or for an earlier time."""
        next_s = min(self._pushes.next_s, self._reads.next_s)
        if self._timer is not None:
            if self._tick_s <= next_s:
                return
            self._timer.cancel()
            self._timer = None
        if next_s < math.inf:
            self._tick_s = next_s  # the timer's own time is a little later
            self._timer = self._loop.call_later(next_s - time.monotonic(), self._tick)

    def _tick(self) -> None:
        self._timer = None
        now_s = time.monotonic()
        if self._pushes.next_s <= now_s:
            self._pushes.tick(now_s)
        if self._reads.next_s <= now_s:
            self._reads.tick(now_s)
        self._schedule()
