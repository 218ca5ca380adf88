# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of the allreduce benchmark: the same sums by each contender, turn by turn.

allreduce.py and tree_allreduce.py start it on every host of a testbed, in the environment of its
endpoint. With a bridged testbed, the sockets of Gloo over the bridge are opened in the host's twin
namespace. Every result is compared with the sum in float64 before its time counts. With
`--testbed`, worker 0 also reads the bytes that crossed each link. The last line of the output is
JSON.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import sys
import time
import zlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.support.link_check import carried_bytes, predicted_bytes
from benchmarks.support.processor import read_times
from switchfold.bmv2_topos import Testbed
from switchfold.bmv2_topos.network.namespaces import call_in_namespace
from switchfold.hostlib import Session, SessionOptions
from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.slots.switch_reducer import split_slots

untyped: Any = torch  # some of its functions are only partly typed

TOLERANCE = 1e-5
"""Absolute and relative error of sums of standard normal numbers; float32 has 24 bits."""
VERIFIED_ELEMENTS = 1 << 20
"""Number of values that are compared at a time."""

Floats = NDArray[np.float32]
Allreduce = Callable[[Floats], Floats]


def own_contribution(repeat: int, num_bytes: int) -> Floats:
    """Return this worker's float32 tensor; every worker can compute those of the others."""
    base = np.random.default_rng(repeat).standard_normal(num_bytes // 4, dtype=np.float32)
    return np.roll(base, 1009 * own_worker_id())


def verify(result: Floats, repeat: int, label: str) -> None:
    """Raise AssertionError unless the result is the sum of all contributions, piece by piece."""
    base = np.random.default_rng(repeat).standard_normal(len(result), dtype=np.float32)
    for first in range(0, len(result), VERIFIED_ELEMENTS):
        places = np.arange(first, min(first + VERIFIED_ELEMENTS, len(result)))
        expected = np.zeros(len(places), np.float64)
        for worker_id in range(num_workers_here()):
            expected += base.take(places - 1009 * worker_id, mode="wrap")
        np.testing.assert_allclose(
            result[places], expected, rtol=TOLERANCE, atol=TOLERANCE, err_msg=label
        )


def timed(
    allreduce: Allreduce, array: Floats, barrier: Callable[[], None], switch_pids: list[int]
) -> tuple[Floats, dict[str, Any]]:
    """Run one allreduce between two barriers; return its result and its times on this worker."""
    barrier()
    processor_before, cpu_before_s = read_times(switch_pids), time.process_time()
    began_s = time.monotonic()
    result = allreduce(array)
    ended_s = time.monotonic()
    processor_after, cpu_after_s = read_times(switch_pids), time.process_time()
    barrier()
    return result, {
        "began_s": began_s,
        "ended_s": ended_s,
        "cpu_s": cpu_after_s - cpu_before_s,
        "processor_before": dataclasses.asdict(processor_before),
        "processor_after": dataclasses.asdict(processor_after),
        "checksum": zlib.crc32(result.tobytes()),
    }


def run_one(
    allreduce: Allreduce, session: Session, label: str, repeat: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Run and verify one allreduce; return its times, and the bytes that crossed each link."""
    array = own_contribution(repeat, options.bytes)
    is_reader = options.testbed and own_worker_id() == 0
    testbed = Testbed.attach(options.testbed) if is_reader else None
    is_ours = testbed is not None and label == "switchfold"
    predicted = predicted_now(options.bytes) if is_ours else {}
    carried_before = carried_bytes(testbed) if testbed else {}
    result, run = timed(
        allreduce, array, lambda: session.barrier(f"{label}-{repeat}"), options.switch_pids
    )
    carried = carried_bytes(testbed) if testbed else {}
    # The controller may have changed the trees because of other traffic: then no prediction holds.
    is_same = is_ours and predicted == predicted_now(options.bytes)
    verify(result, repeat, label)
    return {
        "label": label,
        "repeat": repeat,
        **run,
        "predicted_bytes": predicted if is_same else {},
        "carried_bytes": {link: count - carried_before[link] for link, count in carried.items()},
    }


def predicted_now(tensor_bytes: int) -> dict[str, float]:
    """Return the bytes that one allreduce sends over each link with the present trees."""
    controller, job = os.environ["SWITCHFOLD_CONTROLLER"], os.environ["SWITCHFOLD_JOB"]
    return predicted_bytes(controller, job, tensor_bytes)


def own_worker_id() -> int:
    return int(os.environ["SWITCHFOLD_WORKER_ID"])


def num_workers_here() -> int:
    return int(os.environ["SWITCHFOLD_NUM_WORKERS"])


def open_gloo(rendezvous: Path, timeout_s: float) -> Allreduce:
    """Join torch's Gloo group over the host's link to the switch and return its allreduce."""
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ["SWITCHFOLD_INTERFACE"]
    dist.init_process_group(
        "gloo",
        init_method=f"file://{rendezvous}",
        rank=own_worker_id(),
        world_size=num_workers_here(),
        timeout=timedelta(seconds=timeout_s),
    )
    return functools.partial(gloo_allreduce, None)


def open_bridged_gloo(namespace: str, timeout_s: float) -> Allreduce:
    """Join a second group, whose sockets belong to the bridged testbed; call `open_gloo` before.

    Sockets and threads of Gloo stay in the namespace of the thread that made them.
    """

    def open_group() -> Any:
        return untyped.distributed.new_group(backend="gloo", timeout=timedelta(seconds=timeout_s))

    return functools.partial(gloo_allreduce, call_in_namespace(namespace, open_group))


def gloo_allreduce(group: dist.ProcessGroup | None, array: Floats) -> Floats:
    untyped.distributed.all_reduce(untyped.from_numpy(array), group=group)
    return array


def run_all(options: argparse.Namespace) -> dict[str, Any]:
    """Let contenders take turns, so that noise of the machine affects all of them.

    With `--testbed` they run one after the other instead: the controller plans trees around
    measured traffic, and would leave links to a contender that no longer sends.
    """
    session = join_from_environment(
        SessionOptions(window=options.window, timeout_s=options.timeout, slots_wanted=options.slots)
    )

    def switchfold(array: Floats) -> Floats:
        return session.allreduce(array, precision="block").result()

    with session:
        contenders = {
            "switchfold": switchfold,
            "gloo_switch": open_gloo(options.rendezvous, options.timeout),
        }
        if options.bridge_namespace:
            contenders["gloo_bridge"] = open_bridged_gloo(options.bridge_namespace, options.timeout)
        repeats = range(options.repeats + 1)  # the first of each is warm-up
        turns = [(label, repeat) for repeat in repeats for label in contenders]
        if options.testbed:
            turns = [(label, repeat) for label in contenders for repeat in repeats]
        runs = [
            run_one(contenders[label], session, label, repeat, options) for label, repeat in turns
        ]
        return {
            "runs": runs,
            "statistics": dict(session.statistics),
            "slots": session.view.slot_count,
            "window": min(options.window, split_slots(session.view.slot_count)[1]),
            "trees": len(session.view.trees),
        }


def worker_parser() -> argparse.ArgumentParser:
    """Return a parser of what `sum_arguments` in benchmarks/support/worker_runs.py gives."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--rendezvous", type=Path, required=True)
    parser.add_argument(
        "--switch-pids",
        type=lambda text: [int(pid) for pid in text.split(",") if pid],
        required=True,
        help="separated by commas",
    )
    return parser


def print_content(run: Callable[[argparse.Namespace], Any], options: argparse.Namespace) -> None:
    """Run a worker's sums, and print what it returns as JSON."""
    untyped.set_num_threads(1)
    content = run(options)
    dist.destroy_process_group()
    print(json.dumps(content))


def main() -> None:
    parser = worker_parser()
    parser.add_argument("--window", type=int, required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--bridge-namespace", default="")
    parser.add_argument("--testbed", default="", help="testbed whose links worker 0 reads")
    print_content(run_all, parser.parse_args())


if __name__ == "__main__":
    main()
