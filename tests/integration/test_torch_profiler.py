# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Collectives in PyTorch's profiles: named for the backend, with shapes, from begin to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from torch_ranks import TorchTestbed, load_torch, require_torch, run_ranks

require_torch()
SHAPE = [3, 5]
NUM_RANKS = 3
CALLED = ["all_reduce", "all_gather", "barrier", "broadcast", "reduce_scatter", "send", "recv"]


def profiled(rank: int) -> dict[str, Any]:
    """Profile collectives on the switch and by Gloo, by both of PyTorch's profilers."""
    torch, dist = load_torch()
    dist.init_process_group("switchfold")
    try:
        profilers = {
            "autograd": torch.autograd.profiler.profile(record_shapes=True),
            "torch": torch.profiler.profile(
                activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
            ),
        }
        return {
            **{name: _events(each, _call_all(rank)) for name, each in profilers.items()},
            **{f"order of {kind}": _order(rank, kind) for kind in ("all_reduce", "all_gather")},
            "named": _events(torch.autograd.profiler.profile(), _call_with_a_name),
        }
    finally:
        dist.destroy_process_group()


def _events(profiler: Any, act: Callable[[], None]) -> list[list[Any]]:
    with profiler as profile:
        act()
    events = getattr(profile, "function_events", None) or profile.events()
    return [
        [event.name, event.is_async, event.input_shapes, event.count]
        for event in events
        if event.name.startswith(("switchfold:", "mine"))
    ]


def _call_all(rank: int) -> Callable[[], None]:
    torch, dist = load_torch()
    tensor = torch.ones(SHAPE)

    def act() -> None:
        parts = [torch.zeros(SHAPE) for _ in range(NUM_RANKS)]
        dist.all_reduce(tensor)
        dist.all_gather(parts, tensor)
        dist.barrier()
        dist.broadcast(tensor, 0)
        dist.reduce_scatter(torch.zeros(SHAPE), parts)
        if rank == 0:
            dist.send(tensor, 1)
            dist.recv(tensor, NUM_RANKS - 1)
        else:
            dist.recv(tensor, rank - 1)
            dist.send(tensor, (rank + 1) % NUM_RANKS)

    return act


def _order(rank: int, kind: str) -> list[float]:
    """Return begin of a collective, begin of what starts the other ranks, end, and what follows."""
    torch, dist = load_torch()
    store = dist.distributed_c10d._get_default_store()
    tensor = torch.ones(SHAPE)
    parts = [torch.zeros(SHAPE) for _ in range(NUM_RANKS)]
    record: Any = torch.profiler.record_function
    with torch.autograd.profiler.profile() as profile:
        if rank:
            store.wait([f"go {kind}"])
        inputs = (tensor,) if kind == "all_reduce" else (parts, tensor)
        work = getattr(dist, kind)(*inputs, async_op=True)
        with record("go"):
            store.set(f"go {kind}", "")
        work.wait()
        with record("next"):
            pass
    spans = {event.name: event.time_range for event in profile.function_events}
    span = spans[f"switchfold:{kind}"]
    return [span.start, spans["go"].start, span.end, spans["next"].start]


def _call_with_a_name() -> None:
    torch, dist = load_torch()
    tensor = torch.ones(SHAPE)
    with dist.record_comm("mine"):
        dist.all_reduce(tensor)
        dist.broadcast(tensor, 0)


@pytest.mark.timeout(600)
def test_profiles_show_each_collective_from_begin_to_end(torch_testbed: TorchTestbed) -> None:
    for rank, said in enumerate(
        run_ranks(
            "test_torch_profiler:profiled",
            NUM_RANKS,
            testbed=torch_testbed,
            preload=("torch._dynamo",),
            timeout_s=540.0,
        )
    ):
        for profiler in ("autograd", "torch"):
            events = {name: rest for name, *rest in said[profiler]}
            assert sorted(events) == sorted(f"switchfold:{kind}" for kind in CALLED)
            assert len(said[profiler]) == len(CALLED)
            assert all(is_async and count == 1 for is_async, _, count in events.values())
            shapes = {name: shapes for name, (_, shapes, _) in events.items()}
            assert shapes.pop("switchfold:barrier") == []
            assert shapes.pop("switchfold:reduce_scatter") == [SHAPE] * NUM_RANKS
            assert all(each == [SHAPE] for each in shapes.values())
        for kind in ("all_reduce", "all_gather"):
            begin, go, end, after = said[f"order of {kind}"]
            assert begin < go
            assert end <= after
            if rank == 0:
                assert go < end, "others began after that"
        assert [name for name, *_ in said["named"]] == ["mine", "mine"]
