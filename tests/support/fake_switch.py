# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The slot protocol in plain Python behind mem-like ports, with seeded impairments."""

from __future__ import annotations

import random
import threading
from collections import Counter, deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from switchfold.hostlib.control.view import Endpoint, JobView, Member, TreeView
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.slots.wire import (
    MAX_WORKERS,
    Flag,
    Operation,
    Outcome,
    datagram_bytes,
    view_datagrams,
)
from switchfold.hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy
from switchfold.hostlib.transports.frames import FrameCodec
from switchfold.hostlib.transports.mem import MemTransport

SWITCH = Endpoint(address="10.0.0.254", mac="02:00:00:00:01:00")
INT32 = np.iinfo(np.int32)


def worker_endpoint(worker_id: int) -> Endpoint:
    return Endpoint(
        address=f"10.0.0.{worker_id + 1}",
        udp_port=40000,
        mac=f"02:00:00:00:00:{worker_id + 1:02x}",
    )


@dataclass
class SlotCopy:
    round: int = 0
    bitmap: int = 0
    count: int = 0
    flags: int = 0
    key: tuple[int, ...] = ()
    is_closed: bool = False
    packet: NDArray[np.void] | None = None
    lanes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(kw_only=True)
class FakeTree:
    """The table entries of one tree."""

    generation: int
    slot_count: int
    members: tuple[int, ...]
    straggler: StragglerPolicy = WAIT_FOR_ALL

    @property
    def quorum(self) -> int:
        return self.straggler.quorum or len(self.members)


class FakePort:
    """One worker's cable to the fake switch."""

    def __init__(self, switch: FakeSwitch, worker_id: int) -> None:
        self.switch = switch
        self.worker_id = worker_id
        self.queue: deque[NDArray[np.uint8]] = deque()
        self.arrived = threading.Condition(switch.lock)

    def send(self, frames: NDArray[np.uint8], lengths: NDArray[np.int32]) -> int:
        self.switch.take(self.worker_id, frames)
        return len(frames)

    def receive(
        self, frames_out: NDArray[np.uint8], lengths_out: NDArray[np.int32], timeout_s: float
    ) -> int:
        with self.arrived:
            self.arrived.wait_for(lambda: bool(self.queue), timeout_s)
            count = 0
            while self.queue and count < len(frames_out):
                frame = self.queue.popleft()
                frames_out[count, : len(frame)] = frame
                lengths_out[count] = len(frame)
                count += 1
            return count


