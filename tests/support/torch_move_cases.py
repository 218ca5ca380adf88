# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Collectives that add nothing up, groups of some ranks, and wrong arguments."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from torch_scene import Scene, Seen, case


@case()
def all_gather(scene: Scene) -> Seen:
    output = [scene.torch.zeros(2, 3) for _ in range(scene.size)]
    return [scene.dist.all_gather(output, scene.random(2, 3)), output]


@case()
def all_gather_async(scene: Scene) -> Seen:
    output = [scene.torch.zeros(4, dtype=scene.torch.int64) for _ in range(scene.size)]
    work = scene.dist.all_gather(output, scene.random(4, dtype="int64"), async_op=True)
    return [work.wait(), output]


@case()
def all_gather_into_tensor(scene: Scene) -> Seen:
    output = scene.torch.zeros(scene.size * 2, 3)
    scene.dist.all_gather_into_tensor(output, scene.random(2, 3))
    return output


@case()
def all_gather_object(scene: Scene) -> Seen:
    output: list[Any] = [None] * scene.size
    scene.dist.all_gather_object(output, {"rank": scene.rank, "list": [1] * scene.rank})
    return output


@case()
def gather(scene: Scene) -> Seen:
    output = [scene.torch.zeros(3) for _ in range(scene.size)] if scene.rank == 1 else None
    return [scene.dist.gather(scene.random(3), output, dst=1), output]


@case()
def gather_object(scene: Scene) -> Seen:
    output: list[Any] | None = [None] * scene.size if scene.rank == 0 else None
    scene.dist.gather_object(f"rank {scene.rank}", output, dst=0)
    return output


@case()
def scatter(scene: Scene) -> Seen:
    parts = [scene.random(3, rank=r) for r in range(scene.size)] if scene.rank == 2 else None
    output = scene.torch.zeros(3)
    return [scene.dist.scatter(output, parts, src=2), output]


@case()
def scatter_object_list(scene: Scene) -> Seen:
    output: list[Any] = [None]
    scene.dist.scatter_object_list(output, [{"to": r} for r in range(scene.size)], src=0)
    return output


@case()
def broadcast_object_list(scene: Scene) -> Seen:
    objects = [{"a": 1}, "text", None] if scene.rank == 3 else [None, None, None]
    scene.dist.broadcast_object_list(objects, src=3)
    return objects


@case()
def send_recv_object_list(scene: Scene) -> Seen:
    objects: list[Any] = ["hello", 5] if scene.rank == 0 else [None, None]
    if scene.rank == 0:
        scene.dist.send_object_list(objects, dst=1)
    elif scene.rank == 1:
        scene.dist.recv_object_list(objects, src=0)
    return objects


@case(sums=True)
def reduce_scatter(scene: Scene) -> Seen:
    parts = [scene.random(3) + r for r in range(scene.size)]
    output = scene.torch.zeros(3)
    return [scene.dist.reduce_scatter(output, parts), output]


@case(sums=True)
def reduce_scatter_tensor(scene: Scene) -> Seen:
    output = scene.torch.zeros(3)
    scene.dist.reduce_scatter_tensor(output, scene.random(3 * scene.size))
    return output


@case()
def all_to_all_single(scene: Scene) -> Seen:
    output = scene.torch.zeros(scene.size)
    scene.dist.all_to_all_single(output, scene.random(scene.size))
    return output


@case()
def all_to_all_single_uneven(scene: Scene) -> Seen:
    splits = [r + 1 for r in range(scene.size)]
    output = scene.torch.zeros(scene.size * (scene.rank + 1))
    mine = [scene.rank + 1] * scene.size
    scene.dist.all_to_all_single(output, scene.random(sum(splits)), mine, splits)
    return output


@case()
def all_to_all(scene: Scene) -> Seen:
    output = [scene.torch.zeros(2) for _ in range(scene.size)]
    call = lambda: scene.dist.all_to_all(output, list(scene.random(4, 2)))  # noqa: E731
    return [scene.error(call), output]


@case()
def send_recv_ring(scene: Scene) -> Seen:
    output = scene.torch.zeros(4)
    after, before = (scene.rank + 1) % scene.size, (scene.rank - 1) % scene.size
    if scene.rank % 2:
        source = scene.dist.recv(output, src=before)
        scene.dist.send(scene.random(4), dst=after)
    else:
        scene.dist.send(scene.random(4), dst=after)
        source = scene.dist.recv(output, src=before)
    return [source, output]


@case()
def recv_from_any(scene: Scene) -> Seen:
    output = scene.torch.zeros(2)
    if scene.rank == 1:
        scene.dist.send(scene.random(2), dst=0, tag=7)
        return None
    return [scene.dist.recv(output, tag=7), output] if scene.rank == 0 else None


@case()
def isend_irecv(scene: Scene) -> Seen:
    output, other = scene.torch.zeros(4), scene.rank ^ 1
    works = [scene.dist.isend(scene.random(4), dst=other), scene.dist.irecv(output, src=other)]
    for work in works:
        work.wait()
    return output


