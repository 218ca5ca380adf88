# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a worker: its transfers, its packets, and several sessions of one process."""

from __future__ import annotations

import urllib.error

import numpy as np
import pytest

from scraped_metrics import put_values, scrape
from switchfold.hostlib.errors import MetricsError, SessionClosedError
from switchfold.hostlib.future import AllreduceFuture
from switchfold.hostlib.observing import metric_table as table
from switchfold.hostlib.observing.metric import Exporter, MetricSamples
from switchfold.hostlib.observing.transfer_clock import TransferClock
from switchfold.hostlib.observing.worker_metrics import (
    SessionMeter,
    put_statistics,
    served_address,
)

LABELS = {"job": "train", "worker": "2"}
STATISTICS = {
    "round_trip_s": 0.25,
    "exponent_round_trip_s": 0.5,
    "window": 16,
    "value_packets_sent": 10,
    "value_packets_fast_retransmitted": 3,
    "probe_packets_sent": 1,
    "refused_stranger": 4,
}


class HandClock:
    """A clock that a test sets."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def end(future: AllreduceFuture) -> None:
    future.set_result(np.zeros(1, np.float32), 1, (0,))


def test_exchange_is_the_time_with_a_transfer_under_way() -> None:
    clock = HandClock()
    transfers = TransferClock(clock)
    first, second, third = (AllreduceFuture(n, 100 * n) for n in (1, 2, 3))
    transfers.watch((first,))
    clock.now_s = 101.0
    transfers.watch((second,))
    clock.now_s = 103.0
    end(first)
    clock.now_s = 104.0
    assert transfers.totals().exchange_s == 4.0  # the second one is under way
    second.set_exception(SessionClosedError("closed"))
    clock.now_s = 110.0
    transfers.watch((third,))
    clock.now_s = 112.0
    end(third)
    clock.now_s = 200.0
    totals = transfers.totals()
    assert totals.exchange_s == 6.0
    assert (totals.completed, totals.failed, totals.num_bytes) == (2, 1, 600)


def test_wait_ends_with_the_first_packet() -> None:
    transfers = TransferClock(HandClock())
    sent, unsent = AllreduceFuture(1), AllreduceFuture(2)
    transfers.watch((sent, unsent))
    sent.times.submitted_s, sent.times.first_packet_s = 5.0, 5.75
    end(sent)
    end(unsent)
    assert transfers.totals().first_packet_wait_s == 0.75


def test_statistics_are_put_by_stream_event_and_cause() -> None:
    samples = MetricSamples()
    put_statistics(samples, LABELS, STATISTICS)
    values = put_values(samples)
    assert values[table.WORKER_PACKETS.name] == {
        ("train", "2", "value", "sent"): 10,
        ("train", "2", "value", "fast_retransmitted"): 3,
        ("train", "2", "probe", "sent"): 1,
    }
    assert values[table.WORKER_REFUSED.name] == {("train", "2", "stranger"): 4}
    assert values[table.WORKER_RTT.name] == {
        ("train", "2", "value"): 0.25,
        ("train", "2", "exponent"): 0.5,
    }
    assert values[table.WORKER_WINDOW.name] == {("train", "2"): 16}


def test_sessions_of_one_process_share_the_address_until_the_last_has_left() -> None:
    meters = [SessionMeter("0", job, 2) for job in ("train", "other")]
    meters[0].attach(lambda: STATISTICS)
    address = served_address("0")
    answer = scrape(address)
    exported = {metric.name for metric in table.METRICS if metric.exporter is Exporter.WORKER}
    assert answer.names == exported | {*table.PROCESS_METRICS}
    assert answer.value(table.WORKER_TENSORS, job="other", outcome="completed") == 0
    assert answer.value(table.WORKER_WINDOW) == 16
    meters[0].close()
    meters[0].close()
    assert not scrape(address).values(table.WORKER_TENSORS, job="train")
    meters[1].close()
    with pytest.raises(urllib.error.URLError):
        scrape(address)


def test_address_that_cannot_be_had_leaves_nothing_behind() -> None:
    for _ in range(2):
        with pytest.raises(MetricsError):
            SessionMeter("192.0.2.1:0", "train", 0)
