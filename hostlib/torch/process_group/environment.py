# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which job a process group joins, and how: from the process's environment."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from datetime import timedelta

from ...config import (
    check_environment,
    join_from_environment,
    place_variables,
    transport_from_environment,
)
from ...errors import ConfigurationError
from ...options import SessionOptions
from ...session import Session
from ...straggler import WAIT_FOR_ALL, StragglerPolicy
from ...transports.base import Transport

DEFAULT_JOB = "torch"
ARRIVAL_S = 60.0
"""Longest wait for the other ranks' join; all have said before that they are about to."""


def job_name(group_name: str, *, is_default: bool) -> str:
    """Return the job of a process group: SWITCHFOLD_JOB, or torchrun's run id, and the group."""
    variables = os.environ
    job = variables.get("SWITCHFOLD_JOB") or variables.get("TORCHELASTIC_RUN_ID") or DEFAULT_JOB
    if is_default:
        return job
    return f"{job}/{group_name}"


def store_prefix() -> str:
    """Return what keeps a process group from reading what a killed life of it left in the store.

    torchrun's own process may keep one store over all lives of its workers, and PyTorch's Gloo
    would then connect to the dead. Machines count lives each for itself, so that several machines
    get no prefix: they need TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1.
    """
    variables = os.environ
    if variables.get("LOCAL_WORLD_SIZE", "") != variables.get("WORLD_SIZE"):
        return ""
    return f"life {variables.get('TORCHELASTIC_RESTART_COUNT', '0')}"


class GroupPlace:
    """One rank's place in a job. Raises ConfigurationError where SWITCHFOLD_PLACES is wrong."""

    def __init__(self, job: str, rank: int, num_ranks: int, process: int | None = None) -> None:
        """Read it; `process` is the rank in the default group, where `rank` is not."""
        self._variables: Mapping[str, str] = {
            # The sum over fewer ranks is not what the caller asked for.
            "SWITCHFOLD_MIN_WORKERS": str(num_ranks),
            **place_variables(os.environ, rank if process is None else process),
            "SWITCHFOLD_JOB": job,
            "SWITCHFOLD_WORKER_ID": str(rank),
            "SWITCHFOLD_NUM_WORKERS": str(num_ranks),
            "SWITCHFOLD_JOINING": "0",
        }

    def open_transport(self) -> Transport:
        """Open the transport; raises ConfigurationError or TransportError.

        Names all variables that are missing, of the transport and of the job.
        """
        check_environment(self._variables)
        return transport_from_environment(self._variables)

    def join(
        self,
        transport: Transport,
        timeout: timedelta,
        *,
        straggler: StragglerPolicy = WAIT_FOR_ALL,
    ) -> Session:
        """Join the job with an open transport; waits while an earlier life of the job ends.

        Raises JoinError and its kinds, ConfigurationError, TransportError.
        """
        timeout_s = timeout.total_seconds()
        options = SessionOptions(
            timeout_s=timeout_s,
            lease_s=timeout_s,
            nonfinite="propagate",
            join_timeout_s=min(timeout_s, ARRIVAL_S),
            taken_wait_s=timeout_s,
            straggler=straggler,
        )
        try:
            return join_from_environment(options, variables=self._variables, transport=transport)
        except ConfigurationError:
            transport.close()
            raise


def peer_address(rank: int) -> str:
    """Return where other ranks reach this one, `rank` of the default group, by TCP.

    SWITCHFOLD_PEER_ADDRESS says it; else it is the address that faces MASTER_ADDR.
    """
    given = place_variables(os.environ, rank).get("SWITCHFOLD_PEER_ADDRESS", "")
    if given:
        return given
    loopback = "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((os.environ.get("MASTER_ADDR", loopback), 9))  # no packet leaves
        except OSError:
            return loopback
        return str(probe.getsockname()[0])
