# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The server of metrics: where it listens, what it answers, what it refuses."""

from __future__ import annotations

import logging
import re
import socket
import urllib.error

import pytest

from scraped_metrics import scrape
from switchfold.hostlib.errors import MetricsError
from switchfold.hostlib.observing import metric_table as table
from switchfold.hostlib.observing import metrics_server
from switchfold.hostlib.observing.metric import MetricDefinition, MetricKind, MetricSamples
from switchfold.hostlib.observing.metrics_server import MetricsServer, metrics_address

BOUNDED_LABELS = {
    *("cause", "direction", "event", "job", "link", "outcome", "port", "sender", "server"),
    *("state", "stream", "switch", "worker"),
}


@pytest.fixture(autouse=True)
def _callers_may_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "_REQUEST_S", 60.0)  # on a busy machine, all are


def nothing(samples: MetricSamples) -> None:
    del samples


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("9464", ("127.0.0.1", 9464)),
        ("0", ("127.0.0.1", 0)),
        ("0.0.0.0:9464", ("0.0.0.0", 9464)),
        ("10.0.0.1:0", ("10.0.0.1", 0)),
        ("[::1]:9464", ("::1", 9464)),
    ],
)
def test_address_is_that_of_loopback_unless_one_is_named(
    text: str, address: tuple[str, int]
) -> None:
    assert metrics_address(text) == address


@pytest.mark.parametrize(
    "text", ["", ":9464", "host.example:9464", "10.0.0.1", "65536", "-1", "1.2.3.4:x", "0x10"]
)
def test_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(MetricsError, match=re.escape(f"{text!r}; write PORT for 127.0.0.1")):
        metrics_address(text)


def test_values_are_answered_as_they_are_at_the_scrape() -> None:
    rounds = iter((3, 5))

    def fill(samples: MetricSamples) -> None:
        samples.put(table.JOB_ROUNDS, next(rounds), job='tr"ain\n')

    with MetricsServer("0", fill) as server:
        assert server.address.startswith("127.0.0.1:")
        assert scrape(server.address).value(table.JOB_ROUNDS, job='tr"ain\n') == 3
        answer = scrape(server.address)
        assert answer.value(table.JOB_ROUNDS, job='tr"ain\n') == 5
        assert answer.names == {*table.PROCESS_METRICS, table.JOB_ROUNDS.name}


def test_port_that_is_taken_is_a_typed_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MetricsError, match=f"cannot serve metrics at {port}: Address already"):
            MetricsServer(str(port), nothing)


def test_address_of_another_machine_is_a_typed_error() -> None:
    with pytest.raises(MetricsError, match=r"cannot serve metrics at 192\.0\.2\.1:0"):
        MetricsServer("192.0.2.1:0", nothing)


def test_closed_server_answers_no_more_and_may_be_closed_again() -> None:
    server = MetricsServer("0", nothing)
    scrape(server.address)
    server.close()
    server.close()
    with pytest.raises(urllib.error.URLError):
        scrape(server.address)


def test_failed_scrape_is_logged_and_the_next_one_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outcomes = iter((TimeoutError("the loop is busy"), None))

    def fill(samples: MetricSamples) -> None:
        error = next(outcomes)
        if error is not None:
            raise error
        samples.put(table.DATABASE_UP, 1)

    with MetricsServer("0", fill) as server:
        with pytest.raises(OSError, match=r"closed|reset"):
            scrape(server.address)
        assert scrape(server.address).value(table.DATABASE_UP) == 1
    assert "a scrape by 127.0.0.1 failed: MetricsError('this process did not tell" in caplog.text


def test_address_that_others_reach_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with MetricsServer("0", nothing):
        assert not caplog.records
    with MetricsServer("0.0.0.0:0", nothing) as server:
        assert f"whoever reaches {server.address} can read the metrics" in caplog.text


def test_labels_must_be_those_of_the_metric() -> None:
    samples = MetricSamples()
    with pytest.raises(ValueError, match="switchfold_job_rounds_total has the labels"):
        samples.put(table.JOB_ROUNDS, 1)
    with pytest.raises(ValueError, match="switchfold_database_up has the labels"):
        samples.put(table.DATABASE_UP, 1, job="train")
    assert not list(samples)


@pytest.mark.parametrize("metric", table.METRICS, ids=lambda metric: metric.name)
def test_names_and_labels_keep_the_conventions(metric: MetricDefinition) -> None:
    assert re.fullmatch(r"switchfold(_[a-z]+)+", metric.name)
    assert metric.name.endswith("_total") is (metric.kind is MetricKind.COUNTER)
    assert set(metric.labels) <= BOUNDED_LABELS
    assert metric.help
    assert not metric.help.endswith(".")


def test_table_has_every_definition_once() -> None:
    defined = [v for v in vars(table).values() if isinstance(v, MetricDefinition)]
    assert {metric.name for metric in table.METRICS} == {metric.name for metric in defined}
    assert len(table.METRICS) == len(defined) == len({metric.name for metric in defined})
