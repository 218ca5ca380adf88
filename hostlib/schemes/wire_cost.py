# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Wire bytes of a scheme per direction of a network card, and the time that they take; ours.

- INA sends a frame up and a frame down for every chunk, whether its lanes are full or not. Float
  tensors need one more value per chunk, the exponent.
- SFB by multicast sends a frame up per chunk and gets as many from each other worker, besides
  reports of the received chunks.
- PS, Adam and SFB by streams send messages over TCP. TCP cuts them into segments, and the receiver
  acknowledges every second one.

The time is that of the busiest direction's bytes at the link's rate, plus RTTs that nothing hides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ..allgather.block_exchange import DELAY_SHARE, MIN_DELAY_S, largest_window
from ..factors.block import PREFIX_WORDS
from ..options import SessionOptions
from ..parameter_server.layout import PAIR_BYTES
from ..peers.frames import HEADER_BYTES as MESSAGE_BYTES
from ..slots import wire
from ..slots.switch_reducer import split_slots
from .cluster import Cluster
from .cost import NodeFloats, Scheme, floats
from .layer import Layer
from .tcp import contention, stream_bytes

ROUNDS: Final = {
    Scheme.PS: 1.0,
    Scheme.SFB: 0.5,
    Scheme.INA: 2.0,
    Scheme.ADAM: 1.0,
    Scheme.INA_PS: 3.0,
}
"""Consecutive RTTs: PS and Adam get an answer, SFB only sends, INA sends exponents first."""
REPORTS_PER_WINDOW: Final = 1.5
"""Measured for multicast blocks without loss: one or two, because reports wait for half an RTT."""


@dataclass(frozen=True)
class NodeBytes:
    """Bytes of Ethernet frames through the network cards of a worker's and a server's host.

    If servers run on the workers' hosts, `worker_...` counts all bytes of a host.
    """

    worker_sent: float
    worker_received: float
    server_sent: float = 0.0
    server_received: float = 0.0

    @property
    def busiest(self) -> float:
        """Bytes in the busier direction of the busiest card."""
        return max(self.worker_sent, self.worker_received, self.server_sent, self.server_received)


