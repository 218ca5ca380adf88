# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownLambdaType=false
"""What each rank does in test_torch_cuda.py; all ranks share one GPU."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

import torch_move_cases
import torch_sum_cases
from ddp_models import Branches, Words, compare, convolutions, perceptron
from switchfold.hostlib.torch.ddp.hooks import SwitchfoldState, allreduce_hook
from torch_scene import battery_differences, run_battery

DEVICE = "cuda"
TIMEOUT = timedelta(seconds=60)
LEAVING_RANK, EXIT_STATUS = 3, 5
DTYPES = ("float16", "bfloat16", "float32", "float64", "int32")
COUNTS = (1, 1001, 200_003)
NUM_VALUES = 1_000_000
HOLD_CYCLES = 300_000_000
"""Of a kernel that keeps a stream busy for 0.1 s or more.

What does not wait for that stream comes before its end and sees or leaves other values.
"""
MAPS = ("cpu:gloo,cuda:switchfold", "cuda:switchfold", "cpu:switchfold,cuda:gloo")
PAIRS = (
    "send_recv_ring",
    "recv_from_any",
    "isend_irecv",
    "batch_isend_irecv",
)
"""Cases of messages between two ranks, which take tensors in host memory alone."""
CASE_MODULES = (torch_move_cases, torch_sum_cases)
"""They add their cases when they are loaded."""
_any: Any = torch
_dist: Any = dist
Case = Callable[[], Any]


def run(rank: int, folder: str) -> dict[str, Any]:
    """Run all cases; each gives what it saw, or how it failed."""
    torch.backends.cudnn.deterministic = True
    torch.cuda.set_device(0)
    said: dict[str, Any] = {}
    with _group("gloo", folder):
        expected = run_battery(torch, dist, rank, _size(), "gloo", left_out=PAIRS)
        with SwitchfoldState() as state:
            hook = (state, allreduce_hook)
            for name, train in _trainings(dist.group.WORLD).items():
                _note(said, f"hook {name}", lambda train=train: train(hook))
    for backend in MAPS:
        with _group(backend, folder):
            _note(said, backend, _mapped)
    with _group("switchfold", folder):
        _note(said, "battery", lambda: _battery(rank, expected))
        _note(said, "refused", _refused)
        _note(said, "exact", lambda: [_exact(d, n) for d in DTYPES for n in COUNTS])
        _note(said, "default stream", lambda: _ordered(rank))
        with torch.cuda.stream(torch.cuda.Stream()):
            _note(said, "other stream", lambda: _ordered(rank))
        gloo = dist.new_group(backend="gloo")
        for name, train in _trainings(gloo).items():
            _note(said, name, train)
    with _group("switchfold", folder, number=1):
        said["rank away"] = _lose_a_rank(rank)
    with _group("switchfold", folder, number=2, size=LEAVING_RANK):
        _note(said, "after", lambda: _total(rank, dist.all_reduce))
    return said


@contextmanager
def _group(backend: str, folder: str, *, number: int = 0, size: int = 0) -> Generator[None]:
    name = backend.replace(":", "-").replace(",", "-")
    dist.init_process_group(
        backend,
        init_method=f"file://{folder}/{name}-{number}",
        rank=int(os.environ["RANK"]),
        world_size=size or int(os.environ["WORLD_SIZE"]),
        timeout=TIMEOUT,
    )
    try:
        yield
    finally:
        dist.destroy_process_group()


def _size() -> int:
    return dist.get_world_size()


def _note(said: dict[str, Any], name: str, case: Case) -> None:
    try:
        said[name] = case()
    except Exception:
        said[name] = {"failure": traceback.format_exc()}


def _battery(rank: int, expected: dict[str, Any]) -> dict[str, Any]:
    """Run the cases of all collectives with CUDA tensors; Gloo's had host memory."""
    failed = {name: seen for name, seen in expected.items() if isinstance(seen, str)}
    found = run_battery(
        torch, dist, rank, _size(), "switchfold", device=DEVICE, left_out={*PAIRS, *failed}
    )
    able = {name: expected[name] for name in found}
    return {
        "cases": len(able),
        "failed on gloo": failed,
        "differences": battery_differences(torch, _size(), able, found),
    }


def _refused() -> list[str]:
    """Call what takes no CUDA tensors; the group stays usable."""
    tensor, other = torch.zeros(2, device=DEVICE), (dist.get_rank() + 1) % _size()
    errors: list[str] = []
    for call in (lambda: _dist.send(tensor, other), lambda: _dist.recv(tensor, other)):
        try:
            call()
        except RuntimeError as error:
            errors.append(f"{type(error).__name__}: {error}")
    dist.barrier()
    return errors