@case()
def batch_isend_irecv(scene: Scene) -> Seen:
    output, dist = scene.torch.zeros(4), scene.dist
    after, before = (scene.rank + 1) % scene.size, (scene.rank - 1) % scene.size
    operations = [
        dist.P2POp(dist.isend, scene.random(4), after),
        dist.P2POp(dist.irecv, output, before),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    return output


@case()
def barrier(scene: Scene) -> Seen:
    work = scene.dist.barrier(async_op=True)
    return [work.wait(), scene.dist.barrier()]


@case()
def monitored_barrier_of_the_group(scene: Scene) -> Seen:
    return scene.dist.group.WORLD.monitored_barrier(timedelta(seconds=90), wait_all_ranks=True)


@case(sums=True)
def subgroup_of_two(scene: Scene) -> Seen:
    group = scene.dist.new_group([0, 2])
    tensor = scene.random(20)
    returned = scene.dist.all_reduce(tensor, group=group)
    ranks: Any = scene.dist.get_process_group_ranks(group) if scene.rank in (0, 2) else []
    seen: list[Any] = [
        returned,
        tensor,
        ranks,
        scene.dist.get_rank(group),
        scene.dist.get_world_size(group),
    ]
    if scene.rank in (0, 2):
        scene.dist.destroy_process_group(group)
    return seen


@case(sums=True)
def new_subgroups(scene: Scene) -> Seen:
    group, groups = scene.dist.new_subgroups(2)
    tensor = scene.random(20)
    scene.dist.all_reduce(tensor, group=group)
    return [tensor, len(groups), scene.dist.get_group_rank(group, scene.rank)]


@case(sums=True)
def group_of_one(scene: Scene) -> Seen:
    groups = [scene.dist.new_group([rank]) for rank in range(scene.size)]
    tensor = scene.random(20)
    scene.dist.all_reduce(tensor, group=groups[scene.rank])
    return tensor


@case(sums=True)
def reversed_group_broadcasts_by_global_rank(scene: Scene) -> Seen:
    group = scene.dist.new_group([3, 1])
    tensor = scene.random(20)
    if scene.rank in (1, 3):
        scene.dist.broadcast(tensor, src=3, group=group)
        scene.dist.reduce(tensor, dst=1, group=group)
    return tensor if scene.rank == 1 else None


@case(sums=True)
def functional_collectives(scene: Scene) -> Seen:
    # The operators behind torch.distributed._functional_collectives, whose import takes seconds.
    operators, name = scene.torch.ops._c10d_functional, scene.dist.group.WORLD.group_name
    tensor = scene.random(20)
    summed = operators.wait_tensor(operators.all_reduce(tensor, "sum", name))
    gathered = operators.wait_tensor(operators.all_gather_into_tensor(tensor, scene.size, name))
    return [tensor, summed, gathered]


@case()
def errors_of_wrong_arguments(scene: Scene) -> Seen:
    dist, tensor = scene.dist, scene.torch.zeros(2)
    anything: Any = dist
    return {
        "no tensor": scene.error(lambda: anything.all_reduce([1.0, 2.0])),
        "no list": scene.error(lambda: anything.all_gather(tensor, tensor)),
        "bad root": scene.error(lambda: anything.broadcast(tensor, src=9)),
        "send to self": scene.error(lambda: anything.send(tensor, dst=scene.rank)),
        "types": scene.error(lambda: anything.all_gather([tensor.int()] * scene.size, tensor)),
        "bitwise of floats": scene.error(
            lambda: anything.all_reduce(tensor, op=dist.ReduceOp.BAND)
        ),
        "no scatter list": scene.error(lambda: anything.scatter(tensor, [tensor], src=scene.rank)),
        "bad op": scene.error(lambda: anything.all_reduce(tensor, op="sum of all")),
        "complex max": scene.error(
            lambda: anything.all_reduce(tensor.to(scene.torch.complex64), op=dist.ReduceOp.MAX)
        ),
        "mixed coalesced": scene.error(
            lambda: dist.group.WORLD.allreduce_coalesced([tensor, tensor.double()])
        ),
    }


@case()
def sequence_numbers_grow(scene: Scene) -> Seen:
    group = scene.dist.group.WORLD
    before = group._get_sequence_number_for_group()
    for _ in range(3):
        scene.dist.all_reduce(scene.torch.ones(1))
    scene.dist.barrier()
    return group._get_sequence_number_for_group() - before


@case()
def names(scene: Scene) -> Seen:
    dist = scene.dist
    group = dist.group.WORLD
    return [
        dist.get_backend() == scene.backend,
        dist.is_backend_available(scene.backend),
        dist.is_initialized(),
        dist.get_rank(),
        dist.get_world_size(),
        [str(device) for device in group._device_types],
        scene.error(lambda: group._get_backend(scene.torch.device("cpu"))),
    ]
