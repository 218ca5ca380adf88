# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The cheapest scheme for a layer: the reconstructed two-way rule and our three-way rule."""

from __future__ import annotations

from collections.abc import Callable

from .cluster import Cluster
from .cost import Scheme, floats
from .layer import Layer
from .wire_cost import seconds

Cost = Callable[[Scheme, Layer, Cluster], float]
"""A cost of which less is better: `seconds`, `busiest_floats`, `HeaderFactors`."""


def two_way(layer: Layer, cluster: Cluster) -> Scheme:
    """Choose between PS and SFB by the floats of a node that is worker and server.

    SFB if the layer is fully connected and 2K(P1 - 1)(M + N) <= 2MN(P1 + P2 - 2)/P2. The rule is
    reconstructed from public accounts of Poseidon (ATC'17). It ignores headers, latency and where
    shards really run.
    """
    if not layer.has_factors:
        return Scheme.PS
    plain = cluster.replace(is_colocated=True, has_multicast=False)
    if floats(Scheme.SFB, layer, plain).worker <= floats(Scheme.PS, layer, plain).both:
        return Scheme.SFB
    return Scheme.PS


def candidates(layer: Layer, cluster: Cluster) -> tuple[Scheme, ...]:
    """Return the schemes that can carry the layer; in a tie the first one wins."""
    found = [Scheme.PS]
    if cluster.can_aggregate:
        found.append(Scheme.INA)
    if layer.has_factors:
        found.append(Scheme.SFB)
    return tuple(found)


def three_way(layer: Layer, cluster: Cluster, cost: Cost = seconds) -> Scheme:
    """Choose among PS, INA (a switch with free slots) and SFB (a fully connected layer); ours.

    The least cost wins; in a tie PS comes before INA and INA before SFB.
    """
    return min(candidates(layer, cluster), key=lambda scheme: cost(scheme, layer, cluster))
