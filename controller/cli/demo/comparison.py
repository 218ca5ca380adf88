# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What the switch is compared with: the allreduce of the same hosts among themselves, over TCP.

Both sum the same gradients alone, without training, one after the other in one testbed; workers
verify each sum. In mode veth both take the same links, and the switch counts the bytes of both on
its ports. In mode udp the hosts reach each other over loopback, and the switch counts its own.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import numpy as np

from ....bmv2_topos import Testbed
from ....hostlib.hosts import LinkCosts
from ...api.operator_client import OperatorClient
from .alone_worker import NUM_SUMS, NUM_WARM
from .errors import DemoError
from .perceptron import NUM_PARAMETERS
from .record import HostComparison, SumsAlone, WorkerLinkBytes, link_bytes

TIMEOUT_S: Final = 120.0


def compare(testbed: Testbed, operator: OperatorClient) -> HostComparison:
    """Measure both in a testbed of one switch and two hosts or more.

    Raises:
        DemoError: a worker failed, or a sum was wrong.
    """
    return HostComparison(
        switch=_sums_alone(testbed, operator, "switch"),
        hosts=_sums_alone(testbed, operator, "host"),
        algorithm=LinkCosts().choose(len(testbed.topology.hosts), NUM_PARAMETERS),
    )


def _sums_alone(testbed: Testbed, operator: OperatorClient, path: str) -> SumsAlone:
    num_workers = len(testbed.topology.hosts)
    folder = testbed.run_directory
    files = [folder / f"alone-{path}-{worker}.npy" for worker in range(num_workers)]
    before = operator.show_switch(testbed.switch.name)
    results = testbed.run_workers(
        lambda endpoint: _command(files[endpoint.worker_id]),
        job=f"alone-{path}",
        timeout_s=TIMEOUT_S,
        environment={"SWITCHFOLD_PATH": path, "OMP_NUM_THREADS": "1"},
    )
    after = operator.show_switch(testbed.switch.name)
    failed = [result for result in results if result.exit_status != 0]
    if failed:
        raise DemoError(f"sums by the {path} failed:\n{failed[0].output[-800:]}")
    sums = NUM_WARM + NUM_SUMS
    is_counted = path == "switch" or testbed.mode == "veth"
    links = [
        WorkerLinkBytes(
            host=link.host, to_switch=link.to_switch // sums, from_switch=link.from_switch // sums
        )
        for link in (link_bytes(before, after) if is_counted else [])
    ]
    return SumsAlone(times_s=np.array([np.load(file) for file in files]), links=links)


def _command(file: Path) -> list[str]:
    return [sys.executable, "-m", "switchfold.controller.cli.demo.alone_worker", str(file)]
