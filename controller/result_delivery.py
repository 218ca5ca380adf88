# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Twin of result_delivery.p4: multicast group of a job and table `worker_address`."""

from __future__ import annotations

import ipaddress

from finsy import Action, Match, P4MulticastGroupEntry, P4TableEntry

from controller.job import Job, WorkerId

TABLES = ("worker_address",)


def replica_id(worker_id: WorkerId) -> int:
    """Return the instance of a worker's multicast replica (0 is not a replica)."""
    return worker_id + 1


def multicast_group(job: Job) -> P4MulticastGroupEntry:
    """Return the group that carries a job's results: one replica per worker."""
    return P4MulticastGroupEntry(
        job.job_id,
        replicas=[(worker.port, replica_id(worker.worker_id)) for worker in job.workers],
    )


def table_entries(job: Job) -> list[P4TableEntry]:
    """Return the entries that address each replica of a result to its worker."""
    return [
        P4TableEntry(
            "worker_address",
            match=Match(job_id=job.job_id, replica_id=replica_id(worker.worker_id)),
            action=Action(
                "set_worker_address",
                mac=worker.mac,
                address=int(ipaddress.IPv4Address(worker.address)),
                udp_port=worker.udp_port,
            ),
        )
        for worker in job.workers
    ]
