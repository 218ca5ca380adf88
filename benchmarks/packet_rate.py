# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packets a second that softswitch aggregates, over mem ports, with the data-plane thread.

Every result of a first, untimed run is compared with the exact sum; the timed runs replay the same
frames on a fresh switch and count the results.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fake_switch import SWITCH, worker_endpoint  # noqa: E402
from hostlib import wire  # noqa: E402
from hostlib.transports.frames import LAYERS_BYTES, FrameCodec  # noqa: E402
from softswitch_job import GENERATION, JOB_ID, VALUES, SoftswitchJob  # noqa: E402

Frames = NDArray[np.uint8]
TIMEOUT_S = 10.0


def build_datagrams(values: int, workers: int, rounds: int, slots: int) -> NDArray[np.void]:
    """Contributions of shape (rounds, workers, slots), with small random values."""
    made = np.zeros((rounds, workers, slots), wire.datagram_dtype(values))
    header = made["header"]
    worker = np.arange(workers)[None, :, None]
    content = {
        "version": wire.WIRE_VERSION,
        "operation": wire.Operation.AGGREGATE_ADD,
        "job_id": JOB_ID,
        "worker_id": worker,
        "generation": GENERATION,
        "slot_index": np.arange(slots),
        "round": np.arange(1, rounds + 1)[:, None, None],
        "range_end": values,
        "worker_bitmap": 1 << worker,
        "num_contributors": 1,
    }
    for name, value in content.items():
        header[name] = value
    shape = made["values"].shape
    made["values"] = np.random.default_rng(1).integers(-(1 << 20), 1 << 20, shape)
    return made


def build_frames(datagrams: NDArray[np.void]) -> Frames:
    """Frames of shape (rounds, workers, slots, frame bytes)."""
    size = datagrams.dtype.itemsize
    rows = datagrams.view(np.uint8).reshape(*datagrams.shape, size)
    frames = np.empty((*datagrams.shape, LAYERS_BYTES + size), np.uint8)
    for worker in range(datagrams.shape[1]):
        codec = FrameCodec(worker_endpoint(worker), SWITCH, size)
        for index in range(len(datagrams)):
            codec.wrap(rows[index, worker], frames[index, worker])
    return frames


class Run:
    """One pass of all frames through a fresh switch, two halves of the slots in turn."""

    def __init__(self, variant: str, frames: Frames) -> None:
        self.rounds, self.workers, self.slots, self.frame_bytes = frames.shape
        self.frames = frames
        self.job = SoftswitchJob(variant, self.workers, slot_count=self.slots)  # pyright: ignore[reportArgumentType]
        self.ports = [self.job.switch.mem_port(worker + 1) for worker in range(self.workers)]
        self.lengths = np.full(self.slots // 2, self.frame_bytes, np.int32)
        self.received = np.empty((self.workers, self.slots // 2, self.frame_bytes), np.uint8)
        self.received_lengths = np.empty(self.slots // 2, np.int32)

    def send(self, index: int, half: int) -> None:
        size = self.slots // 2
        for port, frames in zip(self.ports, self.frames[index], strict=True):
            if port.send(frames[half * size : (half + 1) * size], self.lengths) != size:
                raise SystemExit("a mem port had no room: take fewer slots")

    def receive(self) -> None:
        for port, frames in zip(self.ports, self.received, strict=True):
            have = 0
            while have < len(frames):
                count = port.receive(frames[have:], self.received_lengths[have:], TIMEOUT_S)
                if count == 0:
                    raise SystemExit(f"{len(frames) - have} results missing after {TIMEOUT_S} s")
                have += count

    def time(self, datagrams: NDArray[np.void] | None = None) -> float:
        """Seconds from first frame to last result; with datagrams, every result is verified."""
        started = time.perf_counter()
        self.send(0, 0)
        for step in range(2 * self.rounds):
            if step + 1 < 2 * self.rounds:
                self.send((step + 1) // 2, (step + 1) % 2)
            self.receive()
            if datagrams is not None:
                self.verify(datagrams[step // 2], step % 2)
        elapsed = time.perf_counter() - started
        self.job.close()
        return elapsed

    def verify(self, sent: NDArray[np.void], half: int) -> None:
        size = self.slots // 2
        total = sent["values"].astype(np.int64).sum(axis=0)[half * size : (half + 1) * size]
        for worker, frames in enumerate(self.received):
            codec = FrameCodec(worker_endpoint(worker), SWITCH, sent.dtype.itemsize)
            rows = np.empty((size, sent.dtype.itemsize), np.uint8)
            lengths = np.full(size, self.frame_bytes, np.int32)
            if codec.unwrap(frames, lengths, rows, Counter()) != size:
                raise SystemExit("a result is no intact frame of the switch")
            results = rows.view(sent.dtype)[:, 0]
            order = np.argsort(results["header"]["slot_index"])
            if not np.array_equal(results["values"][order], total):
                raise SystemExit("a result is not the sum of what was sent")


def describe_machine() -> dict[str, object]:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return {
        "commit": done.stdout.strip() or "unknown",
        "cpu": next(models, platform.machine()),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--slots", type=int, default=128, help="half of them are under way at once")
    parser.add_argument("--packets", type=int, default=50_000, help="contributions in a run")
    parser.add_argument("--repeats", type=int, default=5, help="after one verified warm-up")
    options = parser.parse_args()
    rounds = options.packets // options.workers // options.slots
    report: dict[str, object] = {"machine": describe_machine(), **vars(options)}
    for variant, values in VALUES.items():
        datagrams = build_datagrams(values, options.workers, rounds, options.slots)
        frames = build_frames(datagrams)
        Run(variant, frames).time(datagrams)
        count = datagrams.size
        rates = [count / Run(variant, frames).time() for _ in range(options.repeats)]
        report[variant] = {
            "frame_bytes": frames.shape[-1],
            "packets_in": count,
            "packets_in_per_s": {
                "median": round(statistics.median(rates)),
                "min": round(min(rates)),
                "max": round(max(rates)),
            },
        }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
