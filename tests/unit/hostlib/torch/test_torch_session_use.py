# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""What hybrid models leave alone: sessions that others use, and modules that were refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from torch_ranks import require_torch

require_torch()

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from hybrid_ranks import WAIT_S, HybridRanks  # noqa: E402
from switchfold.hostlib.errors import ConfigurationError  # noqa: E402
from switchfold.hostlib.torch.errors import CollectiveInputError  # noqa: E402
from switchfold.hostlib.torch.process_group.switch_queue import QueuedTransfer, SwitchQueue  # noqa: E402
from switchfold.hostlib.torch.process_group.work import SwitchfoldWork  # noqa: E402
from switchfold.hostlib.torch.session_use import SessionUse  # noqa: E402
from switchfold.hostlib.torch.staging.staging import SumStaging  # noqa: E402
from switchfold.hostlib.torch.syncers.scheme_channels import Reception, SwitchChannel  # noqa: E402
from switchfold.hostlib.torch.syncers.sync_error import SyncError  # noqa: E402


@pytest.fixture(scope="module")
def ranks() -> Iterator[HybridRanks]:
    started = HybridRanks(2)
    yield started
    started.close()


def test_a_model_that_was_refused_is_as_before(ranks: HybridRanks) -> None:
    before = set(threading.enumerate())

    def rank_main(rank: int) -> None:
        module = nn.Linear(12, 3)
        with pytest.raises(ConfigurationError, match="best"):
            ranks.wrap(rank, module, scheme="best", batch=1)
        module(torch.ones(2, 12)).sum().backward()  # no hooks
        assert module.weight.grad is not None

    ranks.run(rank_main)
    left = {t.name for t in set(threading.enumerate()) - before if "switchfold" in t.name}
    assert not left


def test_no_other_caller_submits_during_the_backward_pass(ranks: HybridRanks) -> None:
    def rank_main(rank: int) -> None:
        session: Any = ranks.sessions[rank]
        switch_queue = SwitchQueue(session, "test")
        works: list[SwitchfoldWork] = []

        def call(_gradient: Tensor) -> None:
            values = torch.ones(3)
            staging = SumStaging([values])
            works.append(SwitchfoldWork(f"rank {rank}, all_reduce", [values], staging))
            switch_queue.put(QueuedTransfer(works[-1], staging, "sum", WAIT_S))

        with (
            ranks.wrap(
                rank, nn.Sequential(nn.Linear(12, 16), nn.Linear(16, 3)), scheme="ina", batch=2
            ) as model,
            ranks.wrap(rank, nn.Linear(12, 12), scheme="ina", batch=2) as other,
        ):
            x = torch.ones(2, 12, requires_grad=True)
            x.register_hook(call)
            model(x).sum().backward()
            with pytest.raises(CollectiveInputError, match=f"rank {rank}, .* another group"):
                works[0].wait()
            call(x)
            assert works[1].wait()
            with pytest.raises(SyncError, match="hybrid model uses the same session"):
                model(other(x)).sum().backward()
            call(x)
            assert not works[2].is_success()
            model.close()
            call(x)
            assert works[3].wait()
        switch_queue.close()

    ranks.run(rank_main)


class BrokenBackward(nn.Module):
    """Passes values on, and refuses their gradients."""

    def forward(self, x: Tensor) -> Tensor:
        def refuse(_gradient: Tensor) -> None:
            raise RuntimeError("this pass fails")

        x.register_hook(refuse)
        return x


def test_ranks_have_sent_the_same_when_a_pass_failed(
    monkeypatch: pytest.MonkeyPatch, ranks: HybridRanks
) -> None:
    late_session: Any = ranks.sessions[1]
    has_sent_all, may_send = threading.Event(), threading.Event()
    sent: list[str] = []
    send = SwitchChannel.send

    def late_send(channel: Any, key: str, values: Any, iteration: int) -> Reception:
        if channel._session is late_session:
            assert may_send.wait(WAIT_S)
            return send(channel, key, values, iteration)
        reception = send(channel, key, values, iteration)
        sent.append(key)
        if len(sent) == 2:
            has_sent_all.set()
        return reception

    monkeypatch.setattr(SwitchChannel, "send", late_send)

    def rank_main(rank: int) -> list[float]:
        session: Any = ranks.sessions[rank]
        layers = nn.Linear(12, 16), BrokenBackward(), nn.Linear(16, 8), nn.Linear(8, 3)
        with ranks.wrap(rank, nn.Sequential(*layers), scheme="ina", batch=2) as model:
            loss = model(torch.ones(2, 12)).sum()
            with pytest.raises(RuntimeError, match="this pass fails"):
                loss.backward()
            if rank == 0:
                assert has_sent_all.wait(WAIT_S)
            else:
                may_send.set()
        values = torch.full((3,), float(rank + 1)).numpy()
        return session.allreduce(values, timeout_s=WAIT_S).result().tolist()

    assert ranks.run(rank_main) == [[3.0] * 3] * 2


def test_a_claim_waits_for_what_was_staged_before() -> None:
    use = SessionUse()
    use.stage()
    with pytest.raises(TimeoutError, match="not submitted"):
        use.claim("first", 0.01)
    submitting = threading.Timer(0.01, use.submitted)
    submitting.start()
    assert not use.claim("first", WAIT_S)
    assert use.claim("second", WAIT_S) == "first"
    use.release()
    assert not use.owner
    submitting.join()
