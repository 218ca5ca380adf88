# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
"""What each rank does for the test of gradients that lack lost packets.

Every rank knows what all ranks give, so it compares what it was handed with numpy's sum of what the
deliveries say.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from switchfold.hostlib.errors import ConfigurationError
from switchfold.hostlib.loss_fill import FillPolicy
from switchfold.hostlib.loss_tolerance import Delivery, LossTolerance
from switchfold.hostlib.session import Session
from switchfold.hostlib.torch.ddp.hooks import SwitchfoldState, allreduce_hook
from switchfold.hostlib.torch.hybrid.hybrid_parallel import HybridParallel

TIMEOUT = timedelta(seconds=240)
TOLERANCE = LossTolerance(loss=0.1)
LOSSY, WHOLE = 32 * 200 - 5, 32 * 50
"""Elements of the parameter that tolerates loss, and of the one that does not."""
STEPS = int(os.environ.get("SWITCHFOLD_STEPS", "4"))
BUCKET_MB = 0.001
"""From the second pass on, every parameter has a bucket of its own."""
Values = NDArray[np.float64]


class Row(nn.Module):
    """Its gradient is its input: whole numbers, which a block sum has to the bit."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.zeros(size))

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return (self.values * given[: len(self.values)]).sum()


class Rows(nn.Module):
    """A layer whose gradients tolerate loss, and one whose gradients do not."""

    def __init__(self) -> None:
        super().__init__()
        self.lossy, self.whole = Row(LOSSY), Row(WHOLE)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return self.lossy(given) + self.whole(given)


def run(rank: int, folder: str) -> dict[str, Any]:
    """Train by the hook, over the backend and by hybrid training; return figures for the test."""
    said: dict[str, Any] = {}
    _init("gloo", rank, folder)
    said["disagreement"] = _disagree(rank)
    with SwitchfoldState(tolerance=TOLERANCE) as joined:
        for fill in FillPolicy:
            said[f"hook {fill}"] = _train_by_hook(joined.session, fill)
    dist.destroy_process_group()
    os.environ.update(SWITCHFOLD_TOLERANCE=str(TOLERANCE.loss), SWITCHFOLD_FILL="zero")
    _init("switchfold", rank, folder)
    said["backend zero"] = _train_over_backend(FillPolicy.ZERO)
    said["hybrid previous"] = _train_hybrid(FillPolicy.PREVIOUS)
    dist.destroy_process_group()
    return said


def _init(backend: str, rank: int, folder: str) -> None:
    store = Path(folder) / f"store-{backend}"
    dist.init_process_group(
        backend, init_method=f"file://{store}", rank=rank, world_size=4, timeout=TIMEOUT
    )


def _disagree(rank: int) -> str:
    """Let rank 1 tolerate more than the others; return what a rank is told."""
    try:
        SwitchfoldState(tolerance=LossTolerance(loss=0.2) if rank == 1 else TOLERANCE)
    except ConfigurationError as error:
        return str(error)
    return "nothing"


def _train_by_hook(session: Session, fill: FillPolicy) -> dict[str, Any]:
    model = Rows()
    tolerance = {model.lossy.values: TOLERANCE}
    with SwitchfoldState(session=session, tolerance=tolerance, fill=fill) as state:
        ddp = DistributedDataParallel(model, bucket_cap_mb=BUCKET_MB)
        ddp.register_comm_hook(state, allreduce_hook)
        return _train(ddp, fill, lambda: list(state.deliveries.values()), is_by_parameter=True)


def _train_over_backend(fill: FillPolicy) -> dict[str, Any]:
    group: Any = dist.group.WORLD
    ddp = DistributedDataParallel(Rows(), bucket_cap_mb=BUCKET_MB)
    figures = _train(ddp, fill, lambda: list(group.deliveries), is_by_parameter=False)
    # In a job that tolerates loss, too, what is no gradient has all contributions.
    counts = torch.ones(LOSSY, dtype=torch.int32)
    dist.all_reduce(counts)
    return {**figures, "counts": sorted(set(counts.tolist()))}


