# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Groups of some ranks on the switch, maps of devices, debugging, and the bound of sums' errors."""

from __future__ import annotations

import os
from collections.abc import Generator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from switchfold.bmv2_topos.processes.free_ports import free_port
from switchfold.hostlib.summation.quantization import error_bound
from torch_ranks import TorchTestbed, load_torch, require_torch, run_ranks

require_torch()
pytestmark = pytest.mark.timeout(600)
LIMIT_S = 540.0
NUM_RANKS = 4
NARROW_VALUES = 32
"""Values of a packet of the testbed's program."""
FLOATS = ("float16", "bfloat16", "float32", "float64")


@pytest.fixture(scope="module")
def roomy_testbed() -> Generator[TorchTestbed]:
    """A testbed with two hosts for each rank: each of its hosts takes part in one job at a time."""
    testbed = TorchTestbed(2 * NUM_RANKS)
    with testbed.live:
        yield testbed


def _errors_over_bound(torch: Any, dist: Any, rank: int, dtype: str) -> float:
    """Return the largest ratio of a sum's error to what the documentation allows."""
    kind = getattr(torch, dtype)
    count = 40 * NARROW_VALUES + 5
    source = torch.Generator().manual_seed(7)
    spans = torch.logspace(-3, 3, 41, dtype=torch.float64).repeat_interleave(NARROW_VALUES)[:count]
    signs = torch.rand(NUM_RANKS, count, generator=source, dtype=torch.float64) * 2 - 1
    values = (signs * spans).to(kind)
    summed = values[rank].clone()
    dist.all_reduce(summed)
    wide = values.double().numpy()
    expected, largest = wide.sum(0), np.abs(wide).max(0)
    padded = np.pad(largest, (0, -count % NARROW_VALUES)).reshape(-1, NARROW_VALUES).max(1)
    computed = "float64" if dtype == "float64" else "float32"
    bounds = [error_bound(int(e), NUM_RANKS, computed) for e in np.frexp(padded)[1]]
    # The session's own dtype, then the tensor's: half a step of each, and of the smallest value.
    steps = float(np.finfo(computed).eps) + torch.finfo(kind).eps
    tiny = torch.finfo(kind).smallest_normal * torch.finfo(kind).eps
    allowed = np.repeat(bounds, NARROW_VALUES)[:count]
    allowed = allowed + (np.abs(expected) + allowed) * steps / 2 + tiny / 2
    return float((np.abs(summed.double().numpy() - expected) / allowed).max())


def _pairs(torch: Any, dist: Any, rank: int, place: dict[str, str]) -> dict[str, Any]:
    """Sum in pairs of ranks, each pair a job of its own, while the default group sums, too."""
    os.environ.update(place)
    group, _ = dist.new_subgroups(2)
    works: list[Any] = []
    inner = [torch.full((4000,), rank + 1.0) for _ in range(3)]
    outer = [torch.full((4000,), 1.0) for _ in range(3)]
    for i in range(3):
        works.append(dist.all_reduce(inner[i], group=group, async_op=True))
        works.append(dist.all_reduce(outer[i], async_op=True))
    for work in works:
        work.wait()
    sent = {g: g.session.statistics["value_packets_sent"] for g in (group, dist.group.WORLD)}
    seen = {
        "inner": torch.cat(inner).unique().tolist(),
        "outer": torch.cat(outer).unique().tolist(),
        "packets": list(sent.values()),
        "global ranks": dist.get_process_group_ranks(group),
    }
    dist.destroy_process_group(group)
    return seen


