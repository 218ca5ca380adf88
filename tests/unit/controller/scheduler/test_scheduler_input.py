# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Bad input: typed errors that say what, and that leave the scheduler as it was."""

from __future__ import annotations

import ast
import math
from dataclasses import replace
from pathlib import Path

import pytest

from switchfold.controller.scheduler.delay_bound import DelayBound
from switchfold.controller.scheduler.errors import (
    ClockError,
    DuplicateTransferError,
    InvalidTransferError,
    NoRouteError,
    UnknownStationError,
    UnknownTransferError,
)
from switchfold.controller.scheduler.grouping import AggregationPlaces
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.training.commit_order import CommitOrder
from switchfold.controller.scheduler.transfers import TransferRequest
from transfer_cases import SERVER, UPDATE_BYTES, grants_of, make, push, star

PACKAGE = Path(__file__).resolve().parents[4] / "controller" / "scheduler"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"size_bytes": 0}, "transfer 7 of h7: size_bytes is 0; it must be a whole number from 1"),
        ({"size_bytes": -5}, "size_bytes is -5"),
        ({"size_bytes": 1.5}, "size_bytes is 1.5"),
        ({"version": -1}, "version is -1"),
        ({"transfer_id": -1}, "transfer_id is -1"),
        ({"norm": math.nan}, "norm is nan; it must be finite and at least 0"),
        ({"norm": math.inf}, "norm is inf"),
        ({"norm": -0.5}, "norm is -0.5"),
        ({"whole_bytes": 5}, f"whole_bytes is 5; it must be a whole number from {UPDATE_BYTES}"),
        ({"whole_bytes": -1}, "whole_bytes is -1"),
    ],
)
def test_request_that_makes_no_sense_is_refused(change: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidTransferError, match=text):
        replace(push(7), **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("request_", "error", "text"),
    [
        (push(9, worker="h99"), UnknownStationError, "worker 'h99' is no host"),
        (replace(push(2), server="h1"), UnknownStationError, "'h1' is no server of the job"),
        (push(1, worker="h2"), DuplicateTransferError, "transfer 1 of h2 was submitted before"),
        (push(0, worker="h1"), DuplicateTransferError, r"follows a higher id \(1\)"),
        (push(2, version=2), InvalidTransferError, "version is 2, but h0 will have 1"),
    ],
)
def test_submission_that_is_refused_changes_nothing(
    request_: TransferRequest, error: type[Exception], text: str
) -> None:
    scheduler = make()
    scheduler.submit(push(1), 0.0)
    scheduler.decide(0.0)
    before = scheduler.tallies
    with pytest.raises(error, match=text):
        scheduler.submit(request_, 0.0)
    assert scheduler.tallies == before
    assert scheduler.next_due_s() is None


@pytest.mark.parametrize("transfer_id", [1, 2, 3, 77])
def test_only_what_is_under_way_is_delivered(transfer_id: int) -> None:
    scheduler = make(bound=DelayBound(tau_max=0))
    scheduler.submit(push(1), 0.0)
    scheduler.submit(push(2), 0.0)
    assert len(grants_of(scheduler.decide(0.0))) == 1
    scheduler.delivered([1], 1.0)
    scheduler.submit(push(3, version=1), 1.0)
    with pytest.raises(UnknownTransferError, match=f"transfer {transfer_id} is not granted"):
        scheduler.delivered([transfer_id], 1.0)
    assert scheduler.version(SERVER) == 1


def test_delivery_counts_once_while_it_waits_for_its_turn() -> None:
    scheduler = make(commit_order=CommitOrder.SEQUENCE)
    scheduler.submit(push(1), 0.0)
    scheduler.submit(push(2), 0.0)
    scheduler.decide(0.0)
    scheduler.delivered([2], 1.5)
    for again in (scheduler.delivered, lambda ids, now_s: scheduler.withdraw(ids[0], now_s)):
        with pytest.raises(UnknownTransferError):
            again([2], 1.5)
    assert len(scheduler.delivered([1], 1.6)) == 2


@pytest.mark.parametrize("now_s", [0.9, math.nan, math.inf])
def test_time_does_not_go_back(now_s: float) -> None:
    scheduler = make()
    scheduler.submit(push(1), 1.0)
    with pytest.raises(ClockError, match=f"now_s is {now_s}, after 1.0"):
        scheduler.decide(now_s)
    assert len(scheduler.decide(1.0)) == 1


def test_worker_without_a_route_is_refused() -> None:
    network = replace(star(1), find_route=lambda sender, receiver: None)
    scheduler = TransferScheduler(network, {SERVER: 0})
    with pytest.raises(NoRouteError, match="no route from h1 to h0"):
        scheduler.submit(push(1), 0.0)
    assert not scheduler.tallies


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"batch_max": 0}, "batch_max is 0"),
        ({"batch_wait_s": math.nan}, "batch_wait_s is nan"),
        ({"batch_wait_s": -1.0}, "batch_wait_s is -1.0"),
    ],
)
def test_options_check_themselves(options: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidTransferError, match=text):
        SchedulerOptions(**options)  # type: ignore[arg-type]


def test_bounds_and_places_check_themselves() -> None:
    with pytest.raises(InvalidTransferError, match="tau_max is -1"):
        DelayBound(tau_max=-1)
    with pytest.raises(InvalidTransferError, match=r"promotion_ratio is 0\.5"):
        DelayBound(tau_max=1, promotion_ratio=0.5)
    with pytest.raises(InvalidTransferError, match="most_members is 1"):
        AggregationPlaces(most_members=1)
    with pytest.raises(UnknownStationError, match="aggregator 'a9' is no host"):
        make(places=AggregationPlaces(hosts=["a9"]))
    with pytest.raises(UnknownStationError, match="no switch 's9' to aggregate at; known: s1"):
        make(places=AggregationPlaces(switches={"s9": frozenset()}))
    with pytest.raises(UnknownStationError, match="server 'h9' is no host"):
        TransferScheduler(star(1), {"h9": 0})


def test_package_has_no_clock_thread_or_socket() -> None:
    allowed = {
        "__future__",
        "bisect",
        "collections",
        "dataclasses",
        "enum",
        "functools",
        "heapq",
        "itertools",
        "math",
        "numpy",
        "typing",
    }
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert {alias.name.partition(".")[0] for alias in node.names} <= allowed, path
            elif isinstance(node, ast.ImportFrom):
                # Of its own package only, or of the allowed ones.
                is_own = 1 <= node.level <= len(path.relative_to(PACKAGE).parts)
                assert is_own or (node.module or "").partition(".")[0] in allowed, path
