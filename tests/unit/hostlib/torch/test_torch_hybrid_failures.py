# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Hybrid training where ranks are late or gone, and where parameter servers die."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from server_process import ServerProcess
from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from torch import Tensor, nn  # noqa: E402

from fake_switch import FakeSwitch  # noqa: E402
from hybrid_ranks import (  # noqa: E402
    NUM_RANKS,
    WAIT_S,
    HybridRanks,
    batches,
    one_thread,
    parameters_of,
    ranks,
    seeded,
    steps,
    three_layers,
    train,
)
from switchfold.hostlib.errors import ConfigurationError  # noqa: E402
from switchfold.hostlib.straggler import StragglerPolicy  # noqa: E402
from switchfold.hostlib.torch.syncers.completion_vector import CompletionVector  # noqa: E402
from switchfold.hostlib.torch.syncers.sync_error import SyncError  # noqa: E402
from view_driver import ViewDriver  # noqa: E402

__all__ = ["one_thread", "ranks"]


@pytest.mark.parametrize("scheme", ["ps", "sfb"])
def test_a_rank_that_is_gone_is_an_error_with_layer_and_remedy(
    ranks: HybridRanks, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The layers' own errors come first, however late a busy machine lets their threads tell them.
    wait = CompletionVector.wait
    monkeypatch.setattr(CompletionVector, "wait", lambda vector, _: wait(vector, WAIT_S))

    def rank_main(rank: int) -> str:
        module = seeded(three_layers, 1)
        options: dict[str, Any] = {"scheme": dict.fromkeys(("0", "2", "4"), scheme)}
        with ranks.wrap(rank, module, timeout_s=1.0, batch=2, **options) as model:
            if rank == 1:
                return ""
            loss = model(torch.ones(2, 12)).sum()
            with pytest.raises(SyncError) as caught:
                loss.backward()
            with pytest.raises(SyncError):
                model(torch.ones(2, 12))
            return str(caught.value)

    texts = ranks.run(rank_main)
    for rank in (0, 2):
        assert f"rank {rank}, layer " in texts[rank]
        assert "iteration 0" in texts[rank]
        assert "restart the ranks" in texts[rank]


@pytest.mark.parametrize("scheme", ["ina", "ps"])
def test_a_late_rank_is_dropped_and_its_update_discarded(scheme: str) -> None:
    policy = StragglerPolicy(deadline_s=0.25)
    partial = HybridRanks(NUM_RANKS, straggler=policy)
    gate = threading.Event()

    def rank_main(rank: int) -> tuple[Tensor, list[int]]:
        module = nn.Linear(1, 4, bias=False)
        counts: list[int] = []
        with partial.wrap(rank, module, scheme=scheme, batch=1) as model:
            module.weight.data.zero_()
            for iteration in range(3):
                module.zero_grad()
                loss = model(torch.full((1, 1), float(rank + 1))).sum()
                if rank == 2 and iteration == 1:
                    assert gate.wait(WAIT_S)  # until the others are through
                loss.backward()
                assert module.weight.grad is not None
                module.weight.data -= module.weight.grad
                counts.append(min(model.num_contributors.values()))
                if rank == 0 and iteration == 1:
                    gate.set()
            return module.weight.detach().clone(), counts

    results = partial.run(rank_main)
    assert all(torch.equal(results[0][0], weight) for weight, _ in results)
    assert all(counts[1] in (1, NUM_RANKS - 1) for _, counts in results)
    assert len({tuple(counts) for _, counts in results}) == 1
    if results[0][1] == [3, 2, 3]:  # no other rank was late, as on a busy machine
        torch.testing.assert_close(results[0][0], torch.full((4, 1), -2.0 - 1.5 - 2.0))
    partial.close()


def test_a_session_that_goes_on_with_fewer_ranks_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    group = HybridRanks(NUM_RANKS, has_switch=False)
    driver = ViewDriver(FakeSwitch(NUM_RANKS), range(NUM_RANKS))
    sessions = dict(driver.sessions)
    is_done, is_changed = (threading.Barrier(NUM_RANKS) for _ in range(2))

    def rank_main(rank: int) -> list[int]:
        module = nn.Linear(1, 4, bias=False)
        counts: list[int] = []
        with group.wrap(rank, module, session=sessions[rank], scheme="ina", batch=1) as model:
            for iteration in range(4):
                if iteration == 1:
                    is_done.wait(WAIT_S)
                    if rank == 2:
                        driver.kill(rank)
                        driver.change({100: 16})
                    is_changed.wait(WAIT_S)
                if rank < 2 or iteration == 0:
                    module.zero_grad()
                    model(torch.full((1, 1), float(rank + 1))).sum().backward()
                    assert module.weight.grad is not None
                    mean = 1.5 if iteration else 2.0
                    torch.testing.assert_close(module.weight.grad, torch.full((4, 1), mean))
                    counts.append(model.num_contributors["linear"])
            is_done.wait(WAIT_S)
            return counts

    with caplog.at_level("WARNING", "switchfold.hostlib.torch"):
        assert group.run(rank_main) == [[3, 2, 2, 2], [3, 2, 2, 2], [3]]
    said = [record.getMessage() for record in caplog.records if "goes on" in record.getMessage()]
    assert sorted(said) == [
        f"rank {rank}, iteration 1: the session goes on without ranks [2]; means are over 2 of 3"
        " ranks"
        for rank in range(2)
    ]
    driver.close()
    group.close()


def test_a_killed_parameter_server_comes_back_and_the_iteration_is_redone() -> None:
    """The ranks have everything that the server had: they send the iteration under way again."""
    pair = HybridRanks(2, has_switch=False)
    joint = batches(8, 8, 12)
    reference = seeded(three_layers, 1)
    train(reference, joint, reference.parameters())
    server = ServerProcess("--rule", "mean", num_workers=2)
    host, port = server.address
    before_kill = threading.Barrier(2)

    def rank_main(rank: int) -> tuple[Tensor, int]:
        module = seeded(three_layers, 1)
        options: dict[str, Any] = {"servers": [f"{host}:{port}"], "timeout_s": 2 * WAIT_S}
        with pair.wrap(rank, module, scheme="ps", batch=4, **options) as model:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
            own = [x[4 * rank : 4 * rank + 4] for x in joint]
            steps(model, optimizer, own[:3])
            before_kill.wait(WAIT_S)
            if rank == 0:
                server.kill()
                loss = (model(own[3]) - own[3][:, :5].sin()).square().mean()
                server.start()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps(model, optimizer, own[4:])
            else:
                steps(model, optimizer, own[3:])  # sends to a server that is dead
            return parameters_of(module), model.iteration

    with server:
        results = pair.run(rank_main)
    assert [result[1] for result in results] == [8, 8]
    assert torch.equal(results[0][0], results[1][0])
    assert (results[0][0] - parameters_of(reference)).abs().max() < 1e-5
    pair.close()


def test_factors_do_not_go_with_dropped_stragglers() -> None:
    partial = HybridRanks(2, has_switch=False)

    def rank_main(rank: int, scheme: str) -> list[str]:
        policy = StragglerPolicy(quorum=1)
        module = nn.Linear(512, 512)
        with partial.wrap(rank, module, scheme=scheme, batch=1, straggler=policy) as model:
            return [entry.scheme.value for entry in model.book.entries]

    assert partial.run(lambda rank: rank_main(rank, "auto")) == [["ps", "ps"]] * 2
    with pytest.raises(ConfigurationError, match="left out"):
        partial.run(lambda rank: rank_main(rank, "sfb"))
    partial.close()
