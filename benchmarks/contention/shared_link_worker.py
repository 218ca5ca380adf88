# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One process of fairness.py, incast.py or priority.py: a job's worker, or an end of a TCP flow.

Each process prints a line when it is ready. Then a file gives begin and end of the counting, as
times of the machine's monotonic clock. The last line of the output is JSON.

Workers sum known integer tensors, two at a time, and check each sum. The last value is a vote to
continue, so all workers stop after the same tensor.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from switchfold.hostlib import SessionOptions
from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.future import AllreduceFuture
from switchfold.hostlib.slots.wire import frame_bytes

DEPTH = 2
"""Tensors in flight, so that links are not idle between two of them."""
TCP_BLOCK_BYTES = 1 << 16
TIMEOUT_S = 60.0
"""Limit for all processes to be ready, and for a flow without progress."""
Report = dict[str, Any]


def await_start(options: argparse.Namespace) -> tuple[float, float]:
    """Report that this process is ready; return begin and end of the counting."""
    print("ready", flush=True)
    deadline_s = time.monotonic() + TIMEOUT_S
    while not options.times.exists():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{options.times} was not written within {TIMEOUT_S:g} s")
        time.sleep(0.02)
    begin, end = options.times.read_text().split()
    return float(begin), float(end)


def run_job(options: argparse.Namespace) -> Report:
    """Sum until the end; return the worker's rate of results and its statistics."""
    worker_id = int(os.environ["SWITCHFOLD_WORKER_ID"])
    count = int(os.environ["SWITCHFOLD_NUM_WORKERS"])
    settings = SessionOptions(
        timeout_s=60.0,
        window=options.window,
        slots_wanted=options.slots,
        max_priority=options.max_priority,
    )
    ramp = np.arange(options.elements, dtype=np.int32)
    expected = ramp[:-1] * np.int32(count * (count + 1) // 2)
    with join_from_environment(settings) as session:
        session.barrier("begin")
        begin_s, end_s = await_start(options)
        waiting: deque[tuple[int, AllreduceFuture]] = deque()
        number, goes_on = 0, True
        inside: list[tuple[float, dict[str, int | float]]] = []
        while goes_on or waiting:
            if goes_on and len(waiting) < DEPTH:
                salt = number % 1_000
                array = ramp * np.int32(worker_id + 1) + np.int32(salt)
                array[-1] = int(time.monotonic() < end_s)
                waiting.append((salt, session.allreduce(array)))
                number += 1
                continue
            salt, future = waiting.popleft()
            result = future.result()
            if len(future.members) < count:
                raise SystemExit(
                    f"worker {worker_id}: the job went on with workers {future.members} alone; run"
                    " it on a machine that is less busy"
                )
            now_s = time.monotonic()
            if begin_s <= now_s < end_s:
                inside.append((now_s, session.statistics))
            np.testing.assert_array_equal(result[:-1], expected + np.int32(salt * count))
            goes_on = goes_on and int(result[-1]) == count
        if not inside:
            raise SystemExit(f"worker {worker_id}: no tensor ended in the measured time")
        (first_s, before), (last_s, after) = inside[0], inside[-1]
        counts = {key: after[key] - before[key] for key in before if "packets" in key}
        bits = 8 * counts["value_packets_received"] * frame_bytes(session.view.values_per_packet)
        return {
            "bits_per_s": bits / (last_s - first_s) if last_s > first_s else 0.0,
            "window": float(np.median([each["window"] for _, each in inside])),
            "round_trip_s": after["round_trip_s"],
            "statistics": counts,
            "cpu_s": time.process_time(),
        }


def run_front(options: argparse.Namespace) -> Report:
    """Sum float tensors one at a time until the end; return the time that each took.

    Values are whole numbers, which block precision sums exactly. The last one is the vote.
    """
    count = int(os.environ["SWITCHFOLD_NUM_WORKERS"])
    settings = SessionOptions(timeout_s=60.0, max_priority=options.max_priority)
    ramp = (np.arange(options.elements) % 1_000).astype(np.float32)
    with join_from_environment(settings) as session:
        session.barrier("begin")
        begin_s, end_s = await_start(options)
        times_s: list[float] = []
        control_s: list[float] = []
        goes_on = True
        while goes_on:
            array = ramp.copy()
            array[-1] = time.monotonic() < end_s
            started_s = time.monotonic()
            future = session.allreduce(array, precision="block", priority=options.priority)
            result = future.result()
            done_s = time.monotonic()
            np.testing.assert_array_equal(result[:-1], count * ramp[:-1])
            goes_on = int(result[-1]) == count
            if begin_s <= started_s and done_s < end_s:
                times_s.append(done_s - started_s)
                control_s.append(session.statistics["exponent_round_trip_s"])
        if not times_s:
            raise SystemExit("no tensor ended in the measured time")
        return {
            "median_s": float(np.median(times_s)),
            "p99_s": float(np.percentile(times_s, 99)),
            "control_s": float(np.median(control_s)),
            "tensors": len(times_s),
            "granted": session.view.max_priority,
        }


def send_tcp(options: argparse.Namespace) -> Report:
    """Send as fast as TCP allows until the end."""
    with socket.create_connection((options.peer, options.port), TIMEOUT_S) as flow:
        flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, options.congestion.encode())
        block = bytes(TCP_BLOCK_BYTES)
        _, end_s = await_start(options)
        while time.monotonic() < end_s:
            flow.sendall(block)
        info = flow.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    return {"round_trip_s": int.from_bytes(info[68:72], "little") / 1e6}


def receive_tcp(options: argparse.Namespace) -> Report:
    """Count the received bytes; return bits/s of their frames on a link."""
    received = 0
    with socket.create_server(("0.0.0.0", options.port)) as server:  # noqa: S104 - a namespace
        server.settimeout(TIMEOUT_S)
        print("listening", flush=True)
        flow, _ = server.accept()
        with flow:
            flow.settimeout(TIMEOUT_S)
            begin_s, end_s = await_start(options)
            while data := flow.recv(TCP_BLOCK_BYTES):
                if begin_s <= time.monotonic() < end_s:
                    received += len(data)
    return {"bits_per_s": 8 * received * (1514 / 1448) / (end_s - begin_s)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["job", "front", "send", "receive"])
    parser.add_argument("--times", type=Path, required=True, help="file: begin and end, seconds")
    parser.add_argument("--elements", type=int, default=65_536, help="values of each tensor")
    parser.add_argument("--slots", type=int, default=0)
    parser.add_argument("--window", type=int, default=SessionOptions().window)
    parser.add_argument("--max-priority", type=int, default=0, help="that the job asks for")
    parser.add_argument("--priority", type=int, default=0, help="of tensors of role front")
    parser.add_argument("--peer", default="")
    parser.add_argument("--port", type=int, default=5201)
    parser.add_argument("--congestion", default="cubic")
    options = parser.parse_args()
    run = {"job": run_job, "front": run_front, "send": send_tcp, "receive": receive_tcp}[
        options.role
    ]
    print(json.dumps(run(options)))


if __name__ == "__main__":
    main()
