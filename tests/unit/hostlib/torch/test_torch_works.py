# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Works of Python in the hands of C++, which holds one half of them only."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from switchfold.hostlib.errors import SessionBrokenError
from torch_ranks import load_torch, require_torch

require_torch()


def ended_work(error: Exception | None = None) -> Any:
    """Return a work of two values that has ended, and that nobody else holds."""
    torch, _ = load_torch()
    from switchfold.hostlib.torch.process_group.work import SwitchfoldWork  # noqa: PLC0415
    from switchfold.hostlib.torch.staging.staging import SumStaging  # noqa: PLC0415

    tensors = [torch.tensor([1.0, 2.0])]
    work = SwitchfoldWork("rank 0, all_reduce", tensors, SumStaging(tensors))
    work.finish(error)
    return work


def owned(work: Any) -> Any:
    """Return what C++ gets to hold in place of a work."""
    from switchfold.hostlib.torch.process_group.amendments import owned_by_cpp  # noqa: PLC0415

    return owned_by_cpp(work)


def test_work_lives_as_long_as_cpp_holds_it() -> None:
    held = owned(ended_work())
    gc.collect()
    assert held.wait()
    assert held.get_future().value()[0].tolist() == [1.0, 2.0]


def test_work_that_failed_raises_its_error_through_cpp() -> None:
    held = owned(ended_work(SessionBrokenError("the stream broke")))
    gc.collect()
    with pytest.raises(SessionBrokenError, match="the stream broke"):
        held.wait()


def test_work_ends_with_its_last_owner() -> None:
    work = ended_work()
    import weakref  # noqa: PLC0415

    alive = weakref.ref(work)
    held = owned(work)
    del work
    gc.collect()
    assert alive() is not None
    del held
    gc.collect()
    assert alive() is None