def _debugged(torch: Any, dist: Any, rank: int) -> dict[str, Any]:
    """Sum, then call collectives that differ in properties that no packet carries."""
    tensor = torch.full((100,), rank + 1.0)
    dist.all_reduce(tensor)
    gathered = [torch.zeros(1) for _ in range(NUM_RANKS)]
    dist.all_gather(gathered, torch.full((1,), float(rank)))
    seen: dict[str, Any] = {
        "sum": tensor.unique().tolist(),
        "gathered": torch.cat(gathered).tolist(),
    }
    count = 2 + (rank == 1)
    operation = dist.ReduceOp.AVG if rank == 1 else dist.ReduceOp.SUM
    wrong = {
        "operations": lambda: dist.all_reduce(torch.ones(2), op=operation),
        "by Gloo": lambda: dist.all_gather([torch.ones(count)] * NUM_RANKS, torch.ones(count)),
    }
    for name, call in wrong.items():
        try:
            call()
        except RuntimeError as error:
            seen[name] = f"{type(error).__name__}: {error}"
    # A rank that leaves disconnects those that still compare.
    store = dist.distributed_c10d._get_default_store()
    store.set(f"done {rank}", "")
    store.wait([f"done {r}" for r in range(NUM_RANKS)], timedelta(seconds=LIMIT_S))
    return seen


def see(rank: int, ports: list[int], places: list[dict[str, str]]) -> dict[str, Any]:
    torch, dist = load_torch()
    seen: dict[str, Any] = {}

    def begin(backend: str) -> None:
        dist.init_process_group(
            backend,
            init_method=f"tcp://127.0.0.1:{ports.pop()}",
            rank=rank,
            world_size=NUM_RANKS,
            timeout=timedelta(seconds=LIMIT_S),
        )

    first = dict(os.environ)
    for backend in ("cpu:gloo,cuda:switchfold", "cpu:switchfold,cuda:gloo"):
        begin(backend)
        tensor = torch.full((100,), rank + 1.0)
        dist.all_reduce(tensor)
        sent = dist.group.WORLD.session.statistics["value_packets_sent"]
        seen[backend] = [tensor.unique().tolist(), sent > 0]
        dist.destroy_process_group()
    begin("switchfold")
    seen["errors"] = {dtype: _errors_over_bound(torch, dist, rank, dtype) for dtype in FLOATS}
    try:
        dist.split_group(split_ranks=[[0, 1], [2, 3]])
    except RuntimeError as error:
        seen["split"] = str(error)
    seen["pairs"] = _pairs(torch, dist, rank, places[rank])
    dist.destroy_process_group()
    os.environ.update(first)
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.set_debug_level_from_env()
    begin("switchfold")
    seen["debugged"] = _debugged(torch, dist, rank)
    dist.destroy_process_group()
    return seen


def test_groups_devices_debugging_and_errors_of_sums(roomy_testbed: TorchTestbed) -> None:
    places = [roomy_testbed.place(NUM_RANKS + i, NUM_RANKS, "pairs") for i in range(NUM_RANKS)]
    for place in places:
        del place["SWITCHFOLD_JOB"]
    results = run_ranks(
        "test_torch_groups:see",
        NUM_RANKS,
        testbed=roomy_testbed,
        arguments={"ports": [free_port() for _ in range(4)], "places": places},
        timeout_s=LIMIT_S,
    )
    for rank, seen in enumerate(results):
        for backend in ("cpu:gloo,cuda:switchfold", "cpu:switchfold,cuda:gloo"):
            assert seen[backend] == [[10.0], True]
        assert seen["errors"].keys() == set(FLOATS)
        for dtype, ratio in seen["errors"].items():
            assert 0 < ratio <= 1, f"{dtype}: {ratio} of the bound"
        assert "not safe to split" in seen["split"]  # PyTorch's own refusal, as with Gloo
        pair = [rank // 2 * 2, rank // 2 * 2 + 1]
        total = sum(member + 1 for member in pair)
        pairs = seen["pairs"]
        assert pairs["inner"] == [total]
        assert pairs["outer"] == [4.0]
        assert pairs["global ranks"] == pair
        assert min(pairs["packets"]) >= 3 * 4000 // NARROW_VALUES
        debugged = seen["debugged"]
        assert debugged["sum"] == [10.0]
        assert debugged["gathered"] == [0, 1, 2, 3]
        assert "CollectiveMismatchError: rank" in debugged["operations"]
        assert "rank 1 all_reduce 3, mean of float32 (2,)" in debugged["operations"] or rank == 1
        assert "mismatch" in debugged["by Gloo"]
