# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of relayed models, there and back, and those out of place at a worker's relay."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopback import LOOPBACK
from switchfold.hostlib.errors import PeerClosedError, PeerError, PeerProtocolError
from switchfold.hostlib.parameter_server import ClientOptions
from switchfold.hostlib.parameter_server.options import GENERATION
from switchfold.hostlib.parameter_server.transfers import TransferOptions
from switchfold.hostlib.parameter_server.transfers.models.relay_receiver import (
    MOST_OPEN,
    IncomingModel,
    RelayReceiver,
)
from switchfold.hostlib.peers.dialled import DialledLink
from switchfold.hostlib.peers.event_loop import EventLoop
from switchfold.hostlib.peers.frames import (
    MAX_BATCH_BYTES,
    Frame,
    FrameKind,
    Greeting,
    ModelCameFrame,
    ModelComingFrame,
    ModelFrame,
    NotSentOnFrame,
    Packable,
    PieceFrame,
    Purpose,
    SendOnFrame,
)
from switchfold.hostlib.peers.frames.header import HEADER_BYTES
from switchfold.hostlib.peers.handshake import PeerCall
from time_bound import wait_until

WAIT_S = 120.0
U16, U32, U64 = (st.integers(0, (1 << bits) - 1) for bits in (16, 32, 64))
IDS, DIGESTS = st.binary(min_size=16, max_size=16), st.binary(min_size=32, max_size=32)
ADDRESSES = st.ip_addresses(v=4).map(str)
ID = bytes(16)


@settings(deadline=None, derandomize=True)
@given(
    st.builds(SendOnFrame, U64, IDS, U64, U32, st.tuples(ADDRESSES, U16))
    | st.builds(ModelComingFrame, U64, IDS, DIGESTS, U64)
    | st.builds(ModelFrame, U64, IDS, U64)
)
def test_frames_with_payloads_there_and_back(
    sent: SendOnFrame | ModelComingFrame | ModelFrame,
) -> None:
    packed = sent.pack()
    frame = Frame.unpack(packed[:HEADER_BYTES])
    assert frame.payload_bytes == len(packed) - HEADER_BYTES
    payload = memoryview(packed)[HEADER_BYTES:]
    assert type(sent).unpack(frame, payload) == sent
    with pytest.raises(PeerProtocolError, match=f"a {frame.kind.name} of {len(payload) - 1} bytes"):
        type(sent).unpack(frame, payload[:-1])


@settings(deadline=None, derandomize=True)
@given(st.builds(ModelCameFrame, U64, st.booleans(), U32) | st.builds(NotSentOnFrame, U64))
def test_other_frames_there_and_back(sent: ModelCameFrame | NotSentOnFrame) -> None:
    assert type(sent).unpack(Frame.unpack(sent.pack())) == sent


def test_a_time_that_is_too_long_is_the_longest() -> None:
    sent = ModelCameFrame(1, is_whole=True, took_us=1 << 40)
    assert ModelCameFrame.unpack(Frame.unpack(sent.pack())).took_us == (1 << 32) - 1


class Sender:
    """Another worker's connection, on which a test sends what it likes."""

    def __init__(
        self, loop: EventLoop, place: tuple[str, int], purpose: Purpose = Purpose.MODELS
    ) -> None:
        self.ended: Future[PeerError] = Future()
        self._loop = loop
        self._is_up = threading.Event()
        call = PeerCall(
            address=place,
            source=LOOPBACK,
            greeting=Greeting(1, GENERATION, 1, 0, purpose),
            token="",
        )

        def dial() -> None:
            self._link = DialledLink(loop, call, self, unreachable_s=WAIT_S)

        loop.run(dial)

    def send(self, frame: Packable, payload: bytes = b"") -> None:
        assert self._is_up.wait(WAIT_S)
        room = memoryview(payload) if payload else None
        self._loop.run(lambda: self._link.send(frame, room))

    def close(self) -> None:
        self._loop.run(self._link.close)

    def on_up(self, link: DialledLink) -> None:
        self._is_up.set()

    def target(self, frame: Frame) -> memoryview:
        raise AssertionError(f"a relay answers {frame}")

    def on_frame(self, frame: Frame, payload: memoryview) -> None:
        raise AssertionError(f"a relay answers {frame}")

    def on_down(self, link: DialledLink, error: PeerError) -> bool:
        self.ended.set_result(error)
        return False

    def on_lost(self, link: DialledLink, error: PeerError) -> None:
        self.ended.set_result(error)


