# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker says when it joins a job, or comes back to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..slots.wire import WIRE_VERSION
from ..straggler import WAIT_FOR_ALL, StragglerPolicy
from .session_api import session_pb2 as api
from .view import UNKNOWN_MAC, Endpoint, JobView

PathChoice = Literal["auto", "switch", "host"]
"""Where a job runs: on switches when they have room, only on switches, only between the hosts."""


@dataclass(frozen=True, kw_only=True)
class JoinRequest:
    """What a worker tells the controller about itself and its job."""

    job: str
    worker_id: int
    num_workers: int
    local: Endpoint
    ingress_port: int | str
    slots_wanted: int = 0
    token: str = field(default="", repr=False)
    switch_name: str = ""
    values_per_packet: int = 0
    timeout_s: float = 0.0
    """How long this worker waits for the others; 0 leaves it to the controller."""
    peer_address: str = ""
    """Where other workers reach this worker's peer server."""
    peer_port: int = 0
    """TCP; 0: no peer server."""
    straggler: StragglerPolicy = WAIT_FOR_ALL
    weight: float = 1.0
    """Share of the slots against other jobs."""
    path: PathChoice = "auto"
    min_workers: int = 1
    """The job ends when fewer are left."""
    is_joining: bool = False
    """May join a running job at a tensor boundary; `num_workers` is then not compared."""
    lease_s: float = 0.0
    """How long this worker may say nothing; 0 leaves it to the controller."""

    def join_request(
        self, resume: JobView | None, proposed: int = 0, secret: bytes = b""
    ) -> api.WorkerMessage:
        """Return the stream's first message; `resume`: the view that this worker is in.

        `proposed`: generation of a proposal that this worker has heard and no commit followed.
        `secret`: what its first join reply gave it for this.
        """
        join_request = api.JoinRequest(
            job_name=self.job,
            worker_id=self.worker_id,
            num_workers=self.num_workers,
            wire_version=WIRE_VERSION,
            values_per_packet=self.values_per_packet,
            address=self.local.address,
            mac=self.local.mac if self.local.mac != UNKNOWN_MAC else "",
            udp_port=self.local.udp_port,
            slots_wanted=self.slots_wanted,
            switch_name=self.switch_name,
            join_timeout_s=self.timeout_s,
            peer_address=self.peer_address,
            peer_port=self.peer_port,
            weight=self.weight,
            path=self.path.upper(),
            min_workers=self.min_workers,
            is_joining=self.is_joining,
            lease_s=self.lease_s,
        )
        if self.straggler.allow_partial:
            join_request.straggler.quorum = self.straggler.quorum or 0
            join_request.straggler.deadline_s = self.straggler.deadline_s or 0.0
        if isinstance(self.ingress_port, str):
            join_request.ingress_port_name = self.ingress_port
        elif self.ingress_port:
            join_request.ingress_port = self.ingress_port
        if resume is not None:
            join_request.resume.job_number = resume.job
            join_request.resume.generation = resume.generation
            join_request.resume.proposed = proposed
            join_request.resume.secret = secret
        return api.WorkerMessage(join_request=join_request)
