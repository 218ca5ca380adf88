# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Environment and places that torch.distributed and torchrun need to launch workers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ..network.namespaces import call_in_namespace
from .free_ports import free_port
from .worker_runs import WorkerEndpoint

PLACES_FILE: Final = "places.json"
"""Name of a testbed's list of places, in its run directory."""
_JOB_VARIABLES: Final = ("SWITCHFOLD_JOB", "SWITCHFOLD_WORKER_ID", "SWITCHFOLD_NUM_WORKERS")


def rank_variables(
    endpoints: Sequence[WorkerEndpoint], namespaces: Sequence[str | None]
) -> list[dict[str, str]]:
    """Return RANK, WORLD_SIZE, MASTER_ADDR and the like for one process on each endpoint.

    A rank is an index in `endpoints`. The processes meet on the first one's host, on a TCP port
    that is free there now. The variables also name the interface that Gloo uses.
    """
    first = endpoints[0]
    address = first.host.address if first.mode == "veth" else "127.0.0.1"
    port = _port_at(address, namespaces[0])
    return [
        {
            "RANK": str(rank),
            "WORLD_SIZE": str(len(endpoints)),
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
            "MASTER_ADDR": address,
            "MASTER_PORT": str(port),
            "GLOO_SOCKET_IFNAME": endpoint.host.interface if endpoint.mode == "veth" else "lo",
        }
        for rank, endpoint in enumerate(endpoints)
    ]


def write_places(path: Path, endpoints: Sequence[WorkerEndpoint]) -> None:
    """Write the places of `SWITCHFOLD_PLACES`: a worker's variables by local rank, without a job.

    Only for endpoints that every process of this machine can use: those of mode udp.
    """
    places: list[Mapping[str, str]] = []
    for endpoint in endpoints:
        variables = endpoint.environment("")
        places.append({key: variables[key] for key in variables if key not in _JOB_VARIABLES})
    path.write_text(json.dumps(places, indent=1) + "\n")


def _port_at(address: str, namespace: str | None) -> int:
    def find() -> int:
        return free_port(address=address)

    return call_in_namespace(namespace, find) if namespace else find()
