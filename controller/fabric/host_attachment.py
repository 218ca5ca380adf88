# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Configured hosts as workers of a job that does not exist yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..config import ControllerConfig
from ..errors import ConfigError


@dataclass(frozen=True)
class HostAttachment:
    """The port of a host's worker."""

    worker_id: int
    switch: str
    port: int


def attach_hosts(config: ControllerConfig, names: Sequence[str] = ()) -> list[HostAttachment]:
    """Return workers 0, 1, ... on the named hosts, or on all; ConfigError for an unknown one."""
    places = {
        host.name: (switch.name, host.port) for switch in config.switches for host in switch.hosts
    }
    unknown = [name for name in names if name not in places]
    if unknown:
        known = ", ".join(places) or "none"
        raise ConfigError(f"no host {', '.join(unknown)}; hosts in the configuration: {known}")
    chosen = names or list(places)
    if not chosen:
        raise ConfigError("the configuration lists no host; add [[switch.host]]")
    if len(set(chosen)) != len(chosen):
        raise ConfigError("a host is named twice")
    return [HostAttachment(worker_id, *places[name]) for worker_id, name in enumerate(chosen)]
