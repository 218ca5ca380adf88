# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Models that wait at their server, so that their updates need not."""

from __future__ import annotations

import pytest

from switchfold.controller.scheduler.errors import InvalidTransferError
from switchfold.controller.scheduler.scheduler import SchedulerOptions, TransferScheduler
from switchfold.controller.scheduler.state.coming_updates import DEVIATIONS
from switchfold.controller.scheduler.training.training_modes import SynchronousTraining
from switchfold.controller.scheduler.transfers import ModelRequest
from transfer_cases import SERVER, UPDATE_BYTES, make, push, star


def ask(scheduler: TransferScheduler, number: int, now_s: float, worker: str = "") -> None:
    scheduler.request_model(
        ModelRequest(
            transfer_id=number,
            worker=worker or f"h{number}",
            server=SERVER,
            size_bytes=UPDATE_BYTES,
        ),
        now_s,
    )


def starts(scheduler: TransferScheduler, now_s: float) -> dict[str, float]:
    """When the models of a batch leave, by worker."""
    grants = scheduler.grant_models(now_s)
    return {grant.request.worker: grant.spans[0].start_s for grant in grants}


def queue_three(scheduler: TransferScheduler) -> None:
    """Have the server's link carry updates until 3.0 s."""
    for number in (1, 2, 3):
        scheduler.submit(push(number), 0.0)
    assert len(scheduler.decide(0.0)) == 3


@pytest.mark.parametrize(("most", "start_s"), [(None, 0.0), (1.0, 1.0), (0.0, 2.0), (3.0, 0.0)])
def test_model_waits_as_long_as_its_update_would(most: float | None, start_s: float) -> None:
    scheduler = make(4, most_queued_updates=most)
    queue_three(scheduler)
    ask(scheduler, 4, 0.0)
    # It takes 1 s to the worker, and the update 1 s back.
    assert starts(scheduler, 0.0) == {"h4": pytest.approx(start_s)}


def test_updates_that_wait_for_their_batch_count() -> None:
    scheduler = make(4, most_queued_updates=0.0)
    queue_three(scheduler)
    scheduler.submit(push(5, worker="h1"), 0.0)
    ask(scheduler, 4, 0.0)
    assert starts(scheduler, 0.0) == {"h4": pytest.approx(3.0)}


def test_model_leaves_earlier_by_the_time_its_worker_takes() -> None:
    scheduler = make(7, most_queued_updates=0.0)
    model = 4
    for began_s in (0.0, 3.0):  # it computes for 0.5 s each time
        ask(scheduler, model, began_s, worker="h4")
        assert starts(scheduler, began_s) == {"h4": began_s}
        scheduler.model_delivered(model, began_s + 1.0)
        scheduler.submit(push(model, worker="h4"), began_s + 1.5)
        scheduler.decide(began_s + 1.5)
        scheduler.delivered([model], began_s + 2.5)
        model += 1
    for number in range(11, 17):
        scheduler.submit(push(number, worker=f"h{1 + number % 3}"), 6.0)
    scheduler.decide(6.0)
    ask(scheduler, model, 6.0, worker="h4")
    # Times of 1.5 s, whose deviation is taken for a quarter at first, and falls by a quarter.
    deviation_s = 0.25 * 1.5 * 0.75
    wanted_s = 12.0 - 1.5 - DEVIATIONS * deviation_s
    assert starts(scheduler, 6.0) == {"h4": pytest.approx(wanted_s)}


def test_model_leaves_much_earlier_for_a_worker_whose_times_vary() -> None:
    scheduler = make(7, most_queued_updates=0.0)
    for model, (began_s, took_s) in enumerate([(0.0, 1.5), (3.0, 3.5)], 4):
        ask(scheduler, model, began_s, worker="h4")
        scheduler.grant_models(began_s)
        scheduler.model_delivered(model, began_s + 1.0)
        scheduler.submit(push(model, worker="h4"), began_s + took_s)
        scheduler.decide(began_s + took_s)
        scheduler.delivered([model], began_s + took_s + 1.0)
    for number in range(11, 17):
        scheduler.submit(push(number, worker=f"h{1 + number % 3}"), 8.0)
    scheduler.decide(8.0)
    ask(scheduler, 6, 8.0, worker="h4")
    mean_s, deviation_s = 1.5 + 0.25 * 2.0, 0.375 + 0.25 * (2.0 - 0.375)
    wanted_s = 14.0 - mean_s - DEVIATIONS * deviation_s
    assert wanted_s > 8.0
    assert starts(scheduler, 8.0) == {"h4": pytest.approx(wanted_s)}


