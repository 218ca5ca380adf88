# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Job and connection of a process group, from the environment of the process."""

from __future__ import annotations

import os
import secrets
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
"""Longest wait for the other ranks' join; all have announced before that they will join."""


def job_name(group_name: str, *, is_default: bool) -> str:
    """Return the job of a process group: SWITCHFOLD_JOB or torchrun's run id, and the group."""
    variables = os.environ
    job = variables.get("SWITCHFOLD_JOB") or variables.get("TORCHELASTIC_RUN_ID") or DEFAULT_JOB
    if is_default:
        return job
    return f"{job}/{group_name}"


def draw_run() -> str:
    """Return a new text that tells a group's job from all others with the same job token.

    torchrun starts ranks again with the same environment, and a process may make many groups.
    """
    return secrets.token_hex(8)


def store_prefix() -> str:
    """Return a prefix that hides what a killed run of the workers has left in the store.

    torchrun's own process may keep one store over all restarts of its workers, and PyTorch's Gloo
    would then connect to processes of an earlier run. Each machine counts its own restarts, so a
    group over several machines gets no prefix: it needs TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1.
    """
    variables = os.environ
    if variables.get("LOCAL_WORLD_SIZE", "") != variables.get("WORLD_SIZE"):
        return ""
    return f"run {variables.get('TORCHELASTIC_RESTART_COUNT', '0')}"


class GroupPlace:
    """One rank's place in a job. Raises ConfigurationError if SWITCHFOLD_PLACES is wrong."""

    def __init__(
        self, job: str, rank: int, num_ranks: int, process: int | None = None, *, run: str = ""
    ) -> None:
        """Read the environment; `process` is the rank in the default group, if `rank` is not.

        `run`: a text of this group alone, the same on all ranks (`SessionOptions.job_run`).
        """
        self._run = run
        self._variables: Mapping[str, str] = {
            # The caller asked for the sum over all ranks.
            "SWITCHFOLD_MIN_WORKERS": str(num_ranks),
            **place_variables(os.environ, rank if process is None else process),
            "SWITCHFOLD_JOB": job,
            "SWITCHFOLD_WORKER_ID": str(rank),
            "SWITCHFOLD_NUM_WORKERS": str(num_ranks),
            "SWITCHFOLD_JOINING": "0",
        }

    def open_transport(self) -> Transport:
        """Open the transport; raises ConfigurationError or TransportError.

        The error names all missing variables of the transport and of the job.
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
        """Join the job with an open transport; waits while an earlier run of the job ends.

        Raises JoinError and its subclasses, ConfigurationError, TransportError.
        """
        timeout_s = timeout.total_seconds()
        options = SessionOptions(
            timeout_s=timeout_s,
            lease_s=timeout_s,
            nonfinite="propagate",
            join_timeout_s=min(timeout_s, ARRIVAL_S),
            taken_wait_s=timeout_s,
            straggler=straggler,
            job_run=self._run,
        )
        try:
            return join_from_environment(options, variables=self._variables, transport=transport)
        except ConfigurationError:
            transport.close()
            raise


def peer_address(rank: int) -> str:
    """Return the address at which other ranks reach this one by TCP.

    It is SWITCHFOLD_PEER_ADDRESS, else the address that faces MASTER_ADDR. `rank` is the rank in
    the default group.
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


def gloo_address(rank: int) -> str:
    """Return this host's address for Gloo's connections, "" where Gloo shall choose.

    Gloo looks the host's name up, which most distributions have as 127.0.1.1: ranks on other hosts
    then connect to themselves. GLOO_SOCKET_IFNAME takes precedence.
    """
    if os.environ.get("GLOO_SOCKET_IFNAME"):
        return ""
    address = peer_address(rank)
    return "" if address.startswith("127.") or address == "localhost" else address