def ina_frames(num_values: int, values_per_packet: int, *, is_float: bool = True) -> int:
    """Return the frames of an allreduce in each direction: chunks of values and of exponents."""
    chunks = -(-num_values // values_per_packet)
    return chunks + (-(-chunks // values_per_packet) if is_float else 0)


def block_reports(num_chunks: int, num_others: int) -> float:
    """Return the number of reports that a worker sends in an exchange of blocks without loss.

    One report comes at the end. It is not needed with only one other worker, whose next block's
    chunks acknowledge all. More reports open full windows of a session with default options.
    """
    window = largest_window(SessionOptions().window, num_others)
    return REPORTS_PER_WINDOW * (num_chunks // window) + (num_others > 1)


def wire_bytes(scheme: Scheme, layer: Layer, cluster: Cluster) -> NodeBytes:
    """Return the bytes through the cards in one iteration; SchemeError as `floats`."""
    node = floats(scheme, layer, cluster)
    if cluster.num_workers == 1 and (cluster.is_colocated or scheme in _AMONG_WORKERS):
        return NodeBytes(0.0, 0.0)
    if scheme in (Scheme.INA, Scheme.INA_PS):
        return _switch_bytes(scheme, layer, cluster)
    if scheme is Scheme.SFB and cluster.has_multicast:
        frame = wire.frame_bytes(cluster.values_per_packet)
        words = int(node.worker_sent) + PREFIX_WORDS
        chunks = ina_frames(words, cluster.values_per_packet, is_float=False)
        frames = chunks + block_reports(chunks, cluster.num_workers - 1)
        return NodeBytes(frames * frame, frames * frame * (cluster.num_workers - 1))
    return _stream_bytes(scheme, layer, cluster, node)


_AMONG_WORKERS: Final = (Scheme.SFB, Scheme.INA)


def _switch_bytes(scheme: Scheme, layer: Layer, cluster: Cluster) -> NodeBytes:
    frame = wire.frame_bytes(cluster.values_per_packet)
    each_way = float(ina_frames(layer.num_values, cluster.values_per_packet) * frame)
    if scheme is Scheme.INA:
        return NodeBytes(each_way, each_way)
    share = each_way / cluster.num_servers
    if cluster.is_colocated:
        return NodeBytes(each_way + share, each_way + share)
    return NodeBytes(each_way, each_way, share, share)


def _stream_bytes(scheme: Scheme, layer: Layer, cluster: Cluster, node: NodeFloats) -> NodeBytes:
    """Split floats over TCP streams, one to each other host, and add acknowledgements."""
    workers, servers = cluster.num_workers, cluster.num_servers
    if scheme is Scheme.SFB:
        one = 4 * node.worker_sent / (workers - 1)
        there, back = stream_bytes(one + MESSAGE_BYTES + len(layer.name.encode()))
        each_way = (workers - 1) * (there + back)
        return NodeBytes(each_way, each_way)
    if scheme is Scheme.ADAM:
        up = stream_bytes(4.0 * cluster.batch * (layer.rows + layer.columns) + MESSAGE_BYTES)
        down = stream_bytes(float(layer.num_bytes + MESSAGE_BYTES * _pairs(layer.num_bytes)))
        sent, received = up[0] + down[1], down[0] + up[1]
        others = workers - 1 if cluster.is_colocated else workers
        if cluster.is_colocated:
            return NodeBytes(received * others, sent * others)
        return NodeBytes(sent, received, received * others, sent * others)
    share = layer.num_bytes / servers
    there, back = stream_bytes(share + MESSAGE_BYTES * _pairs(share))
    # Gradients and updates are streams of equal size, each acknowledged in the other direction.
    both = there + back
    if cluster.is_colocated:
        each_way = both * (servers - 1) + both * (workers - 1)
        return NodeBytes(each_way, each_way)
    return NodeBytes(both * servers, both * servers, both * workers, both * workers)


def _pairs(num_bytes: float) -> int:
    return max(1, math.ceil(num_bytes / PAIR_BYTES))


@dataclass(frozen=True)
class ExchangeTime:
    """Time of a layer's exchange on idle links."""

    transfer_s: float
    """Time in which it occupies the busiest link direction or processor; these cannot overlap."""
    latency_s: float
    """Additional waiting time; consecutive exchanges share it."""

    @property
    def seconds(self) -> float:
        """Time from start to end."""
        return self.transfer_s + self.latency_s


def seconds(scheme: Scheme, layer: Layer, cluster: Cluster) -> float:
    """Return the time of a layer's exchange on idle links; SchemeError as `floats`."""
    return exchange_time(scheme, layer, cluster).seconds


def exchange_time(scheme: Scheme, layer: Layer, cluster: Cluster) -> ExchangeTime:
    """Return the time of a layer's exchange; SchemeError as `floats`.

    It is the time of the busiest direction's bytes plus RTTs. INA is limited to one chunk per slot
    and RTT. Long TCP streams share a card unevenly. SFB takes the faster of streams and multicasts,
    if the switch has multicast. A dedicated server answers a KV pair after the pair's last
    gradient, so the last pair's time counts as latency.
    """
    if cluster.num_workers == 1 and (cluster.is_colocated or scheme in _AMONG_WORKERS):
        return ExchangeTime(0.0, 0.0)
    if scheme is Scheme.SFB:
        return factor_time(layer, cluster, is_copied=goes_by_multicast(layer, cluster))
    node = wire_bytes(scheme, layer, cluster)
    transfer_s = 8 * node.busiest / cluster.link_bits_per_s
    latency_s = ROUNDS[scheme] * cluster.round_trip_s
    if scheme in (Scheme.INA, Scheme.INA_PS):
        return ExchangeTime(max(transfer_s, _slot_limit_s(layer, cluster)), latency_s)
    share = layer.num_bytes / (1 if scheme is Scheme.ADAM else cluster.num_servers)
    transfer_s *= contention(share, _streams(cluster))
    if scheme is Scheme.PS and not cluster.is_colocated:
        latency_s += transfer_s / _pairs(layer.num_bytes / cluster.num_servers)
    elif scheme is Scheme.ADAM:
        # The server sends the matrix only after it has received all factors.
        directions = (node.server_sent, node.server_received)
        if cluster.is_colocated:
            directions = (node.worker_sent, node.worker_received)
        latency_s += 8 * min(directions) / cluster.link_bits_per_s
    return ExchangeTime(transfer_s, latency_s)


def factor_time(layer: Layer, cluster: Cluster, *, is_copied: bool) -> ExchangeTime:
    """Return the time of SFB by streams or, if `is_copied`, by multicasts; SchemeError as `floats`.

    Multicasts are limited to a window per RTT plus the wait for the report that opens the next one.
    The time to rebuild the others' gradients is added if the cluster's `flops_per_s` is finite.
    """
    if cluster.num_workers == 1:
        return ExchangeTime(0.0, 0.0)
    node = wire_bytes(Scheme.SFB, layer, cluster.replace(has_multicast=is_copied))
    transfer_s = 8 * node.busiest / cluster.link_bits_per_s
    if is_copied:
        transfer_s = max(transfer_s, _window_limit_s(layer, cluster))
    else:
        one = 4 * cluster.batch * (layer.rows + layer.columns)
        transfer_s *= contention(one, _streams(cluster))
    flops = 2 * cluster.batch * layer.num_values * (cluster.num_workers - 1)
    return ExchangeTime(
        transfer_s + flops / cluster.flops_per_s, ROUNDS[Scheme.SFB] * cluster.round_trip_s
    )


def goes_by_multicast(layer: Layer, cluster: Cluster) -> bool:
    """Return whether a layer's factors are faster by multicast than by streams."""
    if not cluster.has_multicast:
        return False
    multicast, streams = (factor_time(layer, cluster, is_copied=each) for each in (True, False))
    return multicast.seconds < streams.seconds


def _window_limit_s(layer: Layer, cluster: Cluster) -> float:
    """Return the time of full windows of multicast blocks if links are not the limit."""
    words = cluster.batch * (layer.rows + layer.columns) + PREFIX_WORDS
    chunks = ina_frames(words, cluster.values_per_packet, is_float=False)
    full = chunks // largest_window(SessionOptions().window, cluster.num_workers - 1)
    # A worker with a full window has no chunk to carry receipts, and waits before it reports.
    wait_s = max(MIN_DELAY_S, cluster.round_trip_s / DELAY_SHARE)
    return full * (cluster.round_trip_s + wait_s)


def _streams(cluster: Cluster) -> int:
    """Return the number of streams that share the busiest card in one direction."""
    return cluster.num_workers - cluster.is_colocated


def _slot_limit_s(layer: Layer, cluster: Cluster) -> float:
    """Return the time if each slot for values takes one chunk per RTT."""
    _, value_slots = split_slots(max(2, cluster.slots))
    chunks = ina_frames(layer.num_values, cluster.values_per_packet, is_float=False)
    return chunks / value_slots * cluster.round_trip_s
