# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The commit sequence: no gap and no inversion, whatever arrives first."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchfold.controller.scheduler.commit_sequence import CommitSequence
from switchfold.controller.scheduler.errors import CommitSequenceError
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.training.commit_order import CommitOrder
from transfer_cases import SERVER, star
from transfer_simulation import TransferSimulation


@given(st.permutations(range(12)), st.sets(st.integers(0, 11)))
def test_items_come_in_order_and_skipped_ones_do_not(order: list[int], skipped: set[int]) -> None:
    sequence: CommitSequence[int] = CommitSequence()
    applied: list[int] = []
    for number in order:
        ready = sequence.skip(number) if number in skipped else sequence.arrive(number, number)
        applied += ready
        assert all(below in applied or below in skipped for below in range(sequence.next))
    assert applied == [number for number in range(12) if number not in skipped]


def test_number_fills_its_place_once() -> None:
    sequence: CommitSequence[str] = CommitSequence()
    sequence.arrive(1, "early")
    with pytest.raises(CommitSequenceError, match=r"number 1 .* filled already; 0 is the next"):
        sequence.arrive(1, "again")
    assert sequence.arrive(0, "first") == ["first", "early"]
    with pytest.raises(CommitSequenceError, match="number 1 of the commit sequence is past"):
        sequence.skip(1)


def test_thousand_pushes_with_jitter_commit_without_gap_or_inversion() -> None:
    chance = random.Random(1)
    network = star(4)
    options = SchedulerOptions(commit_order=CommitOrder.SEQUENCE)
    scheduler = TransferScheduler(network, {SERVER: 0}, options)
    simulation = TransferSimulation(network, scheduler, lambda: chance.uniform(0.0, 2.0))
    record = simulation.run(1100.0)
    assert len(record.sequences) >= 1000
    assert record.sequences == list(range(len(record.sequences)))
    assert scheduler.version(SERVER) == len(record.sequences)
