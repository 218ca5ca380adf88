# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Frames of scheduled updates, there and back, and what a server does with those out of place."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_transfers import expected, grant_everything, server
from switchfold.hostlib.errors import (
    ConfigurationError,
    PeerError,
    PeerProtocolError,
    PeerRefusedError,
)
from switchfold.hostlib.parameter_server.tables import DenseTensor
from switchfold.hostlib.parameter_server.transfers.update_port import MOST_OPEN
from switchfold.hostlib.peers.dialled import DialledLink
from switchfold.hostlib.peers.frames import (
    MAX_BATCH_BYTES,
    CommittedFrame,
    EnterFrame,
    Frame,
    FrameKind,
    PieceFrame,
    Purpose,
    SendAgainFrame,
    SumFrame,
    SummedUpdate,
    TransferFrame,
)
from switchfold.hostlib.peers.frames.header import HEADER_BYTES, PIECE_BYTES
from time_bound import wait_until
from transfer_scene import WAIT_S, TransferScene, values

U32, U64 = (st.integers(0, (1 << bits) - 1) for bits in (32, 64))
FACTORS = st.floats(allow_nan=False)
HEAD = TransferFrame(
    number=1,
    open_from=1,
    transfer_id=1,
    version=0,
    sequence=0,
    factor=1.0,
    table=1,
    num_keys=1,
    num_bytes=12,
    is_granted=True,
)


@settings(deadline=None, derandomize=True)
@given(
    st.builds(
        TransferFrame,
        *(U64, U64, U64, U64, U64, FACTORS, U32, U32, U32),
        is_granted=st.booleans(),
        has_left_group=st.booleans(),
    )
)
def test_transfers_there_and_back(sent: TransferFrame) -> None:
    packed = sent.pack()
    frame = Frame.unpack(packed[:HEADER_BYTES])
    assert frame.payload_bytes == len(packed) - HEADER_BYTES
    assert TransferFrame.unpack(frame, memoryview(packed)[HEADER_BYTES:]) == sent
    with pytest.raises(PeerProtocolError, match="a TRANSFER of"):
        TransferFrame.unpack(frame, memoryview(packed)[HEADER_BYTES:-1])


@settings(deadline=None, derandomize=True)
@given(
    st.builds(
        SumFrame,
        st.builds(
            TransferFrame,
            *(U64, U64, U64, U64, U64, FACTORS, U32, U32, U32),
            is_granted=st.just(True),
            has_left_group=st.just(False),
        ),
        st.lists(
            st.builds(SummedUpdate, U32, U64, U64, U64, U64, U64, U64), min_size=1, max_size=64
        ).map(tuple),
    )
)
def test_sums_there_and_back(sent: SumFrame) -> None:
    packed = sent.pack()
    frame = Frame.unpack(packed[:HEADER_BYTES])
    assert frame.payload_bytes == len(packed) - HEADER_BYTES
    assert SumFrame.unpack(frame, memoryview(packed)[HEADER_BYTES:]) == sent
    for size in 1, 52:
        with pytest.raises(PeerProtocolError, match="a SUM of"):
            SumFrame.unpack(frame, memoryview(packed)[HEADER_BYTES:][: 60 - size])


@settings(deadline=None, derandomize=True)
@given(
    st.builds(CommittedFrame, U64, U64, U32)
    | st.builds(PieceFrame, st.integers(1, 1 << 20), U64)
    | st.builds(SendAgainFrame, U64)
)
def test_other_frames_there_and_back(sent: CommittedFrame | PieceFrame | SendAgainFrame) -> None:
    assert type(sent).unpack(Frame.unpack(sent.pack())) == sent


class Stranger:
    """A worker's connection on which a test sends what it likes."""

    def __init__(self, tensor: DenseTensor, send: Callable[[DialledLink], None]) -> None:
        """It takes the place of the `FabricWorker` that would send the tensor's updates."""
        self.ended: Future[PeerError] = Future()
        self.frames: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        self._send = send
        client = tensor.client
        self._incarnation = client.incarnation
        call = client.sessions[0].call_for(Purpose.TRANSFERS)
        ready = threading.Event()

        def dial() -> None:
            self._link = DialledLink(client.loop, call, self, unreachable_s=WAIT_S)
            ready.set()

        client.loop.post(dial)
        assert ready.wait(WAIT_S)

    def on_up(self, link: DialledLink) -> None:
        self._send(link)

    def target(self, frame: Frame) -> memoryview:
        return memoryview(bytearray(frame.payload_bytes))

    def on_frame(self, frame: Frame, payload: memoryview) -> None:
        self.frames.put(frame)

    def on_down(self, link: DialledLink, error: PeerError) -> bool:
        self._end(error)
        return False

    def on_lost(self, link: DialledLink, error: PeerError) -> None:
        self._end(error)

    def _end(self, error: PeerError) -> None:
        if not self.ended.done():
            self.ended.set_result(error)