def _train_hybrid(fill: FillPolicy) -> dict[str, Any]:
    with HybridParallel(Rows(), scheme="ina", tolerance={"lossy": TOLERANCE}, fill=fill) as model:
        return _train(model, fill, lambda: list(model.deliveries.values()), is_by_parameter=True)


def _train(
    wrapped: DistributedDataParallel | HybridParallel,
    fill: FillPolicy,
    deliveries: Callable[[], list[Delivery]],
    *,
    is_by_parameter: bool,
) -> dict[str, Any]:
    """Make steps; return errors against numpy, what was missing, and a hash of what ranks hold."""
    model: Any = wrapped.module
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    lossy, whole = (_Expected(fill, dist.get_world_size(), size) for size in (LOSSY, WHOLE))
    errors: list[float] = []
    told: list[Delivery] = []
    hashed = hashlib.sha256()
    for step, given in enumerate(_given(dist.get_world_size())):
        optimizer.zero_grad()
        wrapped(torch.from_numpy(given[dist.get_rank()]).float()).backward()
        by_size = {each.num_elements: each for each in deliveries()}
        if step == 0 and isinstance(wrapped, DistributedDataParallel):
            # DDP's first pass has one bucket of both; what is kept for it is dropped behind it.
            if is_by_parameter:
                assert by_size[LOSSY + WHOLE].coverage == 1, "as the strictest of its parameters"
            continue
        if is_by_parameter:
            assert by_size[WHOLE].coverage == 1
        errors += [
            _error(model.lossy.values, lossy.mean(given, by_size[LOSSY])),
            _error(model.whole.values, whole.mean(given[:, :WHOLE], by_size[WHOLE])),
        ]
        told += [by_size[LOSSY], by_size[WHOLE]]
        optimizer.step()
        for tensor in (*_grads(model), *model.parameters()):
            hashed.update(tensor.detach().numpy().tobytes())
    hashed.update(str([sorted(each.missing.items()) for each in told]).encode())
    return {
        "error": max(errors),
        "coverage": [each.coverage for each in told],
        "floor": min(min(each.delivered.values()) for each in told),
        "hash": hashed.hexdigest(),
    }


def _error(parameter: torch.Tensor, mean: Values) -> float:
    assert parameter.grad is not None
    return float(np.abs(parameter.grad.numpy() - mean).max())


def _grads(model: Any) -> Iterator[torch.Tensor]:
    return (parameter.grad for parameter in model.parameters())


def _given(num_ranks: int) -> Iterator[Values]:
    """Return what all ranks give, a row for each, step by step."""
    for step in range(STEPS):
        yield np.random.default_rng(step).integers(-99, 100, (num_ranks, LOSSY)).astype(np.float64)


class _Expected:
    """The mean by its definition, an element at a time in numpy."""

    def __init__(self, fill: FillPolicy, num_ranks: int, size: int) -> None:
        self._fill = fill
        self._num_ranks = num_ranks
        self._previous: Values | None = None
        self._kept: Values = np.zeros((num_ranks, size))

    def mean(self, given: Values, delivery: Delivery) -> Values:
        """Return the mean of one step."""
        is_in = np.ones(given.shape, bool)
        for rank, ranges in delivery.missing.items():
            for start, end in ranges:
                is_in[rank, start:end] = False
        count = is_in.sum(axis=0)
        if self._fill is FillPolicy.FEEDBACK:
            given = given + self._kept
            self._kept = np.where(is_in, 0, given)
        total: Values = np.where(is_in, given, 0).sum(axis=0)
        mean: Values = total / count
        if self._fill in (FillPolicy.ZERO, FillPolicy.FEEDBACK):
            mean = total / self._num_ranks
        if self._fill is FillPolicy.PREVIOUS:
            if self._previous is not None:
                rest = self._num_ranks - count
                mean = (total + rest * self._previous) / self._num_ranks
            self._previous = mean
        return mean
