# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Input and output of a benchmark's workers: their arguments, and a last line of JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Any

from switchfold.bmv2_topos import Testbed
from switchfold.bmv2_topos.errors import TestbedError
from switchfold.bmv2_topos.processes.processes import read_records
from switchfold.bmv2_topos.processes.worker_runs import WorkerResult


def switch_pids(testbed: Testbed) -> str:
    """Return the pids of all switches, separated by commas; a bridge of the kernel has none."""
    names = {switch.name for switch in testbed.topology.switches}
    records = read_records(testbed.run_directory)
    return ",".join(str(record.pid) for record in records if record.name in names)


def add_sum_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a benchmark that times sums of one tensor by several contenders."""
    parser.add_argument(
        "--rate", default="100M", help="rate of each link, default 100M bit/s; none"
    )
    parser.add_argument(
        "--bytes", type=int, default=16_000_000, help="size of the float32 tensor, default 16 MB"
    )
    parser.add_argument(
        "--repeats", type=int, default=5, help="sums by each contender, after one warm-up"
    )


def sum_arguments(options: argparse.Namespace, testbed: Testbed) -> list[str]:
    """Return the arguments that every worker takes that times sums by several contenders."""
    return [
        *("--bytes", str(options.bytes), "--repeats", str(options.repeats)),
        *("--timeout", str(options.timeout)),
        *("--rendezvous", str(testbed.run_directory / "gloo-rendezvous")),
        *("--switch-pids", switch_pids(testbed)),
    ]


def outputs(results: Iterable[WorkerResult]) -> list[dict[str, Any]]:
    """Return the JSON of each worker's last line; TestbedError shows the output of a failed one."""
    found: list[dict[str, Any]] = []
    for result in results:
        if result.exit_status != 0:
            raise TestbedError(
                f"worker {result.worker_id} ended with status {result.exit_status}:\n"
                f"{result.output[-3000:]}"
            )
        found.append(json.loads(result.output.splitlines()[-1]))
    return found
