# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Floats that a node sends and receives in one iteration, by scheme.

A layer is an M x N matrix. K is the batch of a worker; there are P1 workers and P2 shards. Floats
sent plus received:

    scheme            worker             server                  both in one
    PS                2MN                2 P1 MN / P2            2MN (P1 + P2 - 2) / P2
    SFB               2K(P1 - 1)(M + N)  -                       as worker
    Adam, busiest     K(M + N) + MN      P1 MN + P1 K(M + N)     (P1 - 1)(MN + K(M + N))
    INA               2MN                -                       as worker
    INA before PS     2MN                2MN / P2                2MN (P2 + 1) / P2
    PS, multicast     2MN                (P1 + 1) MN / P2        MN (P1 + 2 P2 - 2) / P2
    SFB, multicast    P1 K(M + N)        -                       as worker
    Adam, multicast   K(M + N) + MN      MN + P1 K(M + N)        -

PS, SFB and Adam are reconstructed from what is public about Poseidon (Zhang et al., ATC'17), not
quoted from it. All rows with a switch are ours. These are payload floats; `wire_cost` adds headers
and acknowledgements.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fractions import Fraction

from ..errors import SchemeError
from .cluster import Cluster
from .layer import Layer


class Scheme(enum.Enum):
    """How the workers' gradients of a layer become their sum."""

    PS = "ps"
    """Parameter server: gradients go to the shards, updates come back."""
    SFB = "sfb"
    """Sufficient factors go to every other worker, and each worker rebuilds the sum."""
    INA = "ina"
    """The switch adds the gradients and multicasts the sum."""
    ADAM = "adam"
    """Sufficient factors go to the layer's one server, the whole matrix comes back: a baseline."""
    INA_PS = "ina-ps"
    """The switch adds for the shards and multicasts their answers; in the cost model only."""


@dataclass(frozen=True)
class NodeFloats:
    """Floats that one worker and one server send and receive; a node may be both.

    With Adam, the server is the one that owns the layer.
    """

    worker_sent: float
    worker_received: float
    server_sent: float = 0.0
    server_received: float = 0.0

    @property
    def worker(self) -> float:
        """Floats sent plus received as a worker."""
        return self.worker_sent + self.worker_received

    @property
    def server(self) -> float:
        """Floats sent plus received as a server."""
        return self.server_sent + self.server_received

    @property
    def both(self) -> float:
        """Floats sent plus received by a node that is worker and server."""
        return self.worker + self.server


def check_scheme(scheme: Scheme, layer: Layer) -> None:
    """Raise SchemeError if the scheme sends factors but the layer has none."""
    if scheme in (Scheme.SFB, Scheme.ADAM) and not layer.has_factors:
        raise SchemeError(
            f"layer {layer.name} is of kind {layer.kind!r}: its gradient is no sum of outer"
            f" products, so {scheme.value} cannot carry it; only kind 'fc' has factors"
        )


def floats(scheme: Scheme, layer: Layer, cluster: Cluster) -> NodeFloats:  # noqa: PLR0911 - one formula per scheme
    """Return the floats of one iteration; for SFB those of multicasts if the switch has multicast.

    Raises SchemeError if the scheme sends factors but the layer has none.
    """
    if scheme is Scheme.SFB and cluster.has_multicast:
        return multicast_floats(scheme, layer, cluster)
    check_scheme(scheme, layer)
    values, factors = layer.num_values, _factor_floats(layer, cluster)
    workers, servers = cluster.num_workers, cluster.num_servers
    if scheme is Scheme.SFB:
        return _node(factors * (workers - 1), factors * (workers - 1))
    if scheme is Scheme.INA:
        # With one worker there is nothing to add.
        return _node(*(2 * [values if workers > 1 else 0]))
    if scheme is Scheme.INA_PS:
        share = Fraction(values, servers)
        return _node(values, values, share, share)
    if scheme is Scheme.PS:
        if cluster.is_colocated:
            away = Fraction(values * (servers - 1), servers)
            others = Fraction(values * (workers - 1), servers)
            return _node(away, away, others, others)
        share = Fraction(values * workers, servers)
        return _node(values, values, share, share)
    if cluster.is_colocated:
        # The owner does not send itself factors and matrix; other workers are less busy.
        return _node(0, 0, (workers - 1) * values, (workers - 1) * factors)
    return _node(factors, values, workers * values, workers * factors)


def multicast_floats(scheme: Scheme, layer: Layer, cluster: Cluster) -> NodeFloats:
    """Return the floats if the switch multicasts messages to several receivers (ours).

    PS and Adam are here for comparison; only SFB runs like this. Raises SchemeError for INA, whose
    results are multicasts in any case.
    """
    check_scheme(scheme, layer)
    values, factors = layer.num_values, _factor_floats(layer, cluster)
    workers, servers = cluster.num_workers, cluster.num_servers
    if scheme is Scheme.SFB:
        return _node(factors if workers > 1 else 0, factors * (workers - 1))
    if scheme is Scheme.PS:
        answered = Fraction(values, servers)
        if cluster.is_colocated:
            away = Fraction(values * (servers - 1), servers)
            return _node(away, away, answered, Fraction(values * (workers - 1), servers))
        return _node(values, values, answered, Fraction(values * workers, servers))
    if scheme is Scheme.ADAM:
        if cluster.is_colocated:
            return _node(0, 0, values, (workers - 1) * factors)
        return _node(factors, values, values, workers * factors)
    raise SchemeError(f"{scheme.value} is answered by multicast in any case; use floats")


def busiest_floats(scheme: Scheme, layer: Layer, cluster: Cluster) -> float:
    """Return the floats that the busiest node sends plus receives."""
    node = floats(scheme, layer, cluster)
    return node.both if cluster.is_colocated else max(node.worker, node.server)


@dataclass(frozen=True, kw_only=True)
class HeaderFactors:
    """A cost: the busiest node's floats times wire bytes per payload byte, by transport."""

    ina: float
    """Wire bytes per payload byte of sums on the switch."""
    tcp: float
    """Wire bytes per payload byte of TCP."""

    def __call__(self, scheme: Scheme, layer: Layer, cluster: Cluster) -> float:
        """Return the busiest node's floats with headers counted as floats."""
        factor = self.ina if scheme in (Scheme.INA, Scheme.INA_PS) else self.tcp
        return factor * busiest_floats(scheme, layer, cluster)


def break_even_workers(layer: Layer, cluster: Cluster, other: Scheme = Scheme.PS) -> Fraction:
    """Return the most workers with which SFB moves no more floats than `other`.

    P1 = P2 = P, and shards are co-located. Against PS: 2MN / (K(M + N)). Against INA:
    MN / (K(M + N)) + 1, or 2MN / (K(M + N)) if the switch multicasts the factors. Raises
    SchemeError for layers without factors and for other schemes.
    """
    check_scheme(Scheme.SFB, layer)
    ratio = Fraction(layer.num_values, _factor_floats(layer, cluster))
    if other is Scheme.PS and not cluster.has_multicast:
        return 2 * ratio
    if other is Scheme.INA:
        return 2 * ratio if cluster.has_multicast else ratio + 1
    raise SchemeError(f"the break-even of SFB against {other.value} is unknown")


def _factor_floats(layer: Layer, cluster: Cluster) -> int:
    """Return K(M + N), the floats of one worker's factors."""
    return cluster.batch * (layer.rows + layer.columns)


def _node(*counts: int | Fraction) -> NodeFloats:
    return NodeFloats(*(float(count) for count in counts))
