# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers of `switchfold calibrate` on testbeds: through softswitch, and among hosts by TCP."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ....bmv2_topos import Testbed, WorkerEndpoint, single_switch
from ....bmv2_topos.errors import TestbedError
from ....bmv2_topos.processes.free_ports import free_port
from ....bmv2_topos.processes.processes import read_records
from ....hostlib.schemes.calibration_file import MeasuredFigure
from ....hostlib.schemes.wire_cost import ina_frames
from ....hostlib.slots.wire import VALUES_PER_PACKET_WIDE
from ..installed_torch import has_torch
from .components import LOOPBACK
from .errors import CalibrationRunError

Links = Literal["veth", "super-frames", "loopback"]
LINKS: Final[tuple[Links, ...]] = ("veth", "super-frames", "loopback")
_TIMEOUT_S: Final = 60.0
_START_S: Final = 60.0
_ENVIRONMENT: Final = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
}


@dataclass(frozen=True, kw_only=True)
class CalibrationPlan:
    """What is summed, by how many workers, over which links."""

    workers: int
    num_bytes: int
    repeats: int
    links: Links


def ring_kind() -> str:
    """Return "gloo" if there is torch, else "host"."""
    return "gloo" if has_torch() else "host"


def measure_switch(plan: CalibrationPlan) -> dict[str, MeasuredFigure]:
    """Return the figures of sums through softswitch; CalibrationRunError if there is none."""
    try:
        with _testbed(plan, has_switch=True) as testbed:
            pids = {each.name: each.pid for each in read_records(testbed.run_directory)}
            words = ["--switch-pid", str(pids[testbed.switch.name])]
            workers = _run(testbed, plan, "switch_worker", lambda _: words)
    except TestbedError as exc:
        raise CalibrationRunError(
            f"the capacity of softswitch cannot be measured: {exc}\nTo measure the hosts alone, and"
            " to name a switch in predictions, say --no-switch"
        ) from exc
    frames = ina_frames(plan.num_bytes // 4, VALUES_PER_PACKET_WIDE)
    chunks = [own_s / frames for own_s in _means(workers, "worker_s")]
    packets = [each / (frames * plan.workers) for each in workers[0]["switch_s"]]
    found = {
        "worker_chunk_s": MeasuredFigure.of(chunks),
        "switch_packet_s": MeasuredFigure.of(packets),
        # A sum in blocks takes two rounds: exponents, then values.
        "switch_round_s": _figure_of_steps(workers, 2),
    }
    return found | _shared("shared_chunk_s", workers, frames)


def measure_ring(plan: CalibrationPlan) -> dict[str, MeasuredFigure]:
    """Return the figures of sums among hosts; CalibrationRunError if they are not possible."""
    try:
        with _testbed(plan, has_switch=False) as testbed:
            workers = _run(testbed, plan, "ring_worker", _ring_words(testbed, plan))
    except TestbedError as exc:
        raise CalibrationRunError(f"TCP among hosts cannot be measured: {exc}") from exc
    sent = 2 * (plan.workers - 1) / plan.workers * plan.num_bytes
    return {
        "tcp_byte_s": MeasuredFigure.of([own_s / sent for own_s in _means(workers, "worker_s")]),
        "ring_step_s": _figure_of_steps(workers, 2 * (plan.workers - 1)),
        **_shared("shared_tcp_byte_s", workers, sent),
    }


def _testbed(plan: CalibrationPlan, *, has_switch: bool) -> Testbed:
    """Return hosts around softswitch, or around nothing but TCP: a bridge, or loopback."""
    is_veth = plan.links != "loopback"
    return Testbed(
        single_switch(plan.workers, rate_bits_per_s=None),
        mode="veth" if is_veth else "udp",
        offloads=plan.links == "super-frames",
        has_switch=has_switch,
        has_bridge=is_veth and not has_switch,
    )


def _ring_words(
    testbed: Testbed, plan: CalibrationPlan
) -> Callable[[WorkerEndpoint], Sequence[str]]:
    is_veth = plan.links != "loopback"
    peers = [
        f"{host.address if is_veth else LOOPBACK}:{free_port()}" for host in testbed.topology.hosts
    ]

    def words(endpoint: WorkerEndpoint) -> list[str]:
        return [
            *("--interface", endpoint.host.interface if is_veth else "lo"),
            *("--rendezvous", str(testbed.run_directory / "ring-rendezvous")),
            *("--peers", ",".join(peers), "--ring", ring_kind()),
        ]

    return words


def _run(
    testbed: Testbed,
    plan: CalibrationPlan,
    module: str,
    words: Callable[[WorkerEndpoint], Sequence[str]],
) -> list[dict[str, Any]]:
    """Return what the workers print; CalibrationRunError with the output of one that failed."""

    def command(endpoint: WorkerEndpoint) -> list[str]:
        return [
            *(sys.executable, "-m", f"{__package__}.{module}", "--timeout", str(_TIMEOUT_S)),
            *("--bytes", str(plan.num_bytes), "--repeats", str(plan.repeats)),
            *words(endpoint),
        ]

    results = testbed.run_workers(
        command,
        job="calibrate",
        timeout_s=_START_S + (plan.repeats + 1) * _TIMEOUT_S,
        environment=_ENVIRONMENT,
    )
    found: list[dict[str, Any]] = []
    for result in results:
        if result.exit_status:
            raise CalibrationRunError(
                f"worker {result.worker_id} of {module} ended with status {result.exit_status}:\n"
                f"{result.output[-2000:]}"
            )
        found.append(json.loads(result.output.splitlines()[-1]))
    return found


def _means(workers: Sequence[dict[str, Any]], name: str) -> list[float]:
    """Return the mean over the workers of each repeat."""
    by_repeat = zip(*(worker[name] for worker in workers), strict=True)
    return [sum(each) / len(workers) for each in by_repeat]


def _shared(
    name: str, workers: Sequence[dict[str, Any]], count: float
) -> dict[str, MeasuredFigure]:
    """Return the time of all cores for each of `count` at each worker, if workers share them."""
    cores = os.cpu_count() or 1
    if cores > len(workers):
        return {}
    seconds = _means(workers, "seconds")
    return {name: MeasuredFigure.of([cores * each / (count * len(workers)) for each in seconds])}


def _figure_of_steps(workers: Sequence[dict[str, Any]], steps: int) -> MeasuredFigure:
    """Return the time of a step of small sums: median, and what a tenth is below and above."""
    ordered = sorted(each / steps for each in workers[0]["small_s"])
    places = (len(ordered) // 10, len(ordered) // 2, -(len(ordered) // 10) - 1)
    least, median, most = (ordered[place] for place in places)
    return MeasuredFigure(median=median, least=least, most=most, count=len(ordered))