def test_update_that_is_asked_for_before_its_model_has_begun_is_that_of_another_one() -> None:
    scheduler = make(4, most_queued_updates=0.0)
    queue_three(scheduler)
    ask(scheduler, 4, 0.0)
    assert starts(scheduler, 0.0) == {"h4": pytest.approx(2.0)}
    scheduler.delivered([1], 1.0)
    scheduler.submit(push(4), 1.0)
    assert len(scheduler.decide(1.05)) == 1  # until 4 s; that of the model is expected from 3 s on
    ask(scheduler, 5, 1.1, worker="h1")
    assert starts(scheduler, 1.2) == {"h1": pytest.approx(4.0)}


def test_updates_of_models_under_way_are_expected() -> None:
    # The server sends four times as fast as it gets: models would come together, updates cannot.
    network = star(4, others={SERVER: (400, 100)})
    options = SchedulerOptions(most_queued_updates=1.0)
    scheduler = TransferScheduler(network, {SERVER: 0}, options)
    for number in (1, 2, 3, 4):
        ask(scheduler, number, 0.0)
    assert starts(scheduler, 0.0) == pytest.approx({"h1": 0.0, "h2": 0.0, "h3": 1.0, "h4": 2.0})


def test_what_does_not_come_is_not_expected() -> None:
    network = star(4, others={SERVER: (400, 100)})
    options = SchedulerOptions(most_queued_updates=0.0)
    scheduler = TransferScheduler(network, {SERVER: 0}, options)
    for number in (1, 2):
        ask(scheduler, number, 0.0)
    assert starts(scheduler, 0.0) == pytest.approx({"h1": 0.0, "h2": 1.0})
    scheduler.withdraw_model(1, 0.5)
    scheduler.model_delivered(2, 2.0)
    ask(scheduler, 3, 2.0)
    assert starts(scheduler, 2.0) == pytest.approx({"h3": 2.0})  # after that of h2, at 3 s
    scheduler.model_delivered(3, 3.0)
    # Neither h2 nor h3 has sent anything for long: they may have ended.
    ask(scheduler, 4, 10.0)
    assert starts(scheduler, 10.0) == pytest.approx({"h4": 10.0})


def test_slow_worker_is_no_longer_expected_when_it_is_late() -> None:
    network = star(4, others={SERVER: (400, 100)})
    options = SchedulerOptions(most_queued_updates=0.0)
    scheduler = TransferScheduler(network, {SERVER: 0}, options)
    ask(scheduler, 1, 0.0)
    scheduler.grant_models(0.0)
    scheduler.model_delivered(1, 1.0)
    scheduler.submit(push(1), 3.0)
    scheduler.decide(3.0)
    scheduler.delivered([1], 4.0)
    ask(scheduler, 2, 4.0, worker="h1")
    scheduler.grant_models(4.0)
    scheduler.model_delivered(2, 5.0)
    # At 7 s its update is expected, until 8 s: another one is wanted then.
    ask(scheduler, 3, 5.0)
    assert starts(scheduler, 5.0) == pytest.approx({"h3": 7.0})


def test_models_of_synchronous_training_do_not_wait() -> None:
    scheduler = make(4, most_queued_updates=0.0, mode=SynchronousTraining())
    queue_three(scheduler)
    ask(scheduler, 4, 0.0)
    assert starts(scheduler, 0.0) == {"h4": 0.0}


def test_model_for_the_host_of_the_server_leaves_at_once() -> None:
    scheduler = make(4, most_queued_updates=0.0)
    queue_three(scheduler)
    ask(scheduler, 4, 0.0, worker=SERVER)
    (grant,) = scheduler.grant_models(0.0)
    assert (grant.spans, grant.end_s) == ((), 0.0)


def test_option_is_checked() -> None:
    with pytest.raises(InvalidTransferError, match="most_queued_updates"):
        SchedulerOptions(most_queued_updates=-1.0)
