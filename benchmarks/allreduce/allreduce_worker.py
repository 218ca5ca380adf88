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
from switchfold.hostlib.config import transport_from_environment
from switchfold.hostlib.slots.switch_reducer import split_slots

untyped: Any = torch  # some of its functions are only partly typed

TOLERANCE = 1e-5
"""Absolute and relative error of sums of standard normal numbers; float32 has 24 bits."""

Floats = NDArray[np.float32]
Allreduce = Callable[[Floats], Floats]
Barrier = Callable[[str], None]


def contribution(repeat: int, worker_id: int, elements: int) -> Floats:
    """Return a worker's float32 tensor; every worker can compute those of the others."""
    base = np.random.default_rng(repeat).standard_normal(elements, dtype=np.float32)
    return np.roll(base, 1009 * worker_id)


@functools.lru_cache(maxsize=1)
def expected_sum(repeat: int, num_workers: int, elements: int) -> NDArray[np.float64]:
    base = np.random.default_rng(repeat).standard_normal(elements, dtype=np.float32)
    total = np.zeros(elements, np.float64)
    for worker_id in range(num_workers):
        total += np.roll(base, 1009 * worker_id)
    return total


def timed(
    allreduce: Allreduce, barrier: Barrier, label: str, repeat: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Run one allreduce; return its times on this worker and a checksum of the verified result."""
    worker_id, elements = int(os.environ["SWITCHFOLD_WORKER_ID"]), options.bytes // 4
    array = contribution(repeat, worker_id, elements)
    testbed = Testbed.attach(options.testbed) if options.testbed and worker_id == 0 else None
    is_ours = testbed is not None and label == "switchfold"
    predicted = predicted_now(options.bytes) if is_ours else {}
    carried_before = carried_bytes(testbed) if testbed else {}
    barrier(f"{label}-{repeat}")
    processor_before, cpu_before_s = read_times(options.switch_pids), time.process_time()
    began_s = time.monotonic()
    result = allreduce(array)
    ended_s = time.monotonic()
    processor_after, cpu_after_s = read_times(options.switch_pids), time.process_time()
    barrier(f"{label}-{repeat}-done")
    carried = carried_bytes(testbed) if testbed else {}
    # The controller may have changed the trees because of other traffic: then no prediction holds.
    is_same = is_ours and predicted == predicted_now(options.bytes)
    expected = expected_sum(repeat, num_workers_here(), elements)
    np.testing.assert_allclose(result, expected, rtol=TOLERANCE, atol=TOLERANCE, err_msg=label)
    return {
        "label": label,
        "repeat": repeat,
        "began_s": began_s,
        "ended_s": ended_s,
        "cpu_s": cpu_after_s - cpu_before_s,
        "processor_before": dataclasses.asdict(processor_before),
        "processor_after": dataclasses.asdict(processor_after),
        "checksum": zlib.crc32(result.tobytes()),
        "predicted_bytes": predicted if is_same else {},
        "carried_bytes": {link: count - carried_before[link] for link, count in carried.items()},
    }


def predicted_now(tensor_bytes: int) -> dict[str, float]:
    """Return the bytes that one allreduce sends over each link with the present trees."""
    controller, job = os.environ["SWITCHFOLD_CONTROLLER"], os.environ["SWITCHFOLD_JOB"]
    return predicted_bytes(controller, job, tensor_bytes)


def num_workers_here() -> int:
    return int(os.environ["SWITCHFOLD_NUM_WORKERS"])


def open_gloo(rendezvous: Path, timeout_s: float) -> Allreduce:
    """Join torch's Gloo group over the host's link to the switch and return its allreduce."""
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ["SWITCHFOLD_INTERFACE"]
    dist.init_process_group(
        "gloo",
        init_method=f"file://{rendezvous}",
        rank=int(os.environ["SWITCHFOLD_WORKER_ID"]),
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
    session = Session.join(
        controller=os.environ["SWITCHFOLD_CONTROLLER"],
        job=os.environ["SWITCHFOLD_JOB"],
        worker_id=int(os.environ["SWITCHFOLD_WORKER_ID"]),
        num_workers=num_workers_here(),
        transport=transport_from_environment(),
        options=SessionOptions(
            window=options.window,
            timeout_s=options.timeout,
            token=os.environ.get("SWITCHFOLD_TOKEN", ""),
            ingress_port=int(os.environ["SWITCHFOLD_INGRESS_PORT"]),
            slots_wanted=options.slots,
        ),
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
            timed(contenders[label], session.barrier, label, repeat, options)
            for label, repeat in turns
        ]
        return {
            "runs": runs,
            "statistics": dict(session.statistics),
            "slots": session.view.slot_count,
            "window": min(options.window, split_slots(session.view.slot_count)[1]),
            "trees": len(session.view.trees),
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--window", type=int, required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--rendezvous", type=Path, required=True)
    parser.add_argument("--bridge-namespace", default="")
    parser.add_argument("--switch-pids", required=True, help="separated by commas")
    parser.add_argument("--testbed", default="", help="testbed whose links worker 0 reads")
    options = parser.parse_args()
    options.switch_pids = [int(pid) for pid in options.switch_pids.split(",")]
    torch.set_num_threads(1)
    content = run_all(options)
    dist.destroy_process_group()
    print(json.dumps(content))


if __name__ == "__main__":
    main()
