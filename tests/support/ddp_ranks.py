# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false
"""What each rank does for the tests of DistributedDataParallel: many cases in one process.

First with the communication hook over Gloo, then, after Gloo's group was destroyed, unmodified over
the backend "switchfold". Cases return figures for the test to judge.
"""

from __future__ import annotations

import copy
import os
import sys
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ddp_models import (
    SMALL_BUCKET_MB,
    WIDTH,
    Branches,
    Words,
    ZeroSized,
    check_replicas,
    compare,
    flat_gradients,
    loss_of,
    perceptron,
)
from switchfold.hostlib.straggler import StragglerPolicy
from switchfold.hostlib.torch.ddp.hooks import SwitchfoldState, allreduce_hook

TIMEOUT = timedelta(seconds=240)
"""A timeout that no case reaches: ranks of a busy machine compile at different speeds."""
EXITING_RANK = LATE_RANK = 3
EXIT_STATUS = 17
DISAGREEING_RANK = 2
Case = Callable[[], Any]


def run(rank: int, folder: str) -> dict[str, Any]:
    """Run all cases; each gives its figures, or how it failed."""
    said: dict[str, Any] = {}
    _init("gloo", folder)
    with SwitchfoldState() as state:
        _run_cases(said, _hook_cases(state))
    # A rank that is slower by chance is not late: only the quorum ends a round.
    policy = StragglerPolicy(quorum=LATE_RANK, deadline_s=TIMEOUT.total_seconds())
    with SwitchfoldState(straggler=policy) as late_state:
        _run_cases(said, {"hook late rank": lambda: _late(late_state)})
    said["hook closed state"] = _failure(lambda: _hook_after_close(state))
    dist.destroy_process_group()
    _init("switchfold", folder)
    gloo = dist.new_group(backend="gloo")
    _run_cases(said, _backend_cases(gloo))
    _run_cases(said, _parallel_cases(gloo, Path(folder)))
    dist.destroy_process_group()
    _init("switchfold", folder, number=1)
    said["exit"] = _failure(lambda: _exit_in_a_step(rank))
    # The ranks that are left make a smaller group, in the same processes.
    dist.destroy_process_group()
    _init("switchfold", folder, number=2, world_size=EXITING_RANK)
    said["shapes"] = _failure(lambda: _disagree(rank))
    if rank == DISAGREEING_RANK:
        print(said["shapes"]["text"], file=sys.stderr, flush=True)
        os._exit(EXIT_STATUS)
    return said


def _init(backend: str, folder: str, number: int = 0, world_size: int = 0) -> None:
    store = Path(folder) / f"store-{backend}-{number}"
    dist.init_process_group(
        backend,
        init_method=f"file://{store}",
        rank=int(os.environ["RANK"]),
        world_size=world_size or int(os.environ["WORLD_SIZE"]),
        timeout=TIMEOUT,
    )


def _run_cases(said: dict[str, Any], cases: dict[str, Case]) -> None:
    for name, case in cases.items():
        began_s = time.monotonic()
        try:
            said[name] = case()
        except Exception as error:
            said[name] = {"failure": f"{error}\n{traceback.format_exc()}"}
            print(said[name]["failure"], file=sys.stderr)
        # Shown if a later case hangs.
        print(f"{name}: {time.monotonic() - began_s:.2f} s", file=sys.stderr)


def _failure(act: Case) -> dict[str, str]:
    try:
        act()
    except Exception as error:
        return {"type": type(error).__name__, "text": str(error)}
    return {"type": "", "text": ""}