class FakeSwitch:
    """All workers of one job; impairments apply to every packet in both directions."""

    def __init__(  # noqa: PLR0913 - a test names the few that differ
        self,
        num_workers: int,
        *,
        values_per_packet: int = 32,
        slot_count: int = 32,
        loss: float = 0.0,
        duplication: float = 0.0,
        reordering: float = 0.0,
        seed: int = 1,
        straggler: StragglerPolicy = WAIT_FOR_ALL,
    ) -> None:
        self.num_workers = num_workers
        self.values_per_packet = values_per_packet
        self.loss, self.duplication, self.reordering = loss, duplication, reordering
        self.random = random.Random(seed)
        self.lock = threading.RLock()
        self.outcomes: Counter[Outcome] = Counter()
        self.copies: dict[tuple[int, int, int], SlotCopy] = {}
        """By tree id, slot in the tree, parity of the round."""
        self.held: deque[tuple[int, int | None, NDArray[np.uint8]]] = deque()
        self.ports = [FakePort(self, i) for i in range(num_workers)]
        self.is_deaf = False
        self.job_id, self.generation = 7, 1000
        self.trees: dict[int, FakeTree] = {}
        self.peers: dict[int, PeerServer] = {}
        """Peer servers by worker, to be named in views."""
        self.max_priority = 0
        """What views grant."""
        self.is_on_host = False
        """What views say of it."""
        self.address = SWITCH
        members = tuple(range(num_workers))
        self.install(self.generation, members, {7: slot_count}, straggler)
        self._use_address(SWITCH)

    def _use_address(self, switch: Endpoint) -> None:
        size = datagram_bytes(self.values_per_packet)
        ends = [worker_endpoint(i) for i in range(self.num_workers)]
        self.codecs = [FrameCodec(switch, end, size) for end in ends]

    def adopt(self, view: JobView) -> None:
        """Become the switch that a controller described to its workers."""
        self.job_id, self.generation = view.trees[0].tree_id, view.generation
        self.values_per_packet = view.values_per_packet
        trees = {tree.tree_id: tree.slot_count for tree in view.trees}
        self.trees.clear()
        self.install(view.generation, tuple(view.member_ids), trees, view.straggler)
        self._use_address(view.switch)

    def install(
        self,
        generation: int,
        members: tuple[int, ...],
        trees: dict[int, int],
        straggler: StragglerPolicy = WAIT_FOR_ALL,
    ) -> None:
        """Install a view beside those that are there; trees: slots by tree id."""
        with self.lock:
            for tree_id, slot_count in trees.items():
                self.trees[tree_id] = FakeTree(
                    generation=generation,
                    slot_count=slot_count,
                    members=members,
                    straggler=straggler,
                )
            self.generation = generation

    def remove(self, generation: int) -> None:
        """Remove a view."""
        with self.lock:
            for tree_id, tree in list(self.trees.items()):
                if tree.generation == generation:
                    del self.trees[tree_id]

    def view(self, worker_id: int) -> JobView:
        """Return a worker's view of the newest view; without trees it has no switch."""
        trees = {i: tree for i, tree in self.trees.items() if tree.generation == self.generation}
        newest = next(iter(trees.values()))
        return JobView(
            job=self.job_id,
            generation=self.generation,
            worker_id=worker_id,
            members=tuple(self.member(i) for i in newest.members),
            trees=tuple(
                TreeView(
                    tree_id=i,
                    slot_count=tree.slot_count,
                    members=sum(1 << member for member in tree.members if member < MAX_WORKERS),
                )
                for i, tree in trees.items()
            ),
            child_id=worker_id,
            worker_bitmap=1 << worker_id,
            values_per_packet=self.values_per_packet,
            switch=self.address,
            straggler=newest.straggler,
            max_priority=self.max_priority,
            is_on_host=self.is_on_host,
        )

    def member(self, worker_id: int) -> Member:
        peer = self.peers.get(worker_id)
        if peer is None:
            return Member(worker_id=worker_id)
        return Member(worker_id=worker_id, peer_address=peer.address, peer_port=peer.port)

    def transport(self, worker_id: int) -> MemTransport:
        return MemTransport(self.ports[worker_id], worker_endpoint(worker_id))

    def flush(self, count: int) -> None:
        """Flush every open round that has `count` contributors."""
        with self.lock:
            for copy in list(self.copies.values()):
                if copy.packet is not None and not copy.is_closed and copy.count == count:
                    tree = self.trees[int(copy.packet["header"][0]["job_id"])]
                    self.outcomes[self._flush(copy.packet, copy, tree, 0, copy.round)] += 1

    def take(self, worker_id: int, frames: NDArray[np.uint8]) -> None:
        size = datagram_bytes(self.values_per_packet)
        datagrams = np.empty((len(frames), size), np.uint8)
        lengths = np.full(len(frames), frames.shape[1], np.int32)
        with self.lock:
            count = self.codecs[worker_id].unwrap(frames, lengths, datagrams, Counter())
            assert count == len(frames)
            if self.is_deaf:
                return
            for row in datagrams:
                self._impaired(worker_id, None, row)

    def _impaired(self, worker_id: int, to: int | None, row: NDArray[np.uint8]) -> None:
        """Lose, double or hold back a packet; `to` None means towards the switch."""
        if self.random.random() < self.loss:
            return
        copies = 1 + (self.random.random() < self.duplication)
        for _ in range(copies):
            if self.random.random() < self.reordering:
                self.held.append((worker_id, to, row.copy()))
            else:
                self.deliver(worker_id, to, row)
        # Held packets come out after many others: beyond a whole round of a small pool.
        while self.held and (len(self.held) > 60 or self.random.random() < 0.01):
            self.deliver(*self.held.popleft())

    def deliver(self, worker_id: int, to: int | None, row: NDArray[np.uint8]) -> None:
        if to is not None:
            port = self.ports[to]
            frame = np.empty((1, self.codecs[to].frame_bytes), np.uint8)
            self.codecs[to].wrap(row[None, :], frame)
            port.queue.append(frame[0])
            port.arrived.notify_all()
            return
        self.outcomes[
            self.process(worker_id, view_datagrams(row[None, :].copy(), self.values_per_packet))
        ] += 1

    def process(self, worker_id: int, packet: NDArray[np.void]) -> Outcome:  # noqa: PLR0911, PLR0912 - the ladder of the protocol
        header = packet["header"][0]
        tree = self.trees.get(int(header["job_id"]))
        if tree is None:
            return Outcome.FOREIGN_JOB
        if worker_id not in tree.members:
            return Outcome.FOREIGN_WORKER
        if header["generation"] != tree.generation:
            return Outcome.BAD_GENERATION
        if header["operation"] == Operation.MULTICAST:
            row = packet.copy().view(np.uint8).reshape(-1)
            for other in tree.members:
                if other != worker_id:
                    self._impaired(worker_id, other, row)
            return Outcome.MULTICAST
        if header["slot_index"] >= tree.slot_count:
            return Outcome.BAD_SLOT
        operation, round_ = int(header["operation"]), int(header["round"])
        bit = 1 << int(header["worker_id"])
        place = (int(header["job_id"]), int(header["slot_index"]), round_ & 1)
        copy = self.copies.setdefault(place, SlotCopy())
        if operation == Operation.PROBE:
            self._answer(packet, copy, Operation.NOTICE, [worker_id])
            return Outcome.NOTIFIED
        key = tuple(
            int(header[n]) for n in ("tensor_id", "chunk_index", "range_start", "range_end")
        )
        if round_ < copy.round:
            if tree.straggler.allow_partial:
                self._answer(packet, copy, Operation.NOTICE, [worker_id])
                return Outcome.NOTIFIED
            return Outcome.STALE
        if round_ == copy.round and key != copy.key:
            return Outcome.MISMATCH
        if operation == Operation.FLUSH:
            return self._flush(packet, copy, tree, worker_id, round_)
        if round_ == copy.round and (copy.is_closed or copy.bitmap & bit):
            if not copy.is_closed:
                return Outcome.DUPLICATE
            self._answer(packet, copy, Operation.RESULT, [worker_id], Flag.REPLAY)
            return Outcome.REPLAYED
        self._add(packet, copy, operation, key)
        if copy.count < tree.quorum:
            return Outcome.ABSORBED
        copy.is_closed = True
        if copy.count < len(tree.members):
            copy.flags |= Flag.PARTIAL
        self._answer(packet, copy, Operation.RESULT, list(tree.members))
        return Outcome.COMPLETED

    def _flush(
        self,
        packet: NDArray[np.void],
        copy: SlotCopy,
        tree: FakeTree,
        worker_id: int,
        round_: int,
    ) -> Outcome:
        if round_ > copy.round:
            return Outcome.FLUSH_IGNORED
        if copy.is_closed:
            self._answer(packet, copy, Operation.RESULT, [worker_id], Flag.REPLAY)
            return Outcome.REPLAYED
        if copy.count < packet["header"][0]["expected"]:
            return Outcome.FLUSH_IGNORED
        copy.is_closed = True
        copy.flags |= Flag.FLUSHED
        if copy.count < len(tree.members):
            copy.flags |= Flag.PARTIAL
        self._answer(packet, copy, Operation.RESULT, list(tree.members))
        return Outcome.FLUSHED

    def _add(
        self, packet: NDArray[np.void], copy: SlotCopy, operation: int, key: tuple[int, ...]
    ) -> None:
        header, lanes = packet["header"][0], packet["values"][0].astype(np.int64)
        if header["round"] > copy.round:
            copy.round, copy.key = int(header["round"]), key
            copy.bitmap, copy.count, copy.flags, copy.is_closed = 0, 0, 0, False
            copy.lanes = lanes
        elif operation == Operation.AGGREGATE_MAX:
            copy.lanes = np.maximum(copy.lanes, lanes)
        else:
            total = copy.lanes + lanes
            copy.lanes = np.clip(total, INT32.min, INT32.max)
            if (total != copy.lanes).any():
                copy.flags |= Flag.OVERFLOW
        copy.bitmap |= 1 << int(header["worker_id"])
        copy.count += 1
        copy.packet = packet

    def _answer(
        self,
        packet: NDArray[np.void],
        copy: SlotCopy,
        operation: Operation,
        to: list[int],
        flags: int = 0,
    ) -> None:
        reply = packet.copy()
        header = reply["header"]
        header["operation"] = operation
        header["worker_bitmap"] = copy.bitmap
        header["num_contributors"] = copy.count
        if operation == Operation.RESULT:
            header["flags"] = (int(header["flags"][0]) & Flag.LAST) | copy.flags | flags
            reply["values"] = copy.lanes
        else:
            header["round"] = copy.round
        row = reply.view(np.uint8).reshape(-1)
        for worker_id in to:
            self._impaired(worker_id, worker_id, row)
