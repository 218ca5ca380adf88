# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Clusters of 8 to 1,000 workers whose servers are equally short of bandwidth."""

from __future__ import annotations

from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.traces import ComputeSetting, LinkSetting

OVERSUBSCRIPTION = 8
"""Rate of all workers' links over that of all servers'."""
MOST_WORKERS_OF_ONE_SERVER = 32
"""Larger clusters have two servers, with half of the model each."""


def cluster_of(
    num_workers: int,
    *,
    seed: int = 0,
    links: LinkSetting = LinkSetting.EVEN,
    computing: ComputeSetting = ComputeSetting.EVEN,
    has_models: bool = True,
) -> Scenario:
    """Return a cluster: 100 Mbit/s for each worker, an eighth of their sum for all servers."""
    servers = 1 if num_workers <= MOST_WORKERS_OF_ONE_SERVER else 2
    plain = Scenario(num_workers=num_workers, seed=seed)
    rate = max(1, num_workers * plain.link_bits_per_s // (OVERSUBSCRIPTION * servers))
    return Scenario(
        num_workers=num_workers,
        seed=seed,
        num_servers=servers,
        server_link_bits_per_s=rate,
        links=links,
        computing=computing,
        has_models=has_models,
    )
