# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks that meet before they make a process group, and ranks that do not come."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from switchfold.hostlib.torch.errors import GroupJoinError
from time_bound import wait_until
from torch_ranks import load_torch, require_torch

require_torch()
NUM_RANKS = 4
ABSENT_RANK = 2
SHORT_S, LONG_S = 0.5, 3600.0
DEADLINE_S = 120.0


def meet(store: Any, rank: int, timeout_s: float, step: str = "make") -> Any:
    """Return what the ranks said, or the error."""
    from switchfold.hostlib.torch.process_group.rendezvous import RankPlace, Rendezvous  # noqa: PLC0415

    rendezvous = Rendezvous(RankPlace(store, rank, NUM_RANKS), timedelta(seconds=timeout_s))
    try:
        return rendezvous.exchange(step, f"I am {rank}")
    except GroupJoinError as error:
        return error


def await_ranks(store: Any, ranks: list[int]) -> None:
    """Wait until they have come: on a busy machine, a rank that is late would be named, too."""
    keys = [f"switchfold/make/{rank}" for rank in ranks]
    wait_until(lambda: store.check(keys), "the others have come")


def new_store() -> Any:
    _, dist = load_torch()
    return dist.HashStore()


def test_all_ranks_hear_what_each_said() -> None:
    store = new_store()
    with ThreadPoolExecutor(NUM_RANKS) as pool:
        said = [pool.submit(meet, store, rank, LONG_S) for rank in range(NUM_RANKS)]
        for each in said:
            assert each.result(DEADLINE_S) == [f"I am {rank}" for rank in range(NUM_RANKS)]


def test_one_time_out_ends_the_waiting_of_all_that_came() -> None:
    """Ranks begin at different times: the first to give up may keep the store of the others."""
    store = new_store()
    with ThreadPoolExecutor(NUM_RANKS) as pool:
        others = [rank for rank in range(1, NUM_RANKS) if rank != ABSENT_RANK]
        waits = {rank: pool.submit(meet, store, rank, LONG_S) for rank in others}
        await_ranks(store, others)
        waits[0] = pool.submit(meet, store, 0, SHORT_S)
        for rank, wait in waits.items():
            error = wait.result(DEADLINE_S)
            assert isinstance(error, GroupJoinError)
            assert f"rank {rank}: ranks [{ABSENT_RANK}] did not come to make" in str(error)


def test_rank_that_comes_after_the_others_have_given_up() -> None:
    store = new_store()
    with ThreadPoolExecutor(NUM_RANKS) as pool:
        others = [rank for rank in range(1, NUM_RANKS) if rank != ABSENT_RANK]
        waits = [pool.submit(meet, store, rank, LONG_S) for rank in others]
        await_ranks(store, others)
        for wait in [*waits, pool.submit(meet, store, 0, SHORT_S)]:
            assert isinstance(wait.result(DEADLINE_S), GroupJoinError)
    late = meet(store, ABSENT_RANK, LONG_S)
    assert isinstance(late, GroupJoinError)
    assert f"rank {ABSENT_RANK}: ranks [{ABSENT_RANK}] did not come" in str(late)


class Clock:
    """A clock that stands still until it is set."""

    sleep = staticmethod(time.sleep)

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


def test_step_after_one_that_took_the_whole_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joining where no controller answers takes it; ranks end that at different moments."""
    from switchfold.hostlib.torch.process_group import rendezvous  # noqa: PLC0415

    clock, store = Clock(), new_store()
    monkeypatch.setattr(rendezvous, "time", clock)
    timeout = timedelta(seconds=LONG_S)
    meetings = [
        rendezvous.Rendezvous(rendezvous.RankPlace(store, rank, 2), timeout) for rank in range(2)
    ]
    clock.now_s = 2 * LONG_S
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(meetings[0].exchange, "join", "no controller")
        wait_until(lambda: store.check(["switchfold/join/0"]), "the first rank has come")
        assert meetings[1].exchange("join") == ["no controller", ""]
        assert first.result(DEADLINE_S) == ["no controller", ""]
