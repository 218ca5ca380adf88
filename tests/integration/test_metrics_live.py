# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a whole testbed while a job sums: controller, switch and workers agree."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import numpy as np

from live_testbed import DEADLINE_S, LiveTestbed
from scraped_metrics import scrape
from switchfold.hostlib.observing import metric_table as table
from switchfold.hostlib.observing.worker_metrics import served_address
from switchfold.hostlib.parameter_server import ClientOptions, ParameterClient
from time_bound import wait_until

NUM_WORKERS = 2
SUMS = 3
VALUES = 4096
ANY_PORT = ("--metrics", "0")


def address_in(text: str) -> str:
    """Return where a process says that it serves its metrics."""
    found = re.search(r"metrics at http://(\S+)/metrics", text)
    assert found is not None, text
    return found[1]


def test_parameter_server_that_runs_as_a_process_is_scraped() -> None:
    command = [
        *(sys.executable, "-m", "switchfold.hostlib.parameter_server", "--insecure"),
        *("--address", "127.0.0.1", "--num-workers", "1", "--job", "7", *ANY_PORT),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            said = re.fullmatch(r"listening on (.*):(\d+)\n", server.stdout.readline())
            assert said is not None
            address = address_in(server.stdout.readline())
            options = ClientOptions(worker_id=0, job=7, insecure=True)
            values = np.ones(VALUES, np.float32)
            with ParameterClient([(said[1], int(said[2]))], options) as client:
                assert (client.push_pull("w", values, 0).result(DEADLINE_S) == values).all()
            seen = scrape(address)
            labels = {"job": "7", "server": "0"}
            assert seen.value(table.SERVER_RECEIVED, **labels) == values.nbytes
            assert seen.value(table.SERVER_SENT, **labels) == values.nbytes
            server.send_signal(signal.SIGTERM)
            assert server.wait(DEADLINE_S) == 0
        finally:
            server.kill()


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
        switch = scrape(address_in((logs / "s1.log").read_text("utf-8")))
        controller_address = address_in((logs / "controller.log").read_text("utf-8"))

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
