# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Twin of worker_admission.p4: tables `job` and `worker` say whose packets reach a slot."""

from __future__ import annotations

import ipaddress

from finsy import Action, Match, P4TableEntry

from controller.job import Job

TABLES = ("worker", "job")
"""In the order of insertion: a job is admitted after its workers."""


def table_entries(job: Job) -> list[P4TableEntry]:
    """Return the entries that admit a running job, in the order of insertion."""
    entries = [
        P4TableEntry(
            "worker",
            match=Match(
                job_id=job.job_id,
                worker_id=worker.worker_id,
                ingress_port=worker.port,
                source_address=int(ipaddress.IPv4Address(worker.address)),
            ),
            action=Action("admit_worker", worker_bit=1 << worker.worker_id),
        )
        for worker in job.workers
    ]
    entries.append(
        P4TableEntry(
            "job",
            match=Match(job_id=job.job_id),
            action=Action(
                "admit_job",
                generation=job.generation,
                slot_base=job.slot_base,
                slot_count=job.slot_count,
                num_workers=job.num_workers,
                multicast_group_id=job.job_id,
                allow_partial=int(job.allow_partial),
            ),
        )
    )
    return entries