class Relay:
    """A worker's listening end, and those who send to it."""

    def __init__(self, receiver: RelayReceiver, seen: queue.SimpleQueue[IncomingModel]) -> None:
        self.receiver, self.seen = receiver, seen
        self.loop = EventLoop("senders")

    def sender(self, purpose: Purpose = Purpose.MODELS) -> Sender:
        return Sender(self.loop, self.receiver.place, purpose)

    @property
    def held_bytes(self) -> int:
        return self.receiver._memory.held_bytes


@contextmanager
def relay(most_bytes: int = 1 << 20) -> Iterator[Relay]:
    seen: queue.SimpleQueue[IncomingModel] = queue.SimpleQueue()
    options = TransferOptions(
        controller="unix:/nowhere", job="train", host="h0", relay_address=LOOPBACK
    )
    receiver = RelayReceiver(
        options,
        ClientOptions(worker_id=0, insecure=True),
        on_progress=seen.put,
        most_bytes=most_bytes,
    )
    made = Relay(receiver, seen)
    try:
        yield made
    finally:
        made.loop.stop(lambda: None)
        receiver.close()


def test_a_model_comes_in_pieces() -> None:
    with relay() as made:
        sender = made.sender()
        sender.send(ModelFrame(1, ID, 5))
        sender.send(PieceFrame(3, 1), b"abc")
        incoming = made.seen.get(timeout=WAIT_S)
        assert (incoming.model_id, incoming.num_bytes) == (ID, 5)
        sender.send(PieceFrame(2, 1), b"de")
        assert made.seen.get(timeout=WAIT_S) is incoming
        assert not incoming.is_broken
        assert incoming.came == b"abcde"
        assert made.held_bytes == 5
        for _ in range(2):
            made.receiver.release(incoming)
        wait_until(lambda: not made.held_bytes, "the memory is not free", WAIT_S)


def test_a_connection_that_ends_breaks_what_is_not_whole() -> None:
    with relay() as made:
        sender = made.sender()
        sender.send(ModelFrame(1, ID, 5))
        sender.send(PieceFrame(3, 1), b"abc")
        incoming = made.seen.get(timeout=WAIT_S)
        sender.close()
        assert made.seen.get(timeout=WAIT_S) is incoming
        assert incoming.is_broken
        assert incoming.came == b"abc"


def test_what_has_no_room_is_thrown_away() -> None:
    """Nothing is told of it, and what comes after that has room again."""
    with relay(most_bytes=8) as made:
        sender = made.sender()
        sender.send(ModelFrame(1, ID, 5))
        sender.send(ModelFrame(2, ID[1:] + b"2", 5))
        sender.send(PieceFrame(5, 2), b"abcde")
        sender.send(PieceFrame(5, 1), b"fghij")
        incoming = made.seen.get(timeout=WAIT_S)
        assert (incoming.model_id, incoming.memory) == (ID, b"fghij")
        made.receiver.release(incoming)
        wait_until(lambda: not made.held_bytes, "the memory is not free", WAIT_S)
        sender.send(ModelFrame(3, ID, 8))
        sender.send(PieceFrame(8, 3), b"klmnopqr")
        assert made.seen.get(timeout=WAIT_S).memory == b"klmnopqr"
        assert made.seen.empty()


@pytest.mark.parametrize(
    "frames",
    [
        [PieceFrame(1, 1)],
        [ModelFrame(1, ID, 1), PieceFrame(2, 1)],
        [ModelFrame(1, ID, 1), ModelFrame(1, ID, 1)],
        [ModelFrame(1, ID, 0)],
        [ModelFrame(1, ID, MAX_BATCH_BYTES + 1)],
        [Frame(FrameKind.TRANSFER, 0)],
        [ModelFrame(number, ID, 1) for number in range(MOST_OPEN + 1)],
    ],
    ids=["unknown", "too_long", "twice", "empty", "too_large", "other_kind", "too_many"],
)
def test_frames_out_of_place_end_the_connection(frames: list[Packable]) -> None:
    with relay() as made:
        sender = made.sender()
        for frame in frames:
            size = frame.payload_bytes if isinstance(frame, PieceFrame) else 0
            sender.send(frame, bytes(size))
        assert isinstance(sender.ended.result(WAIT_S), PeerClosedError)
        # Others are served.
        other = made.sender()
        other.send(ModelFrame(1, ID, 1))
        other.send(PieceFrame(1, 1), b"a")
        wait_until(lambda: made.seen.get(timeout=WAIT_S).memory == b"a", "the next model", WAIT_S)


def test_connections_for_other_purposes_are_refused() -> None:
    with relay() as made:
        error = made.sender(Purpose.TRANSFERS).ended.result(WAIT_S)
        assert "this is a relay of models" in str(error)
