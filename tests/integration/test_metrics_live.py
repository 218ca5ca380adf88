# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a whole testbed while a job sums: controller, switch and workers agree."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from live_testbed import DEADLINE_S, LiveTestbed
from scraped_metrics import scrape
from switchfold.hostlib.observing import metric_table as table
from switchfold.hostlib.observing.worker_metrics import served_address
from time_bound import wait_until

NUM_WORKERS = 2
SUMS = 3
VALUES = 4096
ANY_PORT = ("--metrics", "0")


def address_in(log: Path) -> str:
    """Return where a process says that it serves its metrics."""
    found = re.search(r"metrics at http://(\S+)/metrics", log.read_text("utf-8"))
    assert found is not None, log.read_text("utf-8")
    return found[1]


def test_job_is_seen_by_all_processes() -> None:
    with (
        LiveTestbed(NUM_WORKERS, switch_options=ANY_PORT, controller_options=ANY_PORT) as testbed,
        testbed.sessions(NUM_WORKERS, metrics="0") as sessions,
    ):
        for _ in range(SUMS):
            futures = [session.allreduce(np.ones(VALUES, np.float32)) for session in sessions]
            for future in futures:
                assert (future.result(DEADLINE_S) == NUM_WORKERS).all()
        logs = testbed.made.run_directory
        switch = scrape(address_in(logs / "s1.log"))
        controller_address = address_in(logs / "controller.log")

        def is_counted() -> bool:
            """The controller reads the switch's counters every 2 s."""
            controller = scrape(controller_address)
            sent = controller.values(table.LINK_BYTES, link="h1-s1", sender="h1")
            rounds = controller.value(table.JOB_ROUNDS, job="train")
            return rounds >= SUMS * VALUES // 32 and sent[0] > SUMS * VALUES * 4

        def have_ended() -> bool:
            """A worker counts a sum right after its result is there."""
            ended = scrape(served_address("0")).values(table.WORKER_TENSORS, outcome="completed")
            return ended == [SUMS] * NUM_WORKERS

        wait_until(is_counted, "the sums in the controller's metrics")
        wait_until(have_ended, "the sums in the workers' metrics")
        controller = scrape(controller_address)
        workers = scrape(served_address("0"))

    assert controller.value(table.CONTROLLER_LEADER) == 1
    assert controller.value(table.JOB_WORKERS, job="train") == NUM_WORKERS
    assert switch.value(table.PORT_BYTES, port="1", direction="in") > SUMS * VALUES * 4
    for worker in map(str, range(NUM_WORKERS)):
        labels = {"job": "train", "worker": worker}
        sent = workers.value(table.WORKER_PACKETS, stream="value", event="sent", **labels)
        assert sent >= SUMS * VALUES // 32
        assert workers.value(table.WORKER_TENSOR_BYTES, **labels) == SUMS * VALUES * 4
        assert workers.value(table.WORKER_EXCHANGE, **labels) > 0
