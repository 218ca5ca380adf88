# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums and broadcasts as PyTorch documents them: what the switch may do."""

from __future__ import annotations

import math
import warnings
from datetime import timedelta
from typing import Any

from torch_scene import Case, Scene, Seen, case

LARGE = 65_541
"""Values of 4 bytes that are worth a broadcast or reduce on the switch."""


def _all_reduce(op: str, dtype: str) -> Case:
    def run(scene: Scene) -> Seen:
        tensor = scene.random(37, 3, dtype=dtype)
        chosen = getattr(scene.dist.ReduceOp, op)
        if op == "AVG" and scene.backend == "gloo":
            total = tensor.double()
            scene.dist.all_reduce(total)
            return [None, (total / scene.size).to(tensor.dtype)]
        returned = scene.dist.all_reduce(tensor, op=chosen)
        return [returned, tensor]

    return run


_FLOATS = ("float16", "bfloat16", "float32", "float64")
for _op, _dtypes in {
    "SUM": (*_FLOATS, "int32", "int64", "uint8", "int8", "complex64"),
    "AVG": _FLOATS,
    "MAX": ("float16", "bfloat16", "float32", "float64", "int32", "int64", "uint8"),
    "MIN": ("float16", "bfloat16", "float32", "float64", "int32", "int64"),
    "PRODUCT": ("float32", "int32", "int64"),
    "BAND": ("int32",),
    "BOR": ("int32",),
    "BXOR": ("int64",),
}.items():
    for _dtype in _dtypes:
        _is_sum = _op in ("SUM", "AVG", "PRODUCT") and _dtype[0] not in "iu"
        case(sums=_is_sum, name=f"all_reduce_{_op}_{_dtype}")(_all_reduce(_op, _dtype))


