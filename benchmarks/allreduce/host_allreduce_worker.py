# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of the host allreduce benchmark: the same sums by a session and by Gloo, in turn.

host_allreduce.py starts it on every host of a testbed. The session needs no controller: its view
has all hosts of the testbed and no switch. The last line of the output is JSON.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.allreduce.allreduce_worker import (
    TOLERANCE,
    Allreduce,
    Floats,
    contribution,
    open_gloo,
)
from benchmarks.support.processor import read_times
from switchfold.hostlib import Session, SessionOptions
from switchfold.hostlib.config import transport_from_environment
from switchfold.hostlib.control.view import Endpoint, JobView, Member
from switchfold.hostlib.peers import PeerServer
from switchfold.hostlib.slots.wire import VALUES_PER_PACKET_WIDE

PEER_PORT = 29600
VERIFIED_ELEMENTS = 1 << 20
"""Number of values that are compared at a time."""

untyped: Any = torch  # some of its functions are only partly typed


def verify(result: Floats, repeat: int, num_workers: int, label: str) -> None:
    """Raise AssertionError unless the result is the sum of all contributions, piece by piece."""
    base = np.random.default_rng(repeat).standard_normal(len(result), dtype=np.float32)
    for first in range(0, len(result), VERIFIED_ELEMENTS):
        places = np.arange(first, min(first + VERIFIED_ELEMENTS, len(result)))
        expected = np.zeros(len(places), np.float64)
        for worker_id in range(num_workers):
            expected += base.take(places - 1009 * worker_id, mode="wrap")
        np.testing.assert_allclose(
            result[places], expected, rtol=TOLERANCE, atol=TOLERANCE, err_msg=label
        )


def timed(
    allreduce: Allreduce, label: str, repeat: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Run one allreduce; return its times on this worker and a checksum of the verified result."""
    num_bytes = options.bytes if repeat else min(options.bytes, options.warm_up_bytes)
    worker_id = int(os.environ["SWITCHFOLD_WORKER_ID"])
    array = contribution(repeat, worker_id, num_bytes // 4)
    untyped.distributed.barrier()
    processor_before, cpu_before_s = read_times(options.switch_pids), time.process_time()
    began_s = time.monotonic()
    result = allreduce(array)
    ended_s = time.monotonic()
    processor_after, cpu_after_s = read_times(options.switch_pids), time.process_time()
    untyped.distributed.barrier()
    verify(result, repeat, options.num_workers, label)
    return {
        "label": label,
        "repeat": repeat,
        "began_s": began_s,
        "ended_s": ended_s,
        "cpu_s": cpu_after_s - cpu_before_s,
        "processor_before": dataclasses.asdict(processor_before),
        "processor_after": dataclasses.asdict(processor_after),
        "checksum": zlib.crc32(result.tobytes()),
    }


def open_session(options: argparse.Namespace) -> Session:
    """Return a session among the hosts of the testbed."""
    worker_id = int(os.environ["SWITCHFOLD_WORKER_ID"])
    transport = transport_from_environment()
    peers = PeerServer(transport.local.address, PEER_PORT)
    untyped.distributed.barrier()  # from here on all workers listen
    members = tuple(
        Member(worker_id=i, address=address, peer_address=address, peer_port=PEER_PORT)
        for i, address in enumerate(options.addresses)
    )
    view = JobView(
        job=1,
        generation=1,
        worker_id=worker_id,
        members=members,
        trees=(),
        child_id=0,
        worker_bitmap=0,
        values_per_packet=VALUES_PER_PACKET_WIDE,
        switch=Endpoint(address=transport.local.address),  # unused, because there are no trees
    )
    return Session.direct(view, transport, SessionOptions(timeout_s=options.timeout), peers)


def run_all(options: argparse.Namespace) -> dict[str, Any]:
    """Let contenders take turns, so that noise of the machine affects both."""
    gloo = open_gloo(options.rendezvous, options.timeout)
    with open_session(options) as session:
        contenders: dict[str, Allreduce] = {
            "host": lambda array: session.allreduce(array, precision="block").result(),
            "gloo": gloo,
        }
        runs = [
            timed(contenders[label], label, repeat, options)
            for repeat in range(options.repeats + 1)  # the first of each is warm-up
            for label in options.labels
        ]
        untyped.distributed.barrier()
        return {
            "runs": runs,
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--warm-up-bytes", type=int, required=True)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--labels", type=lambda text: text.split(","), required=True)
    parser.add_argument("--addresses", type=lambda text: text.split(","), required=True)
    parser.add_argument("--rendezvous", type=Path, required=True)
    parser.add_argument("--switch-pids", required=True, help="separated by commas")
    options = parser.parse_args()
    options.switch_pids = [int(pid) for pid in options.switch_pids.split(",") if pid]
    options.num_workers = len(options.addresses)
    untyped.set_num_threads(1)
    content = run_all(options)
    dist.destroy_process_group()
    print(json.dumps(content))


if __name__ == "__main__":
    main()
