# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Models to workers: shortest first on the server's uplink, beside updates, with errors."""

from __future__ import annotations

import pytest

from switchfold.controller.scheduler.errors import (
    ClockError,
    DuplicateTransferError,
    UnknownStationError,
    UnknownTransferError,
)
from switchfold.controller.scheduler.residual_rate import RateSpan
from switchfold.controller.scheduler.scheduler import TransferScheduler
from switchfold.controller.scheduler.transfers import ModelRequest
from transfer_cases import MBIT, SERVER, UPDATE_BYTES, grants_of, make, moved_bits, push, star


def model(
    number: int, *, size_bytes: int = UPDATE_BYTES, worker: str = "", may_relay: bool = True
) -> ModelRequest:
    return ModelRequest(
        transfer_id=number,
        worker=worker or f"h{number}",
        server=SERVER,
        size_bytes=size_bytes,
        may_relay=may_relay,
    )


def test_models_take_turns_on_the_uplink_of_the_server_shortest_first() -> None:
    scheduler = make(3)
    for number, megabytes in ((1, 40), (2, 10), (3, 20)):
        scheduler.request_model(model(number, size_bytes=megabytes * 1_000_000), 0.0)
    assert scheduler.next_due_s() == 0.0
    grants = scheduler.grant_models(0.0)
    assert [grant.request.worker for grant in grants] == ["h2", "h3", "h1"]
    assert [grant.end_s for grant in grants] == pytest.approx([0.8, 2.4, 5.6])
    assert grants[0].links == (f"{SERVER}>s1", "s1>h2")
    for grant in grants:
        assert moved_bits(grant.spans) == pytest.approx(grant.request.bits)
    assert scheduler.next_due_s() is None


def test_narrow_downlink_leaves_the_uplink_to_others() -> None:
    scheduler = TransferScheduler(star(2, others={"h1": 10}), {SERVER: 0})
    scheduler.request_model(model(1), 0.0)
    (slow,) = scheduler.grant_models(0.0)
    scheduler.request_model(model(2), 0.0)
    assert scheduler.next_due_s() == 0.05
    assert scheduler.grant_models(0.0) == []
    (fast,) = scheduler.grant_models(0.05)
    assert slow.spans == (RateSpan(0.0, 10.0, 10 * MBIT),)
    assert fast.spans == (RateSpan(0.05, pytest.approx(0.05 + 1 / 0.9), 90 * MBIT),)


def test_models_and_updates_do_not_share_a_link_of_the_server() -> None:
    scheduler = make(2)
    scheduler.submit(push(1), 0.0)
    scheduler.request_model(model(2), 0.0)
    (update,) = grants_of(scheduler.decide(0.0))
    (grant,) = scheduler.grant_models(0.0)
    assert update.commit_s == pytest.approx(1.0)
    assert grant.end_s == pytest.approx(1.0)


def test_early_arrival_and_withdrawal_free_the_rest() -> None:
    scheduler = make(4)
    for number in (1, 2):
        scheduler.request_model(model(number), 0.0)
    assert len(scheduler.grant_models(0.0)) == 2
    scheduler.model_delivered(1, 0.5)
    scheduler.withdraw_model(2, 0.5)
    scheduler.request_model(model(3), 0.5)
    scheduler.request_model(model(4), 0.5)
    scheduler.withdraw_model(4, 0.5)
    (third,) = scheduler.grant_models(0.5)
    assert third.end_s == pytest.approx(1.5)
    scheduler.model_delivered(3, 1.5)
    assert scheduler.residual.rate(f"{SERVER}>s1").rate_at(1.6) == 100 * MBIT


def test_worker_on_the_host_of_the_server_has_the_model_at_once() -> None:
    scheduler = make(1)
    scheduler.request_model(model(1, worker=SERVER), 3.0)
    (grant,) = scheduler.grant_models(3.0)
    assert (grant.spans, grant.end_s) == ((), 3.0)
    scheduler.model_delivered(1, 3.0)


def test_bad_requests_change_nothing() -> None:
    scheduler = make(2)
    scheduler.request_model(model(1), 1.0)
    with pytest.raises(DuplicateTransferError, match="model 1 for h1 was requested before"):
        scheduler.request_model(model(1), 1.0)
    with pytest.raises(DuplicateTransferError, match="model 1 for h2"):
        scheduler.request_model(model(1, worker="h2"), 1.0)
    with pytest.raises(UnknownStationError, match="worker 'h9' is no host"):
        scheduler.request_model(model(2, worker="h9"), 1.0)
    with pytest.raises(ClockError, match=r"now_s is 0\.5"):
        scheduler.request_model(model(2), 0.5)
    with pytest.raises(UnknownTransferError, match="model 1 is not on its way"):
        scheduler.model_delivered(1, 1.0)
    (grant,) = scheduler.grant_models(1.0)
    assert grant.request == model(1)
    with pytest.raises(ClockError, match=r"now_s is 0\.5"):
        scheduler.model_delivered(1, 0.5)
    scheduler.model_delivered(1, 2.0)
    with pytest.raises(UnknownTransferError, match="no model 1 is requested"):
        scheduler.withdraw_model(1, 2.0)
