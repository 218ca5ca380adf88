# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""JSON logs of a testbed: every line of controller, switch, worker and parameter server."""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from live_testbed import LiveTestbed
from switchfold.hostlib.observing.logs import VARIABLE

AS_JSON = ("--log-format", "json")
WORKER = (
    "import numpy as np; from switchfold.hostlib.config import join_from_environment\n"
    "with join_from_environment() as session:\n"
    "    session.allreduce(np.ones(64, np.float32)).result()\n"
)


def records(text: str) -> list[dict[str, Any]]:
    """Return the records of a log, whose lines that begin with a brace are all of them."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert lines
    for line in lines:
        assert datetime.datetime.fromisoformat(line["time"]).utcoffset() == datetime.timedelta()
        assert line["level"] in ("INFO", "WARNING")
        assert {"logger", "message", "pid"} <= set(line)
    return lines


def test_controller_switch_and_worker_log_json() -> None:
    with LiveTestbed(1, switch_options=AS_JSON, controller_options=AS_JSON) as testbed:
        variables = testbed.made.endpoint(0).environment("train")
        worker = subprocess.run(
            [sys.executable, "-c", WORKER],
            env={**os.environ, **variables, "SWITCHFOLD_NUM_WORKERS": "1", VARIABLE: "json"},
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        folder = testbed.made.run_directory
        controller = (folder / "controller.log").read_text("utf-8")
        switch = (folder / "s1.log").read_text("utf-8")
    assert any("sessions and operators" in each["message"] for each in records(controller))
    assert any("P4Runtime on" in each["message"] for each in records(switch))
    assert any("entered view" in each["message"] for each in records(worker.stderr))
    others = [line for line in (controller + switch).splitlines() if not line.startswith("{")]
    assert all(line.startswith("ready: ") for line in others), others


@pytest.mark.parametrize("options", [(*AS_JSON,), ()])
def test_parameter_server_logs_json(options: tuple[str, ...]) -> None:
    command = [
        *(sys.executable, "-m", "switchfold.hostlib.parameter_server", "--insecure"),
        *("--address", "127.0.0.1", "--num-workers", "1", *options),
    ]
    environment = {**os.environ, VARIABLE: "text" if options else "json"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("listening on")
        server.send_signal(signal.SIGTERM)
        _, log = server.communicate()
    assert server.returncode == 0
    assert any("INSECURE" in each["message"] for each in records(log))
