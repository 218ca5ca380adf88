# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A Mininet network of our switches from start to stop; run as a script, as root.

Usage: mininet_fabric.py TARGET RUN_DIRECTORY WORKER_ARGUMENT...
Prints a JSON object: the loss of all pings, the shapers, and the output of each worker.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from switchfold.bmv2_topos import leaf_spine
from switchfold.bmv2_topos.mininet_adapter import FabricNet

DEADLINE_S = 120


def main(target: Any, run_directory: Path, worker: list[str]) -> None:
    topology = leaf_spine(
        2, 1, 1, host_rate_bits_per_s=100_000_000, uplink_rate_bits_per_s=50_000_000
    )
    with FabricNet(topology, run_directory=run_directory, target=target, variant="narrow") as net:
        lost_percent = net.pingAll(timeout="60")
        shapers = {
            node.name: node.cmd("tc qdisc show dev", node.intfNames()[-1])
            for node in (net.get("h1"), net.get("s1"))
        }
        started = [
            net.get(host.name).popen(worker, env=net.environment(host.worker_id, job="sum"))
            for host in topology.hosts
        ]
        said = [process.communicate(timeout=DEADLINE_S)[0].decode() for process in started]
    print(json.dumps({"lost_percent": lost_percent, "said": said, "shapers": shapers}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
