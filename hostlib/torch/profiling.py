# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Events of collectives for torch.profiler, such as "switchfold:all_reduce".

These asynchronous events begin in the caller's thread, carry the tensors' shapes, and end when the
work ends, as those of PyTorch's own backends do. There are none while no profiler runs. A name that
the caller has chosen with torch.distributed.record_comm replaces the usual one.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Sequence
from typing import Any, Final, final

import torch
from torch._C import _distributed_c10d as c10d  # pyright: ignore[reportPrivateUsage]
from torch.futures import Future

from .backend import BACKEND_NAME

_autograd: Any = torch.autograd
_profiler_ops: Any = torch.ops.profiler
_c10d: Any = c10d
_CAN_NAME: Final = hasattr(c10d, "_set_comm_profiling_name")
"""True since PyTorch 2.13; in earlier releases sends and receives keep Gloo's names."""


@final
class ProfiledEvent:
    """One event of a profile; it begins when the object is made."""

    def __init__(self, name: str, tensors: Sequence[torch.Tensor]) -> None:
        self._thread = threading.get_ident()
        record = _autograd._record_function_with_args_enter(name, *tensors)
        # The profiler's state belongs to this thread; a future carries it to another.
        self._end: Future[None] = Future()
        _profiler_ops._call_end_callbacks_on_jit_fut._RecordFunction(record, self._end)

    def end(self) -> None:
        """End the event; call it once, from any thread."""
        if threading.get_ident() != self._thread:
            self._end.set_result(None)
            return
        # The work has ended in the caller's thread. PyTorch takes an event for asynchronous only if
        # it ends in another thread.
        thread = threading.Thread(target=self._end.set_result, args=(None,))
        thread.start()
        thread.join()


def begin_event(collective: str, tensors: Sequence[torch.Tensor]) -> ProfiledEvent | None:
    """Begin the event of a collective; return None while the caller is not profiled."""
    if not _autograd._profiler_enabled():
        return None
    return ProfiledEvent(_chosen_name() or _usual_name(collective), tensors)


@contextlib.contextmanager
def events_named(collective: str) -> Generator[None]:
    """Give Gloo's sends and receives inside the context this backend's name in profiles."""
    if not _CAN_NAME or not _autograd._profiler_enabled() or _chosen_name():
        yield
        return
    with _name_set(_usual_name(collective)):
        yield


@contextlib.contextmanager
def no_events() -> Generator[None]:
    """Keep works made inside the context from beginning an event, which would not end in time."""
    chosen = _chosen_name()
    if not chosen:
        yield
        return
    with _name_set(""):
        yield


@contextlib.contextmanager
def _name_set(name: str) -> Generator[None]:
    before = _chosen_name()
    _c10d._set_comm_profiling_name(name)
    try:
        yield
    finally:
        _c10d._set_comm_profiling_name(before)


def _usual_name(collective: str) -> str:
    return f"{BACKEND_NAME}:{collective}"


def _chosen_name() -> str:
    return _c10d._get_comm_profiling_name() if _CAN_NAME else ""
