# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A process group over a real switch: sums on the switch, and other collectives by Gloo."""

from __future__ import annotations

import atexit
import importlib
import os
import signal
import warnings
from datetime import timedelta
from typing import Any

import pytest

from time_bound import wait_until
from torch_ranks import RankEnd, TorchTestbed, load_torch, require_torch, run_ranks

require_torch()
pytestmark = pytest.mark.timeout(600)
LIMIT_S = 540.0


def fork_and_end() -> None:
    """Let a copy of this process end as programs do; the parent must keep its place."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        # What is tested is a user's program that forks, as PyTorch's DataLoader does.
        process_id = os.fork()  # noqa: TID251
    if not process_id:
        try:
            atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
        finally:
            os._exit(0)
    try:
        wait_until(lambda: os.waitpid(process_id, os.WNOHANG)[0], "a forked process has ended")
    except AssertionError:
        os.kill(process_id, signal.SIGKILL)
        os.waitpid(process_id, 0)
        raise


def sums(rank: int) -> dict[str, Any]:
    torch, dist = load_torch()
    dist.init_process_group("switchfold")
    try:
        tensor = torch.arange(1000, dtype=torch.float32) + rank
        dist.all_reduce(tensor)
        if rank == 1:
            fork_and_end()
        dist.all_reduce(tensor[500:])
        gathered = [torch.zeros(2) for _ in range(dist.get_world_size())]
        dist.all_gather(gathered, torch.full((2,), float(rank)))
        group: Any = dist.group.WORLD
        assert group.session is not None
        # Gloo's own, which PyTorch lets through for groups of that name alone.
        dist.monitored_barrier(timeout=timedelta(seconds=LIMIT_S), wait_all_ranks=True)
        dist.monitored_barrier(dist.new_group(backend="gloo"))
        assert group.session.statistics["value_packets_sent"] > 0
        return {
            "backend": dist.get_backend(),
            "sum": tensor.tolist(),
            "gathered": torch.cat(gathered).tolist(),
        }
    finally:
        dist.destroy_process_group()


def test_sums_run_on_the_switch_and_the_rest_by_gloo(torch_testbed: TorchTestbed) -> None:
    results = run_ranks("test_torch_backend:sums", 4, testbed=torch_testbed, timeout_s=LIMIT_S)
    for result in results:
        assert result["backend"] == "switchfold"
        once = [4 * value + 6 for value in range(1000)]
        twice = [*once[:500], *(4 * value for value in once[500:])]
        assert result["sum"] == pytest.approx(twice, abs=1e-2)
        assert result["gathered"] == [0, 0, 1, 1, 2, 2, 3, 3]


def load_data(rank: int) -> list[float]:
    """Read batches in forked workers between sums."""
    # As a user's process has it: others that run in the tests' process, and what starts ranks, set
    # these for all that they start.
    for name in ("GRPC_VERBOSITY", "GRPC_ENABLE_FORK_SUPPORT"):
        os.environ.pop(name, None)
    torch, dist = load_torch()
    data = importlib.import_module("torch.utils.data")
    dist.init_process_group("switchfold")
    try:
        tensor = torch.ones(2)
        dist.all_reduce(tensor)
        for (batch,) in data.DataLoader(data.TensorDataset(torch.ones(8)), 2, num_workers=2):
            dist.all_reduce(batch)
            tensor += batch
        return tensor.tolist()
    finally:
        dist.destroy_process_group()


def test_forked_workers_print_nothing(torch_testbed: TorchTestbed) -> None:
    ends: list[RankEnd] = []
    results = run_ranks(
        "test_torch_backend:load_data",
        2,
        testbed=torch_testbed,
        ends=ends,
        timeout_s=LIMIT_S,
    )
    assert results == [[10.0, 10.0]] * 2
    assert ends == [RankEnd(0, "")] * 2