def _hook_cases(state: SwitchfoldState) -> dict[str, Case]:
    hook = (state, allreduce_hook)
    gloo = dist.group.WORLD
    return {
        "hook float32": lambda: compare(perceptron, gloo, hook=hook),
        "hook bfloat16": lambda: compare(perceptron, gloo, hook=hook, dtype=torch.bfloat16),
        "hook float16": lambda: compare(perceptron, gloo, hook=hook, dtype=torch.float16),
        "hook float64": lambda: compare(perceptron, gloo, hook=hook, dtype=torch.float64),
        "hook bucket views": lambda: compare(
            perceptron, gloo, hook=hook, gradient_as_bucket_view=True
        ),
        "hook zero-sized": lambda: compare(ZeroSized, gloo, hook=hook),
        "hook sparse": lambda: compare(Words, gloo, hook=hook),
        "hook nan": lambda: _nan(hook),
        "hook no_sync": lambda: _no_sync(hook, lambda: _sent(state.session)),
        "hook join": lambda: _join(gloo, hook),
    }


def _backend_cases(gloo: Any) -> dict[str, Case]:
    return {
        "float32": lambda: compare(perceptron, gloo),
        "bfloat16": lambda: compare(perceptron, gloo, dtype=torch.bfloat16),
        "float16": lambda: compare(perceptron, gloo, dtype=torch.float16),
        "clipped": lambda: compare(perceptron, gloo, max_norm=0.1),
        "bucket views": lambda: compare(perceptron, gloo, gradient_as_bucket_view=True),
        "static graph": lambda: compare(perceptron, gloo, static_graph=True),
        "unused parameters": lambda: compare(Branches, gloo, find_unused_parameters=True),
        "zero-sized": lambda: compare(ZeroSized, gloo),
        "sparse": lambda: compare(Words, gloo),
        "nan": lambda: _nan(None),
        "no_sync": lambda: _no_sync(None, lambda: _sent(_session())),
        "join": lambda: _join(gloo, None),
        "join of those left": lambda: _join(gloo, None, is_size_fixed=False),
        "zero optimizer": lambda: _zero_optimizer(gloo),
        "parameter counts": lambda: _failure(
            lambda: DistributedDataParallel(nn.Linear(4, 4, bias=dist.get_rank() != EXITING_RANK))
        ),
    }


def _parallel_cases(gloo: Any, folder: Path) -> dict[str, Case]:
    import parallel_cases as cases  # noqa: PLC0415 - torch is loaded by then

    return {
        "compiled": lambda: cases.compiled(gloo),
        "sharded": lambda: cases.sharded(gloo),
        "functional collectives": lambda: cases.functional_collectives(gloo),
        "checkpoint": lambda: cases.checkpointed(folder / "checkpoint"),
    }


def _session() -> Any:
    group: Any = dist.group.WORLD
    return group.session


def _sent(session: Any) -> int:
    return sum(n for name, n in session.statistics.items() if name.endswith("packets_sent"))


def _hook_after_close(state: SwitchfoldState) -> None:
    model = DistributedDataParallel(nn.Linear(4, 4))
    model.register_comm_hook(state, allreduce_hook)
    model(torch.ones(2, 4)).sum().backward()


def _nan(hook: Any) -> dict[str, Any]:
    """Let one rank's gradients be NaN: gradient scalers must see that on all."""
    model = DistributedDataParallel(nn.Linear(4, 4))
    if hook:
        model.register_comm_hook(*hook)
    factor = float("nan") if dist.get_rank() == 1 else 1.0
    (model(torch.ones(2, 4)).sum() * factor).backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    return {"nan": all(g is not None and bool(g.isnan().all()) for g in gradients)}


def _no_sync(hook: Any, count: Callable[[], int]) -> dict[str, Any]:
    """Accumulate two batches before the third, and compare with one backward pass over all."""
    rank = dist.get_rank()
    torch.manual_seed(3)
    models = [DistributedDataParallel(perceptron()) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    if hook:
        for model in models:
            model.register_comm_hook(*hook)
    dist.barrier()
    before = count()
    with models[0].no_sync():
        for step in range(2):
            loss_of(models[0], rank, step, torch.float32).backward()
    while_accumulating = count() - before
    loss_of(models[0], rank, 2, torch.float32).backward()
    sent = count() - before
    for step in range(2):
        loss_of(models[1].module, rank, step, torch.float32).backward()
    loss_of(models[1], rank, 2, torch.float32).backward()
    for mine, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-5, atol=1e-6)
    return {"accumulating": while_accumulating, "sent": sent}


