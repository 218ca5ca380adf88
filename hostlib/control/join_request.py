# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker tells the controller when it joins a job, or resumes its membership."""

from __future__ import annotations

from dataclasses import dataclass

from ..credentials.tokens import token_problem
from ..errors import ConfigurationError
from ..options import SessionOptions
from ..slots.wire import WIRE_VERSION
from ..straggler import WAIT_FOR_ALL
from .session_api import session_pb2 as api
from .view import UNKNOWN_MAC, Endpoint, JobView


@dataclass(frozen=True, kw_only=True)
class JoinRequest:
    """What a worker tells the controller about itself and its job."""

    job: str
    worker_id: int
    num_workers: int
    local: Endpoint
    peers: tuple[str, int] = ("", 0)
    """Where other workers reach this worker's peer server: host and TCP port; 0: it has none."""
    options: SessionOptions

    def __post_init__(self) -> None:
        """Raise ConfigurationError for a job token that cannot be sent."""
        if problem := token_problem(self.options.job_token):
            raise ConfigurationError(f"job {self.job!r}: the job token {problem}")

    def join_request(
        self, resume: JobView | None, proposed: int = 0, secret: bytes = b""
    ) -> api.WorkerMessage:
        """Return the stream's first message; `resume`: the view that this worker is in.

        `proposed`: generation of a proposal that this worker has heard and no commit followed.
        `secret`: what its first join reply gave it for this.
        """
        options = self.options
        peer_address, peer_port = self.peers
        join_request = api.JoinRequest(
            job_name=self.job,
            worker_id=self.worker_id,
            num_workers=self.num_workers,
            wire_version=WIRE_VERSION,
            values_per_packet=options.values_per_packet,
            address=self.local.address,
            mac=self.local.mac if self.local.mac != UNKNOWN_MAC else "",
            udp_port=self.local.udp_port,
            slots_wanted=options.slots_wanted,
            switch_name=options.switch_name,
            join_timeout_s=options.join_timeout_s,
            peer_address=peer_address,
            peer_port=peer_port,
            weight=options.weight,
            path=options.path.upper(),
            min_workers=options.min_workers,
            is_joining=options.is_joining,
            lease_s=options.asked_lease_s,
            job_token=options.job_token,
            job_run=options.job_run,
            max_priority=options.max_priority,
        )
        if options.straggler != WAIT_FOR_ALL:
            join_request.straggler.quorum = options.straggler.quorum or 0
            join_request.straggler.deadline_s = options.straggler.deadline_s or 0.0
            if (tolerance := options.straggler.tolerance) is not None:
                join_request.straggler.tolerance.loss = tolerance.loss
                join_request.straggler.tolerance.worker_floor = tolerance.least_of_worker
                join_request.straggler.tolerance.stale = tolerance.stale
        if isinstance(options.ingress_port, str):
            join_request.ingress_port_name = options.ingress_port
        elif options.ingress_port:
            join_request.ingress_port = options.ingress_port
        if resume is not None:
            join_request.resume.job_number = resume.job
            join_request.resume.generation = resume.generation
            join_request.resume.proposed = proposed
            join_request.resume.secret = secret
        return api.WorkerMessage(join_request=join_request)