@pytest.mark.parametrize(
    ("frames", "what"),
    [
        ([Frame(FrameKind.ADVANCE)], "ADVANCE frame among scheduled updates"),
        ([EnterFrame(5), EnterFrame(6)], "another process is worker 0"),
        ([HEAD], "TRANSFER frame before ENTER"),
        ([None, EnterFrame(9)], "incarnation 9 after"),
        ([None, HEAD._replace(num_bytes=0)], "update 1 cannot begin"),
        ([None, HEAD._replace(num_bytes=MAX_BATCH_BYTES + 1)], "update 1 cannot begin"),
        ([None, HEAD._replace(factor=float("nan"))], "update 1 cannot begin"),
        ([None, HEAD._replace(factor=-1.0)], "update 1 cannot begin"),
        ([None, HEAD._replace(number=MOST_OPEN + 1)], f"update {MOST_OPEN + 1} cannot begin"),
        ([None, HEAD._replace(open_from=2)], "update 1 cannot begin"),
    ],
)
def test_frames_out_of_place_are_refused_and_the_others_go_on(
    frames: list[Frame | EnterFrame | TransferFrame | None], what: str
) -> None:
    """None stands for the worker's right ENTER."""
    with TransferScene(grant_everything()) as scene:
        tensor, other = scene.tensor(0), scene.worker(1)

        def send(link: DialledLink) -> None:
            for frame in frames:
                link.send(EnterFrame(tensor.client.incarnation) if frame is None else frame)

        stranger = Stranger(tensor, send)
        error = stranger.ended.result(WAIT_S)
        assert isinstance(error, PeerRefusedError)
        assert what in str(error)
        assert other.push(values(1)).result(WAIT_S).is_committed


@pytest.mark.parametrize("num_bytes", [13, PIECE_BYTES])
def test_more_bytes_than_announced_end_the_connection(num_bytes: int) -> None:
    with TransferScene(grant_everything()) as scene:
        tensor = scene.tensor(0)

        def send(link: DialledLink) -> None:
            link.send(EnterFrame(tensor.client.incarnation))
            link.send(HEAD)
            link.send(PieceFrame(num_bytes, 1), memoryview(bytes(num_bytes)))

        assert Stranger(tensor, send).ended.result(WAIT_S)
        assert scene.worker(1).push(values(1)).result(WAIT_S).is_committed


def test_a_piece_of_an_update_that_has_not_begun_ends_the_connection() -> None:
    with TransferScene(grant_everything()) as scene:
        tensor = scene.tensor(0)

        def send(link: DialledLink) -> None:
            link.send(EnterFrame(tensor.client.incarnation))
            link.send(PieceFrame(8, 3), memoryview(bytes(8)))

        assert Stranger(tensor, send).ended.result(WAIT_S)


def kinds_until(stranger: Stranger, last: FrameKind) -> list[FrameKind]:
    """Return the kinds of what a stranger gets, up to the last one."""
    kinds: list[FrameKind] = []
    while not kinds or kinds[-1] is not last:
        kinds.append(stranger.frames.get(timeout=WAIT_S).kind)
    return kinds


def test_an_update_that_begins_again_is_taken_from_its_new_beginning() -> None:
    """As after SEND_AGAIN. Bytes of the first attempt would be too many."""
    with TransferScene(grant_everything()) as scene:
        tensor = scene.tensor(0)

        def send(link: DialledLink) -> None:
            link.send(EnterFrame(tensor.client.incarnation))
            for size in 8, 12:
                link.send(HEAD)
                link.send(PieceFrame(size, 1), memoryview(bytes(size)))

        stranger = Stranger(tensor, send)
        kinds = kinds_until(stranger, FrameKind.DENIED)  # since there is no such table
        assert kinds == [FrameKind.ENTERED, FrameKind.DENIED]
        wait_until(lambda: scene.cluster.servers[0].updates._held_bytes == 0, "free memory")


def test_updates_that_the_worker_knows_the_end_of_leave_no_memory() -> None:
    with TransferScene(grant_everything()) as scene:
        tensor = scene.tensor(0)

        def send(link: DialledLink) -> None:
            link.send(EnterFrame(tensor.client.incarnation))
            link.send(HEAD)
            link.send(PieceFrame(8, 1), memoryview(bytes(8)))
            link.send(HEAD._replace(number=2, open_from=2))
            link.send(PieceFrame(12, 2), memoryview(bytes(12)))

        stranger = Stranger(tensor, send)
        kinds_until(stranger, FrameKind.DENIED)
        wait_until(lambda: scene.cluster.servers[0].updates._held_bytes == 0, "free memory")


