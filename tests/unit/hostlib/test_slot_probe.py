# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What probes and their answers tell about the cause of a wait."""

from __future__ import annotations

from collections import Counter
from typing import cast

import numpy as np
import pytest

from switchfold.hostlib.control.view import Endpoint, JobView, Member, TreeView
from switchfold.hostlib.engine.allreduce_task import AllreduceTask
from switchfold.hostlib.errors import (
    AllreduceTimeoutError,
    SwitchUnreachableError,
    WorkerMissingError,
)
from switchfold.hostlib.slots.slot_probe import (
    FORGETFULNESS,
    INTERVAL_S,
    PROBES_SENT,
    STANDING_NOTICES,
    SlotProbe,
)
from switchfold.hostlib.slots.wire import HEADER_BYTES
from switchfold.hostlib.transports.base import Datagrams, Transport

VIEW = JobView(
    job=1,
    generation=1000,
    worker_id=0,
    members=(Member(worker_id=0), Member(worker_id=1)),
    trees=(TreeView(tree_id=7, slot_count=8),),
    child_id=0,
    worker_bitmap=1,
    values_per_packet=32,
    switch=Endpoint(address="10.0.0.254", udp_port=21318),
)


class _Transport:
    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()

    def send(self, datagrams: Datagrams) -> int:
        return len(datagrams)


class _Task:
    tensor_id = 3
    timeout_s = 2.0


class Probing:
    """A probe whose time passes by what it sends."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.transport = _Transport()
        self.probe = SlotProbe(VIEW, cast(Transport, self.transport), self.counters)
        self._now_s = 0.0

    def send(self, number: int) -> None:
        for _ in range(number):
            self.probe.send(np.zeros(HEADER_BYTES, np.uint8), self._now_s)
            self._now_s += INTERVAL_S * 1.01

    def answer(self, bitmap: int) -> None:
        self.probe.note_answer()
        self.probe.note_notice(bitmap)

    def error(self) -> AllreduceTimeoutError:
        return self.probe.verdict(cast(AllreduceTask, _Task()))

    def verdict(self) -> type[AllreduceTimeoutError]:
        return type(self.error())


@pytest.mark.parametrize(
    ("unanswered", "verdict"),
    [
        (0, WorkerMissingError),
        (FORGETFULNESS, WorkerMissingError),
        (FORGETFULNESS + 1, SwitchUnreachableError),
    ],
)
def test_switch_that_stops_answering_is_gone(
    unanswered: int, verdict: type[AllreduceTimeoutError]
) -> None:
    probing = Probing()
    assert probing.verdict() is SwitchUnreachableError
    probing.send(3)
    probing.answer(bitmap=0b01)
    assert probing.probe.missing == [1]
    probing.send(unanswered)
    assert probing.counters[PROBES_SENT] == 3 + unanswered
    assert probing.verdict() is verdict
    assert probing.probe.missing == ([1] if verdict is WorkerMissingError else [])
    probing.answer(bitmap=0b01)
    assert probing.verdict() is WorkerMissingError


@pytest.mark.parametrize("claims", [0, 7])
def test_silent_switch_with_claims_of_a_small_mtu(claims: int) -> None:
    probing = Probing()
    probing.transport.counters["path_mtu_ignored"] = claims
    text = str(probing.probe.verdict(cast(AllreduceTask, _Task())))
    assert ("7 ICMP messages, genuine or forged" in text) == bool(claims)
    assert ("raise its MTU" in text) == bool(claims)


def test_living_worker_is_not_blamed_while_results_come() -> None:
    probing = Probing()
    probing.send(1)
    probing.probe.note_results()
    probing.answer(bitmap=0b01)  # a moment: worker 1's contribution was lost, or is under way
    error = probing.error()
    assert type(error) is AllreduceTimeoutError
    assert "no worker is known to be missing" in str(error)
    assert "Likely" in str(error)
    for _ in range(STANDING_NOTICES - 1):
        assert probing.verdict() is AllreduceTimeoutError
        probing.send(1)
        probing.answer(bitmap=0b01)
    assert probing.verdict() is WorkerMissingError
    probing.probe.note_results()
    assert probing.verdict() is AllreduceTimeoutError
    assert probing.probe.missing == []


def test_own_contribution_that_does_not_arrive_is_no_proof_of_other_shapes() -> None:
    probing = Probing()
    probing.send(1)
    probing.answer(bitmap=0b10)
    text = str(probing.error())
    assert "takes none from worker 0" in text
    assert "if 'mismatch'" in text
    assert "likely lost" in text


def test_lost_answers_are_counted_not_explained() -> None:
    probing = Probing()
    probing.send(3)
    assert "the last 3 of them" in str(probing.error())
