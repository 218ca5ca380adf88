# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The check behind `doctor --why-slow`: what limits a running job."""

from __future__ import annotations

from typing import Final

from ...api.operator_client import OperatorClient
from ...errors import OperatorRefusedError
from ..activity.looks import watch_job
from ..activity.processors import ProcessorMeter, testbed_pids
from ..activity.verdict import Limit, judge
from .check import Check, fail, warn

_LIMITED_BY: Final = {
    Limit.LINK: "limited by the link {name}: ",
    Limit.WORKER: "limited by worker {name}: ",
    Limit.WORKERS: "limited by its workers: ",
    Limit.PROCESSOR: "limited by the processor: ",
    Limit.UNKNOWN: "",
}


def check_slow_job(client: OperatorClient, job: str, seconds: float) -> Check:
    """Look at a job for a time, and return what limits it; ControllerUnreachableError."""
    name = f"job {job} slow"
    pids = testbed_pids(client.address)
    meter = None if pids is None else ProcessorMeter(pids)
    try:
        window = watch_job(client, job, seconds)
    except OperatorRefusedError as exc:
        return fail(name, f"cannot tell: {exc}", "ask while the job runs: 'switchfold job list'")
    verdict = judge(window, None if meter is None else meter.figures())
    limited = _LIMITED_BY[verdict.limit].format(name=verdict.name)
    return warn(name, f"{limited}{verdict.text}", verdict.remedy)