def _broadcast(dtype: str, count: int, root: int) -> Case:
    """`count` 0: a few values more than a broadcast on the switch needs."""

    def run(scene: Scene) -> Seen:
        from switchfold.hostlib.torch.process_group.placement import MIN_TREE_BYTES  # noqa: PLC0415 - loads torch

        size = getattr(scene.torch, dtype).itemsize
        tensor = scene.random(count or MIN_TREE_BYTES // size + 3, dtype=dtype)
        if dtype == "float32":
            tensor[:4] = scene.torch.tensor([-0.0, math.nan, math.inf, 1e-45])
        return [scene.dist.broadcast(tensor, src=root), tensor]

    return run


for _dtype in ("float32", "bfloat16", "float16", "float64", "int64", "uint8", "bool", "complex64"):
    for _count, _size in ((5, "small"), (0, "large")):
        case(name=f"broadcast_{_dtype}_{_size}")(_broadcast(_dtype, _count, 1))
case(name="broadcast_from_last")(_broadcast("float32", LARGE, 3))
case(name="broadcast_from_first")(_broadcast("int32", LARGE, 0))


def _reduce(op: str, dtype: str, count: int) -> Case:
    def run(scene: Scene) -> Seen:
        tensor = scene.random(count, dtype=dtype)
        returned = scene.dist.reduce(tensor, dst=2, op=getattr(scene.dist.ReduceOp, op))
        # The other ranks' results are not specified.
        return [returned, tensor if scene.rank == 2 else None]

    return run


for _op, _dtype, _count in (
    ("SUM", "float32", 9),
    ("SUM", "float32", LARGE),
    ("SUM", "bfloat16", 2 * LARGE),
    ("SUM", "int32", LARGE),
    ("SUM", "int64", 9),
    ("MAX", "float32", LARGE),
    ("MIN", "bfloat16", 2 * LARGE),
    ("MAX", "int32", LARGE),
):
    _is_sum = _op == "SUM" and "float" in _dtype
    case(sums=_is_sum, name=f"reduce_{_op}_{_dtype}_{_count}")(_reduce(_op, _dtype, _count))


@case(sums=True)
def all_reduce_of_a_large_tensor(scene: Scene) -> Seen:
    tensor = scene.random(LARGE)
    scene.dist.all_reduce(tensor)
    return tensor


@case(sums=True)
def all_reduce_async_returns_work(scene: Scene) -> Seen:
    tensor = scene.random(1000)
    work = scene.dist.all_reduce(tensor, async_op=True)
    waited = work.wait()
    return [waited, work.is_completed(), work.is_success(), work.exception(), tensor]


@case(sums=True)
def all_reduce_works_waited_for_out_of_order(scene: Scene) -> Seen:
    tensors = [scene.random(50 * (i + 1)) for i in range(8)]
    works = [scene.dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in reversed(works):
        work.wait(timedelta(seconds=60))
    return tensors


def _halved(done: Any) -> Any:
    return done.value()[0] / 2


@case(sums=True)
def all_reduce_future(scene: Scene) -> Seen:
    tensor = scene.random(64)
    future = scene.dist.all_reduce(tensor, async_op=True).get_future()
    halved = future.then(_halved)
    return [future.wait(), halved.wait(), future.done(), tensor]


@case(sums=True)
def all_reduce_future_asked_for_late(scene: Scene) -> Seen:
    tensor = scene.random(64)
    work = scene.dist.all_reduce(tensor, async_op=True)
    work.wait()
    return [work.get_future().wait(), work.result()]


@case(sums=True)
def all_reduce_mixed_with_gloo_collectives(scene: Scene) -> Seen:
    first, second = scene.random(200), scene.random(200, dtype="int64")
    works = [scene.dist.all_reduce(tensor, async_op=True) for tensor in (first, second)]
    gathered = [scene.torch.zeros(3) for _ in range(scene.size)]
    scene.dist.all_gather(gathered, scene.random(3))
    for work in works:
        work.wait()
    return [first, second, gathered]


@case(sums=True)
def all_reduce_of_a_view_changes_the_base(scene: Scene) -> Seen:
    base = scene.random(6, 4)
    scene.dist.all_reduce(base[2:4])
    return base


@case(sums=True)
def all_reduce_of_a_scalar(scene: Scene) -> Seen:
    tensor = scene.random(1)[0].clone()
    scene.dist.all_reduce(tensor)
    return [tensor, tensor.shape == ()]


@case()
def all_reduce_of_nothing(scene: Scene) -> Seen:
    tensor = scene.torch.empty(0, 3)
    work = scene.dist.all_reduce(tensor, async_op=True)
    return [work.wait(), list(tensor.shape)]


@case()
def broadcast_of_nothing(scene: Scene) -> Seen:
    tensor = scene.torch.empty(0)
    return [scene.dist.broadcast(tensor, src=0), list(tensor.shape)]


@case(sums=True)
def all_reduce_of_a_tensor_that_requires_grad(scene: Scene) -> Seen:
    tensor = scene.random(10).requires_grad_()
    scene.dist.all_reduce(tensor)
    return [tensor.detach(), tensor.requires_grad, tensor.is_leaf]


@case(sums=True)
def all_reduce_leaves_autograd_alone(scene: Scene) -> Seen:
    weight = scene.random(10).requires_grad_()
    out = (weight * weight).sum()
    scene.dist.all_reduce(weight.detach())
    out.backward()
    return weight.grad


@case(sums=True)
def all_reduce_in_inference_mode(scene: Scene) -> Seen:
    with scene.torch.inference_mode():
        tensor = scene.random(10)
        scene.dist.all_reduce(tensor)
        return tensor.clone()


@case()
def all_reduce_propagates_nan(scene: Scene) -> Seen:
    tensor = scene.torch.ones(4)
    if scene.rank == 1:
        tensor.fill_(math.nan)
    scene.dist.all_reduce(tensor)
    return tensor.isnan()


@case()
def all_reduce_of_infinity_is_not_finite(scene: Scene) -> Seen:
    tensor = scene.torch.full((4,), math.inf if scene.rank == 3 else 1.0)
    scene.dist.all_reduce(tensor)
    return tensor.isfinite()


@case()
def all_reduce_of_zeros(scene: Scene) -> Seen:
    tensor = scene.torch.zeros(1000)
    scene.dist.all_reduce(tensor)
    return tensor


@case()
def all_reduce_of_a_sparse_tensor(scene: Scene) -> Seen:
    indices = scene.torch.tensor([[scene.rank, 5]])
    values = scene.torch.tensor([1.0, 2.0])
    tensor = scene.torch.sparse_coo_tensor(indices, values, (8,)).coalesce()
    work = scene.dist.all_reduce(tensor, async_op=True)
    work.wait()
    return work.result()[0].to_dense()


@case(sums=True)
def all_reduce_coalesced(scene: Scene) -> Seen:
    tensors = [scene.random(7), scene.random(3, 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        returned = scene.dist.all_reduce_coalesced(tensors)
    return [returned, tensors]


@case(sums=True)
def coalescing_manager(scene: Scene) -> Seen:
    tensors = [scene.random(7), scene.random(3, 3), scene.random(500)]
    with scene.dist.distributed_c10d._coalescing_manager():
        for tensor in tensors:
            scene.dist.all_reduce(tensor)
    return tensors


@case(sums=True)
def coalescing_manager_async_bfloat16(scene: Scene) -> Seen:
    tensors = [scene.random(7, dtype="bfloat16"), scene.random(30, dtype="bfloat16")]
    with scene.dist.distributed_c10d._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            scene.dist.all_reduce(tensor)
    manager.wait()
    return tensors


@case()
def all_reduce_of_tensors_that_are_under_way(scene: Scene) -> Seen:
    """Each must see the results of those before; Gloo's threads would run them at the same time."""
    base = scene.random(3000, dtype="int32") % 2
    halves = base.view(2, 1500)
    product = scene.dist.ReduceOp.PRODUCT
    last = (base[::2], halves[1], halves.T[:5], base)
    for tensor in (base, base, base[1000:], *last):
        if scene.backend == "gloo":
            dense = tensor.contiguous()
            scene.dist.all_reduce(dense)
            tensor.copy_(dense)
        else:
            scene.dist.all_reduce(tensor, async_op=True)
    scene.dist.all_reduce(base[:2000], op=product)  # by Gloo, after those on the switch
    return base


@case(sums=True)
def process_group_methods(scene: Scene) -> Seen:
    group, first, second = scene.dist.group.WORLD, scene.random(5), scene.random(5)
    group.allreduce(first).wait()
    group.allreduce([second], scene.dist.ReduceOp.SUM, timedelta(seconds=60)).wait()
    third = scene.random(5)
    group.broadcast(third, 1).wait()
    return [first, second, third, group.rank(), group.size()]