@pytest.mark.parametrize("worker_id", [77, 1, 0])
def test_a_sum_of_updates_that_nobody_has_is_returned(worker_id: int) -> None:
    """No such worker, one that has not entered, and one whose other process has."""
    with TransferScene(grant_everything()) as scene:
        tensor = scene.tensor(0)
        member = SummedUpdate(worker_id, 9, 1, 1, 1, 0, 0)

        def send(link: DialledLink) -> None:
            link.send(EnterFrame(tensor.client.incarnation))
            link.send(SumFrame(HEAD, (member,)))
            link.send(PieceFrame(12, 1), memoryview(bytes(12)))

        stranger = Stranger(tensor, send)
        kinds_until(stranger, FrameKind.DENIED)
        assert scene.counter("returned_sums") == 1
        wait_until(lambda: scene.cluster.servers[0].updates._held_bytes == 0, "free memory")
        assert scene.worker(1).push(values(1)).result(WAIT_S).parts[0].version == 1


def test_an_update_of_an_unknown_table_is_denied_and_holds_up_nothing() -> None:
    with TransferScene(grant_everything()) as scene:
        fabric = scene.worker(0)
        link = fabric._links[0]
        fabric._table = 7
        with pytest.raises(ConfigurationError, match="has not been defined"):
            fabric.push(values(1)).result(WAIT_S)
        assert scene.counter("denied_updates") == 1
        told = scene.fake.wait_for(server(), "delivered", 2)
        assert [each.is_refused for each in told[:2]] == [False, True]
        # If its place is told again, or only now, the server says so again.
        scene.fake.tell(server(), expected(0, 0, told[0].transfer_id))
        again = scene.fake.wait_for(server(), "delivered", 3)
        assert all(each.is_refused for each in again[2:])
        fabric._table = scene.definition.table().number
        assert fabric.push(values(1)).result(WAIT_S).parts[0].version == 1
        assert not link._open


def test_an_update_that_comes_again_is_answered_and_not_applied() -> None:
    """The worker has not heard of its outcome: over the same connection, and over the next one."""
    with TransferScene(grant_everything()) as scene:
        tensor = scene.tensor(0)
        (part,) = tensor.parts(values(1))
        payload, num_keys = part.payload, part.num_keys
        head = HEAD._replace(
            table=scene.definition.table().number,
            num_keys=num_keys,
            num_bytes=payload.nbytes,
            transfer_id=0,
            is_granted=False,
        )
        enter = EnterFrame(tensor.client.incarnation)

        def send_twice(link: DialledLink) -> None:
            link.send(enter)
            for _ in range(2):
                link.send(head)
                link.send(PieceFrame(payload.nbytes, 1), payload)

        first = Stranger(tensor, send_twice)
        kinds = [first.frames.get(timeout=WAIT_S) for _ in range(3)]
        assert [frame.kind.name for frame in kinds] == ["ENTERED", "COMMITTED", "COMMITTED"]
        assert [CommittedFrame.unpack(frame).number for frame in kinds[1:]] == [1, 1]
        assert scene.counter("ungranted_updates") == 1
        assert scene.counter("repeated_updates") == 1
        second = Stranger(tensor, lambda link: link.send(enter))
        told, entered = (second.frames.get(timeout=WAIT_S) for _ in range(2))
        assert CommittedFrame.unpack(told) == CommittedFrame(1, 1, 0)
        assert entered.kind is FrameKind.ENTERED
        read = tensor.read().result(WAIT_S)
        assert (read.values == values(1)).all()
        assert read.commits.tolist() == [1]


def test_updates_on_their_path_through_the_log_count_for_delays(tmp_path: Path) -> None:
    with TransferScene(grant_everything(), folder=tmp_path, tau_max=0) as scene:
        tensor = scene.tensor(0)
        (part,) = tensor.parts(values(1))
        payload, num_keys = part.payload, part.num_keys
        head = HEAD._replace(
            table=scene.definition.table().number,
            num_keys=num_keys,
            num_bytes=payload.nbytes,
            transfer_id=0,
            is_granted=False,
        )

        def send_two(link: DialledLink) -> None:
            link.send(EnterFrame(tensor.client.incarnation))
            for number in (1, 2):
                link.send(head._replace(number=number))
                link.send(PieceFrame(payload.nbytes, number), payload)

        stranger = Stranger(tensor, send_two)
        told = {stranger.frames.get(timeout=WAIT_S).kind.name for _ in range(3)}
        assert told == {"ENTERED", "COMMITTED", "DENIED"}
        assert scene.counter("stale_updates") == 1
