# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's requests to the tables of one server, until they have their receipts."""

from __future__ import annotations

import itertools
import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

import numpy as np
from numpy.typing import NDArray

from ...errors import (
    HostlibError,
    PeerError,
    PeerProtocolError,
    PeerRefusedError,
    RowTableError,
    ServerLostError,
    ServerRestartedError,
)
from ...latency import RequestMeter, SwitchMeter, WorkerLog
from ...peers.dialled import DialledLink
from ...peers.event_loop import EventLoop, Timer
from ...peers.frames import (
    NO_TIMES,
    DeniedFrame,
    EnteredFrame,
    EnterFrame,
    Frame,
    FrameKind,
    Packable,
    Purpose,
    ReceiptFrame,
    RowsFrame,
    TableFrame,
    declined,
    whole_version,
)
from ...peers.handshake import PeerCall
from ..hot_worker import ServerRows
from ..options import ClientOptions
from .denial import error_of
from .pulls.open_pull import ROWS_KINDS, DonePull, OpenPull, pull_number

if TYPE_CHECKING:
    from ..transfers.models.worker_relay import WorkerRelay

_RELAY_KINDS: Final = frozenset((FrameKind.SEND_ON, FrameKind.MODEL_COMING))
_REQUEST_KINDS: Final = frozenset((FrameKind.ENTERED, FrameKind.RECEIPT, FrameKind.DENIED))
_KINDS: Final = ROWS_KINDS | _RELAY_KINDS | _REQUEST_KINDS
_HOT_KINDS: Final = frozenset((FrameKind.HOT_ROWS, FrameKind.DECISIONS))
_KEPT_TAKEN: Final = 64
"""Pulls that other workers have answered: their servers may answer them, too."""
_IN_ITERATIONS: Final = frozenset((FrameKind.PUSH, FrameKind.RATE, FrameKind.ADVANCE))
Done = Callable[[HostlibError | None], None]
MakeHot = Callable[["ShardSession"], ServerRows]


@dataclass(frozen=True)
class _Change:
    """A DEFINE, START, PUSH, RATE or ADVANCE without a receipt."""

    frame: TableFrame
    payload: memoryview
    done: Done


