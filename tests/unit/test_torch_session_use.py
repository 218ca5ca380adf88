# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""What hybrid models leave alone: sessions that others use, and modules that were refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from hostlib.errors import ConfigurationError  # noqa: E402
from hostlib.torch.errors import CollectiveInputError  # noqa: E402
from hostlib.torch.session_use import SessionUse  # noqa: E402
from hostlib.torch.staging import SumStaging  # noqa: E402
from hostlib.torch.switch_queue import SwitchQueue, Transfer  # noqa: E402
from hostlib.torch.sync_error import SyncError  # noqa: E402
from hostlib.torch.work import SwitchfoldWork  # noqa: E402
from hybrid_ranks import WAIT_S, HybridRanks  # noqa: E402


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


def test_nobody_else_submits_during_the_backward_pass(ranks: HybridRanks) -> None:
    def rank_main(rank: int) -> None:
        session: Any = ranks.sessions[rank]
        switch_queue = SwitchQueue(session, "test")
        works: list[SwitchfoldWork] = []

        def call(_gradient: Tensor) -> None:
            values = torch.ones(3)
            staging = SumStaging([values])
            works.append(SwitchfoldWork(f"rank {rank}, all_reduce", [values], staging))
            switch_queue.put(Transfer(works[-1], staging, "sum", WAIT_S))

        with (
            ranks.wrap(
                rank, nn.Sequential(nn.Linear(12, 16), nn.Linear(16, 3)), scheme="ina", batch=2
            ) as model,
            ranks.wrap(rank, nn.Linear(12, 12), scheme="ina", batch=2) as other,
        ):
            x = torch.ones(2, 12, requires_grad=True)
            x.register_hook(call)
            model(x).sum().backward()
            with pytest.raises(CollectiveInputError, match=f"rank {rank}, .* group of its own"):
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
