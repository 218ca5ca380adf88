# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Lets PyTorch's tests for several GPUs, and for many ranks, run on the CPU with a few.

Most tests of DistributedDataParallel ask for GPUs, though what they test needs none. What asks is
replaced in this process: tensors and modules stay where they are.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.overrides import TorchFunctionMode

CPU = torch.device("cpu")


def lift_skips() -> None:
    """Let no test be skipped for want of GPUs or ranks; before the tests are loaded."""
    common: Any = importlib.import_module("torch.testing._internal.common_distributed")

    def keep(test: Callable[..., Any]) -> Callable[..., Any]:
        return test

    def keep_for(*_: Any, **__: Any) -> Callable[..., Any]:
        return keep

    common.skip_if_no_gpu = common.skip_if_small_worldsize = keep
    common.skip_if_lt_x_gpu = keep_for


def stay_on_cpu(num_ranks: int) -> None:
    """Replace what takes tensors, modules and models to a GPU."""
    untyped: Any = torch
    model: Any = DistributedDataParallel
    move, initialise = untyped.nn.Module.to, model.__init__

    def stay(self: Any, *_: Any, **__: Any) -> Any:
        return self

    def move_on_cpu(self: Any, *to: Any, **named: Any) -> Any:
        return move(self, *map(_on_cpu, to), **named)

    def on_cpu(self: Any, *arguments: Any, **named: Any) -> None:
        named.pop("device_ids", None)
        named.pop("output_device", None)
        initialise(self, *arguments[:1], **named)

    untyped.Tensor.cuda = untyped.nn.Module.cuda = stay
    untyped.nn.Module.to = move_on_cpu
    model.__init__ = on_cpu
    cuda = untyped.cuda
    cuda.device_count = lambda: num_ranks
    cuda.current_device = int
    cuda.device = contextlib.nullcontext
    for name in ("set_device", "synchronize", "manual_seed", "manual_seed_all"):
        setattr(cuda, name, _nothing())


def _nothing() -> Callable[..., None]:
    """Return a function of its own: torch.compile tells torch's functions apart by identity."""

    def nothing(*_: Any, **__: Any) -> None:
        pass

    return nothing


class OnCpu(TorchFunctionMode):
    """Tensors that are made on a GPU, or taken to one, are on the CPU; for one thread."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        del types
        named = dict(kwargs or {})
        if named.get("device") is not None:
            named["device"] = CPU
        if getattr(func, "__name__", "") == "to":
            args = [*args[:1], *(_on_cpu(argument) for argument in args[1:])]
        return func(*args, **named)


def _on_cpu(argument: Any) -> Any:
    is_device = isinstance(argument, torch.device | str)
    is_index = isinstance(argument, int) and not isinstance(argument, bool)
    return CPU if is_device or is_index else argument
