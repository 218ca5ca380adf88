# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Every documented collective gives the same on "switchfold" as on "gloo"."""

from __future__ import annotations

import logging
import signal
from datetime import timedelta
from typing import Any

import pytest

from switchfold.bmv2_topos.processes.free_ports import free_port
from time_bound import wait_until
from torch_ranks import RankEnd, TorchTestbed, load_torch, require_torch, run_ranks

require_torch()

import torch_move_cases  # noqa: E402
import torch_sum_cases  # noqa: E402
from torch_scene import CASES, battery_differences, run_battery  # noqa: E402

pytestmark = pytest.mark.timeout(600)
LIMIT_S = 540.0
CASE_MODULES = {torch_move_cases.__name__, torch_sum_cases.__name__}
NUM_RANKS = 4
INTERRUPTED = (0, 1, 2)
JOB = "collectives"
SOME_REASONS = (
    "all_reduce: by Gloo: switches have no PRODUCT",
    "all_reduce: by Gloo: float64 is not compared on the switch",
    "all_reduce: by Gloo: int64 is not added up on the switch",
    "broadcast: by Gloo: less than 256 KiB",
    "all_gather: by Gloo: it moves values and adds nothing up",
    "barrier: by Gloo: there is nothing to add up",
)


def heard_lines() -> list[str]:
    """Return a list that grows with what the backend logs."""
    lines: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger = logging.getLogger("switchfold.hostlib.torch")
    logger.setLevel(logging.INFO)
    logger.addHandler(Listener())
    return lines


def interrupt_leaving(group: Any) -> None:
    """Let another Ctrl-C come while the program waits for others, and while it leaves."""

    def interrupted(call: Any) -> Any:
        def run(*arguments: Any) -> None:
            signal.raise_signal(signal.SIGINT)
            call(*arguments)

        return run

    group.close = interrupted(group.close)
    group.session.barrier = interrupted(group.session.barrier)


def compare(rank: int, ports: list[int]) -> dict[str, Any]:
    torch, dist = load_torch()
    seen: dict[str, dict[str, Any]] = {}
    said = heard_lines()
    for backend, port in zip(("gloo", "switchfold"), ports, strict=True):
        dist.init_process_group(
            backend,
            init_method=f"tcp://127.0.0.1:{port}",
            rank=rank,
            world_size=NUM_RANKS,
            timeout=timedelta(seconds=LIMIT_S),
        )
        seen[backend] = run_battery(torch, dist, rank, NUM_RANKS, backend)
        if backend == "gloo":
            dist.destroy_process_group()
    # The group stays: the program's end, by Ctrl-C or not, is to leave its job.
    interrupt_leaving(dist.group.WORLD)
    found = battery_differences(torch, NUM_RANKS, seen["gloo"], seen["switchfold"])
    texts = {name: value for name, value in seen["gloo"].items() if isinstance(value, str)}
    return {"differences": found, "failed on gloo": texts, "said": said}


def live_jobs(testbed: TorchTestbed) -> list[str]:
    """Return the names of the jobs that are not over."""
    listed: Any = testbed.live.show("job", "list")
    return [job["name"] for job in listed]


def test_collectives_give_what_gloo_gives(torch_testbed: TorchTestbed) -> None:
    assert {f.__module__ for f, _ in CASES.values()} == CASE_MODULES
    assert len(CASES) >= 80
    ports = [free_port(), free_port()]
    ends: list[RankEnd] = []
    results = run_ranks(
        "test_torch_collectives:compare",
        NUM_RANKS,
        testbed=torch_testbed,
        arguments={"ports": ports},
        job=JOB,
        interrupted=INTERRUPTED,
        ends=ends,
        timeout_s=LIMIT_S,
    )
    for rank, end in enumerate(ends):
        assert end.status == (-signal.SIGINT if rank in INTERRUPTED else 0), end
        assert end.stderr.count("KeyboardInterrupt") == (rank in INTERRUPTED), end.stderr
        assert "Exception ignored" not in end.stderr
        assert "atexit" not in end.stderr
    wait_until(lambda: JOB not in live_jobs(torch_testbed), "the job's end")
    workers = torch_testbed.live.show("job", "show", JOB)["workers"]
    assert [worker["state"] for worker in workers] == ["left"] * NUM_RANKS
    for rank, result in enumerate(results):
        assert not result["differences"], f"rank {rank}: {result['differences']}"
        assert not result["failed on gloo"]
        said = [line for line in result["said"] if line.startswith("group default: ")]
        assert len(said) == len(set(said))
        for collective in ("all_reduce", "all_reduce_coalesced", "broadcast", "reduce"):
            assert f"group default: {collective}: on the switch" in said
        for line in SOME_REASONS:
            assert f"group default: {line}" in said
