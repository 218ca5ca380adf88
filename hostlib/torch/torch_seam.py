# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The parts of torch.distributed that this package uses beyond its public, typed interface."""

from __future__ import annotations

import ctypes
from datetime import timedelta
from types import FunctionType
from typing import Any, TypeVar, cast

import torch.distributed as dist
from torch._C import _distributed_c10d as c10d  # pyright: ignore[reportPrivateUsage]
from torch._C._dynamo import eval_frame as _eval_frame

_Kind = TypeVar("_Kind")
eval_frame: Any = _eval_frame

AllgatherOptions = c10d.AllgatherOptions
AllreduceOptions = c10d.AllreduceOptions
AllreduceCoalescedOptions = c10d.AllreduceCoalescedOptions
BroadcastOptions = c10d.BroadcastOptions
PrefixStore = c10d.PrefixStore
ReduceOp = c10d.ReduceOp
ReduceOptions = c10d.ReduceOptions
Store = c10d.Store
Gloo = Any
"""A ProcessGroupGloo or a wrapper of one; PyTorch's stubs do not declare its collectives."""
BackendOptions = Any
"""Argument of an extended creator: store, group_rank, group_size, timeout, group_id, members."""


def is_debugging() -> bool:
    """Return whether TORCH_DISTRIBUTED_DEBUG is DETAIL."""
    return c10d.get_debug_level() == c10d.DebugLevel.DETAIL


def checked(gloo: Gloo, options: BackendOptions) -> Gloo:
    """Wrap a Gloo group in PyTorch's own checks of collectives, for debugging."""
    return cast("Any", dist.distributed_c10d)._create_process_group_wrapper(
        wrapped_pg=gloo,
        store_prefix=options.group_id,
        store=options.store,
        rank=options.group_rank,
        world_size=options.group_size,
        timeout=options.timeout,
    )


def keep_for_ever(group: Any) -> None:
    """Never destroy a group, not even at interpreter exit: that would wait for its works."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))


def run_as_is(kind: type[_Kind]) -> type[_Kind]:
    """Keep torch.compile from compiling the methods of a class and the functions they call.

    C++ also calls these methods while compiled code runs, and their frames would then be compiled,
    too. PyTorch's own decorator for this purpose would load the compiler in every script.
    """
    skip = eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.SKIP)
    for method in vars(kind).values():
        if isinstance(method, FunctionType):
            eval_frame.set_code_exec_strategy(method.__code__, skip)
    return kind


def make_gloo(options: BackendOptions, prefix: str = "gloo", *, address: str = "") -> Gloo:
    """Make a Gloo group as torch.distributed does; its keys in the store begin with `prefix`.

    `address`: this host's for Gloo's connections; "": Gloo chooses, by the host's name.
    """
    store = PrefixStore(prefix, options.store)
    kind = cast("Any", dist.ProcessGroupGloo)
    place = (store, options.group_rank, options.group_size)
    if address:
        own = kind._Options()
        own._timeout = options.timeout
        own._devices = [kind.create_device(hostname=address)]
        gloo = kind(*place, own)
    else:
        gloo = kind(*place, timeout=options.timeout)
    gloo.options.global_ranks_in_group = options.global_ranks_in_group
    gloo.options.group_name = options.group_id
    gloo._set_sequence_number_for_group()
    return gloo


def default_timeout(gloo: Gloo) -> timedelta:
    """Return the timeout of collectives without one; torch.distributed changes it in Gloo."""
    return gloo.options._timeout