def _join(oracle_group: Any, hook: Any, *, is_size_fixed: bool = True) -> dict[str, Any]:
    """Train with uneven inputs: rank r has r + 1 batches.

    Means are over all ranks, or, unless `is_size_fixed`, over those that have batches left.
    """
    rank = dist.get_rank()
    torch.manual_seed(5)
    model = perceptron()
    theirs = DistributedDataParallel(copy.deepcopy(model), process_group=oracle_group)
    ours = DistributedDataParallel(model, bucket_cap_mb=SMALL_BUCKET_MB)
    if hook:
        ours.register_comm_hook(*hook)
    for each in (ours, theirs):
        optimizer = torch.optim.SGD(each.parameters(), lr=0.1)
        with each.join(divide_by_initial_world_size=is_size_fixed):
            for step in range(rank + 1):
                optimizer.zero_grad()
                loss_of(each, rank, step, torch.float32).backward()
                optimizer.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)
    return {"hash": check_replicas(ours, oracle_group)}


def _late(state: SwitchfoldState) -> dict[str, Any]:
    """Let a rank begin its backward pass after all others have ended theirs."""
    rank = dist.get_rank()
    c10d: Any = dist.distributed_c10d
    store = c10d._get_default_store()
    model = DistributedDataParallel(perceptron(), bucket_cap_mb=SMALL_BUCKET_MB)
    model.register_comm_hook(state, allreduce_hook)
    local = copy.deepcopy(model.module)
    on_time = [f"rank {other} is done" for other in range(LATE_RANK)]
    if rank == LATE_RANK:
        store.wait(on_time, TIMEOUT)
    loss_of(model, rank, 0, torch.float32).backward()
    if rank != LATE_RANK:
        store.set(on_time[rank], "")
    loss_of(local, rank, 0, torch.float32).backward()
    mine, averaged = (flat_gradients(each) for each in (local, model.module))
    everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, mine)
    expected = torch.stack(everyone[:LATE_RANK]).double().mean(0)
    everyone = [torch.empty_like(averaged) for _ in everyone]
    dist.all_gather(everyone, averaged)
    return {
        "off": float((averaged.double() - expected).abs().max() / expected.abs().max()),
        "is_even": all(torch.equal(averaged, other) for other in everyone),
    }


def _zero_optimizer(gloo: Any) -> dict[str, Any]:
    """Compare sharded Adam with Adam: the same gradients, so the same bytes."""
    from torch.distributed.optim import ZeroRedundancyOptimizer  # noqa: PLC0415

    rank = dist.get_rank()
    torch.manual_seed(9)
    plain = DistributedDataParallel(perceptron())
    sharded = DistributedDataParallel(copy.deepcopy(plain.module))
    optimizers = [
        torch.optim.Adam(plain.parameters(), lr=0.01),
        ZeroRedundancyOptimizer(sharded.parameters(), torch.optim.Adam, lr=0.01),
    ]
    for step in range(3):
        for model, optimizer in zip((plain, sharded), optimizers, strict=True):
            optimizer.zero_grad()
            loss_of(model, rank, step, torch.float32).backward()
            optimizer.step()
    return {"hashes": [check_replicas(model, gloo) for model in (plain, sharded)]}


def _exit_in_a_step(rank: int) -> None:
    model: Any = DistributedDataParallel(perceptron(), bucket_cap_mb=SMALL_BUCKET_MB)
    loss_of(model, rank, 0, torch.float32).backward()
    if rank == EXITING_RANK:
        # By then the last layer's bucket is under way, and the first layer's is not.
        model.module[2].register_full_backward_hook(lambda *_: os._exit(EXIT_STATUS))
    loss_of(model, rank, 1, torch.float32).backward()


def _disagree(rank: int) -> None:
    """Train a model that has another shape on one rank; that rank fails, and its process ends."""
    outputs = WIDTH + (rank == DISAGREEING_RANK)
    model = DistributedDataParallel(nn.Linear(WIDTH, outputs))
    model(torch.ones(2, WIDTH)).sum().backward()
