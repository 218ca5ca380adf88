# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Precision of a process group's sums: blocks for DDP's gradients, exact for all others.

DDP's C++ reducer calls the group from inside the autograd engine, so no Python frame lies between
the two. A sum that Python code requests, inside or outside a backward pass, is not a bucket of
DDP's.
"""

from __future__ import annotations

import inspect
from types import FrameType
from typing import Any, cast, final

import torch
from torch.autograd import graph
from torch.nn.parallel import DistributedDataParallel

from ..config import PrecisionSetting
from ..options import Precision

_engine: Any = cast("Any", graph)._engine_run_backward
_shadow: Any = cast("Any", DistributedDataParallel)._match_all_reduce_for_bwd_pass


def calling_frame() -> FrameType | None:
    """Return the frame of the caller's caller; None if C++ called it from a thread of its own."""
    frame = inspect.currentframe()
    own = frame.f_back if frame is not None else None
    return own.f_back if own is not None else None


def is_ddp_bucket(caller: FrameType | None) -> bool:
    """Return whether DDP's reducer requests a sum; `caller` is the requesting frame, if any.

    A rank that has run out of inputs (`join`) sends zeros for the others' buckets from a method of
    DDP.
    """
    if cast("Any", torch)._C._current_graph_task_id() == -1:
        return caller is not None and _is_frame_of(caller, _shadow)
    return caller is None or _is_frame_of(caller, _engine)


def _is_frame_of(frame: FrameType, function: Any) -> bool:
    own, code = frame.f_code, function.__code__
    return (own.co_name, own.co_filename) == (code.co_name, code.co_filename)


@final
class GroupPrecision:
    """Chooses the precision of a group's sums; the same on all ranks."""

    def __init__(self, setting: PrecisionSetting = "auto") -> None:
        self._buckets: Precision = "exact" if setting == "exact" else "block"
        self._others: Precision = "block" if setting == "block" else "exact"

    def of_call(self, caller: FrameType | None) -> Precision:
        """Return the precision of an allreduce that a frame requests."""
        return self._buckets if is_ddp_bucket(caller) else self._others

    @property
    def of_others(self) -> Precision:
        """The precision of sums that are not buckets of DDP."""
        return self._others