@final
class ShardSession:
    """Runs in the loop's thread. It dials when there is something to send, and when it breaks.

    What has no receipt is sent again over each new connection, in its order. The server knows what
    it has taken, so nothing counts twice. If the server is away for longer than `reconnect_s`, or
    answers nothing for `timeout_s`, all that is open fails with ServerLostError; whether it was
    applied is unknown then. A server that came back without what it had taken is of no use any
    more: all fails with ServerRestartedError.
    """

    def __init__(
        self,
        loop: EventLoop,
        call: PeerCall,
        incarnation: int,
        *,
        options: ClientOptions,
        latency: WorkerLog | None = None,
        make_hot: MakeHot | None = None,
    ) -> None:
        """`make_hot` makes the server's hot rows; None: the worker does not use them."""
        self.shard = call.greeting.receiver
        self.clock = 0
        """The worker's clock at the server, once this has taken what is open."""
        self.version = 0
        """The last one of the server's tables that the worker has heard of."""
        self.num_servers = 0
        """How many the worker has; the server learns it, and refuses workers that have others."""
        self.num_ahead = 0
        """So many iterations the worker's process before has ended here, but not at all servers.

        The new process does them once more: what it sends of them to this server is there already.
        """
        self._loop = loop
        self._call = call
        self._incarnation = incarnation
        self._unreachable_s = options.reconnect_s
        self._timeout_s = options.timeout_s
        self._identity: int | None = None  # of what the server keeps
        self._heard_s = 0.0
        self._silence: Timer | None = None  # looks for too long a silence while something is open
        self._meter = RequestMeter(loop, latency, self.shard) if latency is not None else None
        self.switch_meter = SwitchMeter(self._meter) if self._meter is not None else None
        """Measures requests by the switch."""
        self._link: DialledLink | None = None
        self._has_entered = False
        self._changes: dict[int, _Change] = {}  # by number, in rising order
        self._pulls: dict[int, OpenPull] = {}
        self._last_change = 0
        self._pull_numbers = itertools.count(1)
        self._entered: list[Callable[[HostlibError | None], None]] = []
        self.hot = make_hot(self) if make_hot is not None else None
        """The server's hot rows, if the worker may use them."""
        self.relay: WorkerRelay | None = None
        """Sends models on to other workers, and takes them; None: this worker does neither."""
        self._taken: deque[int] = deque(maxlen=_KEPT_TAKEN)

    def enter(self, done: Done) -> None:
        """Call `done` when the server has answered, and `clock` is set."""
        if self._has_entered:
            done(None)
            return
        self.begin()
        self._entered.append(done)

    def change(
        self, kind: FrameKind, payload: memoryview, done: Done, *, table: int = 0, num_keys: int = 0
    ) -> None:
        """Send a change; the payload must stay as it is until `done`."""
        if self.num_ahead and kind in _IN_ITERATIONS:
            self.num_ahead -= kind is FrameKind.ADVANCE
            done(None)
            return
        self.begin()
        self.clock += kind is FrameKind.ADVANCE
        self._last_change = number = self._last_change + 1
        is_measured = kind is FrameKind.PUSH and self._is_recording
        frame = TableFrame(kind, len(payload), number, table, num_keys, 0, is_measured)
        change = self._changes[frame.number] = _Change(frame, payload, done)
        self._send(change)

    def pull(
        self,
        table: int,
        keys: NDArray[np.int64],
        width: int,
        done: DonePull,
        *,
        is_model: bool = False,
    ) -> None:
        """Ask for the rows of keys; the keys must stay as they are until `done`.

        `is_model`: as of `DenseTensor.read`.
        """
        self.begin()
        payload = keys.data.cast("B") if keys.size else memoryview(b"")
        number = next(self._pull_numbers)
        clock = self.clock - self.num_ahead
        of_frame = number, table, keys.size, clock, self._is_recording, is_model
        frame = TableFrame(FrameKind.PULL, keys.nbytes, *of_frame)
        pull = self._pulls[number] = OpenPull(frame, payload, width, done)
        self._send(pull)

    def close(self, error: PeerError) -> None:
        """Close for good; what is open fails with this error."""
        self._end(error)
        if self.hot is not None:
            self.hot.close()

    def hand_over(self, other: ShardSession) -> None:
        """Close for good, and let another server, which has the same rows, answer what is open.

        Definitions and pulls go there. What changes rows fails: whether it was applied is unknown.
        """
        changes, self._changes = self._changes, {}
        pulls, self._pulls = self._pulls, {}
        shard = self.shard
        lost = ServerLostError(f"parameter server {shard} is gone: its replica goes on", shard)
        self._end(lost)
        if self.hot is not None:
            self.hot.close()
        for change in changes.values():
            if change.frame.kind is FrameKind.DEFINE:
                other.change(FrameKind.DEFINE, change.payload, change.done)
            else:
                change.done(lost)
        for pull in pulls.values():
            keys = np.frombuffer(pull.payload, np.int64)
            asked = pull.frame.table, keys, pull.width, pull.done
            other.pull(*asked, is_model=pull.frame.is_model)

    def limit_waits(self, unreachable_s: float) -> None:
        """Wait so long for a connection from now on."""
        self._unreachable_s = unreachable_s
        if self._link is not None:
            self._link.unreachable_s = unreachable_s

    @property
    def address(self) -> tuple[str, int]:
        """Where the server listens."""
        return self._call.address

    def like(self, address: tuple[str, int], options: ClientOptions) -> ShardSession:
        """Return a session of this process with a replica of the server, without hot rows."""
        call = replace(self._call, address=address)
        made = ShardSession(self._loop, call, self._incarnation, options=options)
        made.num_servers, made.relay = self.num_servers, self.relay
        return made

    # The relay of models calls these.

    def answer_of(self, number: int) -> tuple[memoryview, int] | None:
        """Return what the server has sent of an answer, and its size; None: it is not open."""
        pull = self._pulls.get(number)
        if pull is None:
            return None
        return pull.came, pull.size_bytes

    def take_model(self, number: int, payload: memoryview) -> bool:
        """Answer a pull with bytes from another worker; False: the server has begun to, or has."""
        pull = self._pulls.get(number)
        if pull is None or pull.filled_bytes:
            return False
        pull.fill(payload)
        self._taken.append(number)
        if self._meter is not None and self._link is not None:
            rows = RowsFrame(
                payload.nbytes, number, pull.frame.table, pull.frame.num_keys, NO_TIMES
            )
            self._meter.received(Frame.unpack(rows.pack()), payload, self._loop.clock_ns())
        self._on_rows(number)
        return True

    def note_heard(self) -> None:
        """Learn that an answer is on its path: the server need not say anything meanwhile."""
        self._heard_s = time.monotonic()

    def tell_server(self, frame: Packable) -> None:
        """Send a frame, if the server has let this process in."""
        if self._has_entered and self._link is not None:
            self._link.send(frame)

    # The hot rows call these.

    def call_for(self, purpose: Purpose) -> PeerCall:
        """Return a call of the same server for another purpose."""
        return replace(self._call, greeting=self._call.greeting._replace(purpose=purpose))

    @property
    def identity(self) -> int | None:
        """The server's, see EnteredFrame; None: it has not answered yet."""
        return self._identity

    @property
    def can_send(self) -> bool:
        """Whether the server has let this process in, over the present connection."""
        return self._has_entered

    def push(self, table: int, payload: memoryview, num_keys: int, done: Done) -> None:
        """Send a PUSH, as `change` does."""
        self.change(FrameKind.PUSH, payload, done, table=table, num_keys=num_keys)

    def send_frame(self, frame: Packable, payload: memoryview) -> None:
        """Send a frame that needs no receipt, if `can_send`."""
        assert self._link is not None
        self._link.send(frame, payload)

    def begin(self) -> None:
        """Dial, and look for silence, for something that is about to be open."""
        if self._link is None:
            self._link = DialledLink(
                self._loop, self._call, self, unreachable_s=self._unreachable_s
            )
        if not self._is_open:
            self._heard_s = time.monotonic()
        if self._silence is None:
            self._silence = self._loop.call_later(self._timeout_s, self._look)

    @property
    def _is_open(self) -> bool:
        if self._changes or self._pulls or self._entered:
            return True
        return self.hot is not None and self.hot.num_open > 0

    @property
    def _is_recording(self) -> bool:
        return self._meter is not None and self._meter.log.recording != 0

    def _look(self) -> None:
        """Give up a server that is connected, but answers nothing."""
        self._silence = None
        if not self._is_open:
            return
        is_up = self._link is not None and self._link.is_up
        left_s = self._heard_s + self._timeout_s - time.monotonic() if is_up else self._timeout_s
        if left_s > 0:
            self._silence = self._loop.call_later(left_s, self._look)
            return
        host, port = self._call.address
        text = (
            f"parameter server {self.shard} at {host}:{port} is connected, but answered nothing in"
            f" {self._timeout_s:g} s. Is its process stopped, or its disk too slow?"
        )
        self._end(ServerLostError(text, self.shard))

    def _end(self, error: HostlibError) -> None:
        """Close the connection, and fail what is open; the next request dials again."""
        if self._link is not None:
            self._link.close()
            self._link = None
        self._fail(error)

    def _send(self, waiting: _Change | OpenPull) -> None:
        """Send a new request, now or when the server has let this process in."""
        if self._meter is not None:
            self._meter.sent(waiting.frame)
        if self._has_entered:
            assert self._link is not None
            self._link.send(waiting.frame, waiting.payload)

    def _send_again(self, waiting: _Change | OpenPull) -> None:
        assert self._link is not None
        if isinstance(waiting, OpenPull):
            waiting.filled_bytes = 0  # what came over the connection before comes again
        if self._meter is not None:
            self._meter.resent(waiting.frame)
        self._link.send(waiting.frame, waiting.payload)

    def note_parsed(self) -> None:
        """Learn that the rows of a pull are where the caller wants them."""
        if self._meter is not None:
            self._meter.parsed()

    def _fail(self, error: HostlibError) -> None:
        if self._meter is not None:
            self._meter.lost()
        self._has_entered = False
        self._forget_relayed()
        changes, self._changes = self._changes, {}
        pulls, self._pulls = self._pulls, {}
        entered, self._entered = self._entered, []
        for done in (*entered, *(change.done for change in changes.values())):
            done(error)
        for pull in pulls.values():
            pull.done(error)
        if self.hot is not None:
            self.hot.fail(error)

    def _forget_relayed(self) -> None:
        if self.relay is not None:
            self.relay.forget(self)

    # The dialled link calls the methods below.

    def on_up(self, link: DialledLink) -> None:
        """Say who this is."""
        self._has_entered = False
        self._heard_s = time.monotonic()
        wants_hot = self.hot is not None
        link.send(EnterFrame(self._incarnation, wants_hot, self.num_servers))

    def on_down(self, link: DialledLink, error: PeerError) -> bool:
        """Dial again if something is open; the next request does it otherwise."""
        self._has_entered = False
        self._forget_relayed()
        if not self._is_open:
            self._link = None
        return self._is_open

    def on_lost(self, link: DialledLink, error: PeerError) -> None:
        """Fail what is open."""
        self._link = None
        if not isinstance(error, PeerRefusedError):
            lost = ServerLostError(f"parameter server {self.shard}: {error}", self.shard)
            lost.__cause__ = error
            error = lost
        self._fail(error)

    def target(self, frame: Frame) -> memoryview:
        """Return memory for an answer."""
        if frame.kind not in (_KINDS if self.hot is None else _KINDS | _HOT_KINDS):
            raise PeerProtocolError(f"{frame.kind.name} frame from the tables of a server")
        if frame.kind not in ROWS_KINDS or pull_number(frame) in self._taken:
            return memoryview(bytearray(frame.payload_bytes))
        is_last, number = frame.kind is FrameKind.ROWS, pull_number(frame)
        return self._open_pull(number).room(frame.payload_bytes, is_last=is_last)

    def _open_pull(self, number: int) -> OpenPull:
        pull = self._pulls.get(number)
        if pull is None:
            raise PeerProtocolError(f"rows of pull {number}, which is not open")
        return pull

    def on_frame(self, frame: Frame, payload: memoryview) -> None:
        """Take an answer."""
        self._heard_s = time.monotonic()
        if frame.kind in ROWS_KINDS and pull_number(frame) in self._taken:
            return  # the server did not know it yet
        if self._meter is not None and self._link is not None:
            self._meter.received(frame, payload, self._link.arrived_ns)
        match frame.kind:
            case FrameKind.ENTERED:
                self._on_entered(EnteredFrame.unpack(frame))
            case FrameKind.RECEIPT:
                receipt = ReceiptFrame.unpack(frame)
                self.version = whole_version(receipt.version, self.version)
                self._on_receipt(receipt.number)
            case FrameKind.ROWS | FrameKind.PIECE:
                self._on_answer(frame, payload)
            case FrameKind.SEND_ON | FrameKind.MODEL_COMING:
                if self.relay is None:
                    self.tell_server(declined(frame))
                else:
                    self.relay.on_told(self, frame, payload)
            case FrameKind.HOT_ROWS | FrameKind.DECISIONS:
                assert self.hot is not None
                self.hot.on_frame(frame, payload)
            case _:
                self._on_denied(DeniedFrame.unpack(frame), bytes(payload))

    def _on_answer(self, frame: Frame, payload: memoryview) -> None:
        number = pull_number(frame)
        if self.relay is not None:
            self.relay.on_bytes(self, number, payload)
        if frame.kind is FrameKind.ROWS:
            self._on_rows(number)
        else:
            self._open_pull(number).filled_bytes += len(payload)

    def _on_entered(self, entered: EnteredFrame) -> None:
        if self._identity not in (None, entered.identity):
            text = (
                f"parameter server {self.shard} was restarted without its tables, or with another"
                " log. Give it the log that it had, or restart the servers and all workers"
            )
            self._end(ServerRestartedError(text))
            return
        self._identity = entered.identity
        self.version = entered.version
        self._has_entered = True
        if not self._last_change:
            # A replica with a copy of the server's log knows this process's changes there.
            self._last_change = entered.accepted
        self._on_receipt(entered.accepted - entered.num_open)
        changes = self._changes.values()
        self.clock = entered.clock + sum(c.frame.kind is FrameKind.ADVANCE for c in changes)
        for change in self._changes.values():
            if change.frame.number > entered.accepted:
                self._send_again(change)
        for pull in self._pulls.values():
            self._send_again(pull)
        waiting, self._entered = self._entered, []
        for done in waiting:
            done(None)

    def _on_receipt(self, number: int) -> None:
        self.note_parsed()
        while self._changes and (first := next(iter(self._changes))) <= number:
            self._changes.pop(first).done(None)

    def _on_rows(self, number: int) -> None:
        pull = self._open_pull(number)
        del self._pulls[number]
        rows = pull.rows()
        self.version = max(self.version, int(rows.versions[0]))  # a model's, which took its time
        pull.done(rows)

    def _on_denied(self, denied: DeniedFrame, text: bytes) -> None:
        error = error_of(json.loads(text), f"parameter server {self.shard}")
        if denied.is_pull:
            pull = self._pulls.pop(denied.number, None)
            if pull is not None:
                pull.done(error)
            return
        if not denied.number:
            self._end(error)  # it could not enter
            return
        change = self._changes.pop(denied.number, None)
        if change is not None:
            # An iteration whose sums are refused has ended.
            is_kept = change.frame.kind is FrameKind.ADVANCE and isinstance(error, RowTableError)
            self.clock -= change.frame.kind is FrameKind.ADVANCE and not is_kept
            change.done(error)
