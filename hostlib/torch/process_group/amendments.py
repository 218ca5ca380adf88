# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Changes to torch.distributed for functions that serve only PyTorch's own backends.

The first group of a process makes both changes. They do not affect other backends.
"""

from __future__ import annotations

import functools
from datetime import timedelta
from typing import Any, cast, final

import torch.distributed as dist
from torch.distributed.algorithms.join import Join

from .delegated_work import DelegatedWork
from .gloo_collectives import GlooCollectives
from .work import SwitchfoldWork

_c10d: Any = dist.distributed_c10d


@functools.cache
def amend_torch() -> None:
    """Make the changes, once in a process."""
    _let_reducers_keep_works()
    _open_monitored_barrier()


@final
class _Handover(dist.ProcessGroup):
    """Hands a work to C++, which returns a work of its own that owns the first."""

    def __init__(self, work: dist.Work) -> None:
        # The stubs name only a form that C++ does not offer to subclasses.
        super().__init__(0, 1)  # pyright: ignore[reportCallIssue]
        self._work = work

    def getBackendName(self) -> str:  # noqa: N802
        """Return a name; C++ asks for one."""
        return "handover"

    def barrier(self, *_: Any, **__: Any) -> Any:
        """Return the work."""
        return self._work


def owned_by_cpp(work: dist.Work) -> dist.Work:
    """Return a C++ work that ends as `work` does and keeps it alive.

    C++ keeps only the C++ part of a work that is written in Python. Without the Python part,
    `wait` never returns and `getFuture` fails.
    """
    return cast("Any", dist.ProcessGroup).barrier(_Handover(work))


def _let_reducers_keep_works() -> None:
    """Let DistributedDataParallel's reducer keep the work by which ranks report their input.

    With `join`, each forward pass hands that work from Python to C++ and drops it; the backward
    pass waits for it in C++.
    """
    join: Any = Join
    notify = join.notify_join_context

    @functools.wraps(notify)
    def notify_join_context(joinable: Any) -> Any:
        work = notify(joinable)
        is_python = isinstance(work, SwitchfoldWork | DelegatedWork)
        return owned_by_cpp(work) if is_python else work

    join.notify_join_context = staticmethod(notify_join_context)


def _open_monitored_barrier() -> None:
    """Let torch.distributed.monitored_barrier take groups of this backend besides Gloo's."""
    for_gloo = _c10d.monitored_barrier

    @functools.wraps(for_gloo)
    def monitored_barrier(
        group: Any = None, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
    ) -> None:
        chosen: Any = dist.group.WORLD if group is None else group
        if not isinstance(chosen, GlooCollectives):
            for_gloo(group, timeout, wait_all_ranks)
            return
        if isinstance(timeout, float):
            timeout = timedelta(seconds=timeout)
        limits = {} if timeout is None else {"timeout": timeout}
        chosen.monitored_barrier(wait_all_ranks=wait_all_ranks, **limits)

    cast("Any", dist).monitored_barrier = _c10d.monitored_barrier = monitored_barrier
