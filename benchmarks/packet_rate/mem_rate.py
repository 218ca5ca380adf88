# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the pipeline alone: softswitch's data-plane thread over mem ports."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.packet_rate import traffic
from benchmarks.packet_rate.contenders import Setup
from benchmarks.packet_rate.traffic import TrafficPattern
from p4runtime_control import P4RuntimeControl
from switchfold import p4src
from switchfold.softswitch.compilation.compiler import compile_program
from switchfold.softswitch.p4runtime.service.serve import serve
from switchfold.softswitch.switch.switch import Switch

TIMEOUT_S = 10.0


@dataclass(frozen=True, kw_only=True)
class MemResult:
    """One run in which every received frame was expected."""

    sent: int
    elapsed_s: float
    cpu_s: float
    """Processor time of the data-plane thread."""


class MemBench:
    """A switch with mem ports, and the traffic through them."""

    def __init__(self, switch: Switch, of: TrafficPattern, thread: int) -> None:
        self._traffic = of
        self._thread = thread
        self._ports = [switch.ports.mem_port(port) for port in range(1, traffic.NUM_PORTS + 1)]
        # Two halves of the slots in turn, so that the switch never waits for this thread.
        self._halves = [np.arange(len(of.frames))[side::2] for side in (0, 1)]
        self._received = np.zeros((traffic.NUM_PORTS, *of.frames.shape[::2]), np.uint8)
        self._lengths = np.zeros(len(of.frames), np.int32)
        self._round = 0

    def run(self, rounds: int, *, is_verified: bool) -> MemResult:
        """Run rounds of all slots; raises SystemExit after a loss or a wrong frame."""
        prepared = [self._frames(self._round + index + 1) for index in range(rounds)]
        cpu, started = self._cpu_s(), time.perf_counter()
        sent = self._send(prepared[0][0])
        for step in range(2 * rounds):
            if step + 1 < 2 * rounds:
                sent += self._send(prepared[(step + 1) // 2][(step + 1) % 2])
            counts = self._receive(step % 2)
            if is_verified:
                self._verify(counts, step % 2, self._round + step // 2 + 1)
        elapsed = time.perf_counter() - started
        self._round += rounds
        return MemResult(sent=sent, elapsed_s=elapsed, cpu_s=self._cpu_s() - cpu)

    def _cpu_s(self) -> float:
        return time.clock_gettime(~self._thread << 3 | 6)  # MAKE_THREAD_CPUCLOCK, CPUCLOCK_SCHED

    def _frames(self, number: int) -> list[list[NDArray[np.uint8]]]:
        """Return a round's frames by half and port."""
        made: list[list[NDArray[np.uint8]]] = []
        for slots in self._halves:
            by_port: list[NDArray[np.uint8]] = []
            for port in range(traffic.NUM_PORTS):
                chosen = slots[self._traffic.sends[slots] >> np.uint64(port) & np.uint64(1) == 1]
                frames = self._traffic.frames[chosen, port].copy()
                put_round(self._traffic, frames, number, np.zeros(len(frames), np.uint32))
                by_port.append(frames)
            made.append(by_port)
        return made

    def _send(self, by_port: Iterable[NDArray[np.uint8]]) -> int:
        sent = 0
        for port, frames in zip(self._ports, by_port, strict=True):
            lengths = np.full(len(frames), self._traffic.frame_bytes, np.int32)
            if len(frames) and port.send(frames, lengths) != len(frames):
                raise SystemExit("a mem port was full: use fewer slots")
            sent += len(frames)
        return sent

    def _receive(self, half: int) -> list[int]:
        slots = self._halves[half]
        counts: list[int] = []
        for index, port in enumerate(self._ports):
            bits = self._traffic.receives[slots] >> np.uint64(index) & np.uint64(1)
            wanted, have = int(bits.sum()), 0
            while have < wanted:
                rows = self._received[index, have:wanted]
                count = port.receive(rows, self._lengths[have:wanted], TIMEOUT_S)
                if count == 0:
                    raise SystemExit(f"{wanted - have} frames missing after {TIMEOUT_S} s")
                have += count
            counts.append(have)
        return counts

    def _verify(self, counts: list[int], half: int, number: int) -> None:
        of = self._traffic
        slots = set(self._halves[half].tolist())
        for port, count in enumerate(counts):
            got = self._received[port, :count]
            index = got[:, of.slot_offset : of.slot_offset + 4].copy().view(">u4")[:, 0]
            if len(set(index.tolist())) != count or not slots.issuperset(index.tolist()):
                raise SystemExit(f"{of.name}: a slot was answered twice or out of turn")
            wanted = of.answers[index, port].copy()
            others = np.zeros(count, np.uint32)
            if of.any_offset:
                wanted[:, of.any_offset] = got[:, of.any_offset]
                others = got[:, of.any_offset].astype(np.uint32) << 8
            put_round(of, wanted, number, others)
            if of.checksum_offset:
                # v1model's csum16 leaves a sum of 0 where senders write 0xffff.
                at = slice(of.checksum_offset, of.checksum_offset + 2)
                wanted[~got[:, at].any(axis=1) & (wanted[:, at] == 0xFF).all(axis=1), at] = 0
            if not np.array_equal(got, wanted):
                raise SystemExit(f"{of.name}: port {port + 1} sent an unexpected frame")


def put_round(
    of: TrafficPattern, frames: NDArray[np.uint8], number: int, others: NDArray[np.uint32]
) -> None:
    """Write a round into frames of round 0; `others` holds further words for the checksums."""
    frames[:, of.round_offset : of.round_offset + 4] = np.array([number], ">u4").view(np.uint8)
    if not of.checksum_offset:
        return
    field = frames[:, of.checksum_offset : of.checksum_offset + 2]
    sums = (~field.copy().view(">u2")[:, 0]).astype(np.uint32) + others
    sums += (number >> 16) + (number & 0xFFFF)
    for _ in range(2):
        sums = (sums >> 16) + (sums & 0xFFFF)
    checksums = (~sums & 0xFFFF).astype(">u2")
    checksums[checksums == 0] = 0xFFFF
    field[:] = checksums[:, None].view(np.uint8)


@contextmanager
def mem_bench(
    of: TrafficPattern, artefacts: p4src.Artefacts, fill: Setup, cores: set[int]
) -> Iterator[MemBench]:
    """Run a program in this process on `cores`; P4Runtime sets its tables."""
    compile_program(artefacts.json)  # fills the cache: a client would not wait for the compiler
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        switch = stack.enter_context(Switch())
        for port in range(1, traffic.NUM_PORTS + 1):
            switch.ports.add(port, "mem")
        before = set(os.listdir("/proc/self/task"))
        switch.start()
        (thread,) = set(os.listdir("/proc/self/task")) - before
        os.sched_setaffinity(int(thread), cores)
        server = stack.enter_context(serve(switch, address=f"unix:{folder / 'grpc'}"))
        control = P4RuntimeControl(artefacts, server.address)
        try:
            fill(control)
        finally:
            control.close()
        yield MemBench(switch, of, int(thread))