def _mapped() -> dict[str, Any]:
    """Sum on a device for which the map names a backend, and do without sums."""
    group: Any = dist.group.WORLD
    tensor = torch.full((1000,), dist.get_rank() + 1.0, device=DEVICE)
    dist.all_reduce(tensor)
    sent = group.session.statistics["value_packets_sent"]
    dist.barrier()
    names: list[Any] = [None] * _size()
    dist.all_gather_object(names, str(tensor.device))
    dist.broadcast(tensor, src=1)
    return {"sum": tensor.unique().tolist(), "is on switch": sent > 0, "devices": names}


def _exact(dtype: str, count: int) -> list[bool]:
    """Sum integers, which all dtypes hold, in contiguous and strided tensors."""
    source = torch.Generator().manual_seed(count)
    shape = (_size(), count, 2)
    values = torch.randint(-100, 100, shape, generator=source, dtype=torch.int32)
    kind = getattr(torch, dtype)
    mine, total = values[dist.get_rank()].to(DEVICE, kind), values.sum(0).to(kind)
    whole = mine.clone()
    dist.all_reduce(whole)
    column, turned = mine.clone(), mine.clone()
    dist.all_reduce(column[:, 1])
    dist.all_reduce(turned.T)
    mixed = torch.stack([mine[:, 0].cpu(), total[:, 1]], dim=1)
    expected = (total, mixed, total)
    found = (whole, column, turned)
    return [torch.equal(a.cpu(), b) for a, b in zip(found, expected, strict=True)]


def _hold() -> None:
    """Keep the caller's stream busy."""
    _any.cuda._sleep(HOLD_CYCLES)


def _hold_copies(tensor: torch.Tensor) -> None:
    """Keep the stream of the copies busy: what is written back comes later."""
    group: Any = dist.group.WORLD
    with group._streams.of(tensor.device).entered():
        _hold()


def _own(rank: int) -> torch.Tensor:
    return torch.full((NUM_VALUES,), rank + 1.0, device=DEVICE)


def _total(rank: int, call: Callable[[torch.Tensor], Any]) -> list[float]:
    """Return the values of a tensor that the call has summed over ranks."""
    tensor = _own(rank)
    call(tensor)
    return tensor.unique().tolist()


def _ordered(rank: int) -> dict[str, Any]:
    """Use tensors on the caller's stream right before and right after their sums."""
    said: dict[str, Any] = {}
    tensor = torch.zeros(NUM_VALUES, device=DEVICE)
    torch.cuda.synchronize()
    _hold()
    tensor.fill_(rank + 1.0)
    work = _dist.all_reduce(tensor, async_op=True)
    _hold_copies(tensor)
    factor = torch.eye(64, device=DEVICE)
    product = factor @ (factor * 3)
    work.wait()
    seen = tensor.clone()
    tensor.fill_(-1.0)
    said["sum"], said["product"] = seen.unique().tolist(), product.unique().tolist()
    torch.cuda.synchronize()
    said["overwritten"] = tensor.unique().tolist()

    def repeatedly(tensor: torch.Tensor) -> None:
        dist.all_reduce(tensor, async_op=True)
        _hold_copies(tensor)
        dist.all_reduce(tensor)

    def by_gloo(tensor: torch.Tensor) -> None:
        dist.all_reduce(tensor, async_op=True)
        _hold_copies(tensor)
        dist.broadcast(tensor, src=0)  # of what all ranks have

    def in_callback(tensor: torch.Tensor) -> None:
        future = _dist.all_reduce(tensor, async_op=True).get_future()
        doubled = future.then(lambda done: done.value()[0] * 2)
        _hold_copies(tensor)
        tensor.copy_(doubled.wait())

    said["again"] = _total(rank, repeatedly)
    said["by Gloo"] = _total(rank, by_gloo)
    said["callback"] = _total(rank, in_callback)
    return said


def _trainings(oracle: Any) -> dict[str, Any]:
    """Return functions that train on the GPU, by the hook if they get one."""

    def of(make: Any, **options: Any) -> Any:
        return lambda hook=None: compare(make, oracle, hook=hook, device=DEVICE, **options)

    return {
        "convolutions": of(convolutions),
        "bfloat16": of(perceptron, dtype=torch.bfloat16),
        "float16": of(perceptron, dtype=torch.float16),
        "bucket views": of(perceptron, gradient_as_bucket_view=True),
        "unused parameters": of(Branches, find_unused_parameters=True),
        "sparse": of(Words),
    }


def _lose_a_rank(rank: int) -> dict[str, Any]:
    """Let a rank exit while the others' sums of CUDA tensors are pending."""
    tensors = [_own(rank) for _ in range(2)]
    dist.all_reduce(tensors[0])
    if rank == LEAVING_RANK:
        os._exit(EXIT_STATUS)
    works = [_dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    future = works[1].get_future()
    errors: list[str] = []
    for wait in (works[0].wait, future.wait):
        try:
            wait()
        except RuntimeError as error:
            errors.append(f"{type(error).__name__}: {error}")
    torch.cuda.synchronize()
    return {"errors": errors, "kept": tensors[1].unique().tolist()}
