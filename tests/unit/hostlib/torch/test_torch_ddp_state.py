# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""The state of DDP's hook with a session of the caller's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from lossy_session import be_rank_0
from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from switchfold.hostlib.errors import ConfigurationError  # noqa: E402
from switchfold.hostlib.future import AllreduceFuture  # noqa: E402
from switchfold.hostlib.straggler import WAIT_FOR_ALL  # noqa: E402
from switchfold.hostlib.torch.ddp import hooks as ddp_hooks  # noqa: E402
from switchfold.hostlib.torch.process_group import switch_queue  # noqa: E402
from switchfold.hostlib.torch.staging.device_staging import SideStreams  # noqa: E402
from switchfold.hostlib.torch.staging.staging import SumStaging  # noqa: E402


class LentSession:
    """A session of three workers whose allreduces do not end."""

    view = SimpleNamespace(num_workers=3, worker_id=0, straggler=WAIT_FOR_ALL)

    def allreduce(self, *_: Any, **_named: Any) -> AllreduceFuture:
        self.future = AllreduceFuture(1)
        return self.future


def make_state(
    monkeypatch: pytest.MonkeyPatch, *, num_ranks: int
) -> tuple[ddp_hooks.SwitchfoldState, LentSession]:
    be_rank_0(monkeypatch, num_ranks)
    session = LentSession()
    return ddp_hooks.SwitchfoldState(session=cast("Any", session), job="lent"), session


def test_a_session_of_other_ranks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"rank 0: the session has 3 workers, .* 4 ranks"):
        make_state(monkeypatch, num_ranks=4)


def test_closing_does_not_wait_for_what_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch_queue, "JOIN_S", 0.05)
    state, session = make_state(monkeypatch, num_ranks=3)
    values = torch.ones(2)
    average = state.average(values, "bucket")
    state.close()
    assert not average.done()
    session.future.set_result(torch.zeros(2).numpy(), 3, (0, 1, 2))
    assert average.wait().tolist() == [0.0, 0.0]


def test_buckets_of_each_device_have_a_stream_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[tuple[str, str]] = []

    def stage(tensors: Any, stream: Any) -> SumStaging:
        used.append((str(tensors[0].device), stream))
        return SumStaging([torch.ones(1)])

    monkeypatch.setattr(ddp_hooks, "SideStreams", lambda: SideStreams(cast("Any", str)))
    monkeypatch.setattr(ddp_hooks, "DeviceStaging", stage)
    state, _ = make_state(monkeypatch, num_ranks=3)
    for device in ("cuda:0", "cuda:1"):
        values: Any = SimpleNamespace(device=torch.device(device))
        state._staging(values)  # pyright: ignore[reportPrivateUsage]
    assert used == [("cuda:0", "cuda:0"), ("cuda:1", "cuda:1")]
    monkeypatch.setattr(switch_queue, "JOIN_S", 0.05)
    state.close()
