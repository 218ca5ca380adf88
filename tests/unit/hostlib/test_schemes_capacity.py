# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The capacity of hosts and switch decides where the links could carry more."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest

from switchfold.hostlib.errors import SchemeError
from switchfold.hostlib.schemes import Cluster, Layer, Scheme
from switchfold.hostlib.schemes.capacity import LINK, Capacity
from switchfold.hostlib.schemes.hardware import HOSTS, SWITCHES, capacity_of
from switchfold.hostlib.schemes.models import Model, ModelLayer
from switchfold.hostlib.schemes.prediction import UNLIMITED, Computing, Strategy, predict
from switchfold.hostlib.schemes.wire_cost import exchange_time, ina_frames
from switchfold.hostlib.slots.switch_reducer import split_slots

TENSOR = Model(
    name="16 MB",
    source="",
    layers=(ModelLayer(name="w", kind="other", num_values=4_000_000, backward_s=1e-9),),
)


def page(cores: int = 0) -> Capacity:
    return capacity_of(HOSTS["frame-by-frame"], SWITCHES["softswitch"], cores)


def test_without_limits_the_link_decides() -> None:
    layer, cluster = Layer(name="w", kind="other", num_values=10**6), Cluster(num_workers=4)
    for scheme in (Scheme.PS, Scheme.INA):
        found = UNLIMITED.limit(scheme, layer, cluster)
        assert (found.time, found.limit) == (exchange_time(scheme, layer, cluster), LINK)
    alone = page().limit(Scheme.INA, layer, Cluster(num_workers=1))
    assert alone.time.seconds == 0


@pytest.mark.parametrize(
    ("capacity", "limit", "per_chunk_s"),
    [
        (Capacity(worker_chunk_s=50e-6, switch_packet_s=10e-6), "worker", 50e-6),
        (Capacity(worker_chunk_s=30e-6, switch_packet_s=10e-6), "switch", 40e-6),
        (
            Capacity(worker_chunk_s=30e-6, switch_packet_s=10e-6, shared_cores=2),
            "shared cores",
            80e-6,
        ),
        (Capacity(worker_chunk_s=1e-6, switch_packet_s=0), LINK, 8 * 1494 / 1e9),
    ],
)
def test_the_slowest_decides(capacity: Capacity, limit: str, per_chunk_s: float) -> None:
    layer = Layer(name="w", kind="other", num_values=10**6)
    found = capacity.limit(Scheme.INA, layer, Cluster(num_workers=4, slots=1024))
    assert found.limit == limit
    expected = ina_frames(10**6, 352) * per_chunk_s
    assert found.time.transfer_s == pytest.approx(expected, rel=0.03)
    assert found.time.transfer_s >= expected


def test_two_equal_limits_take_longer_than_one() -> None:
    layer, cluster = Layer(name="w", kind="other", num_values=10**6), Cluster(num_workers=2)
    link_s = exchange_time(Scheme.INA, layer, cluster).transfer_s
    equal = Capacity(worker_chunk_s=link_s / ina_frames(10**6, 352))
    found = equal.limit(Scheme.INA, layer, cluster)
    assert found.time.transfer_s == pytest.approx(2**0.25 * link_s)


def test_bytes_of_tcp_take_all_of_the_time_of_shared_cores() -> None:
    layer, cluster = Layer(name="w", kind="other", num_values=10**6), Cluster(num_workers=4)
    took = {
        cores: Capacity(tcp_byte_s=1e-9, shared_tcp_byte_s=100e-9, shared_cores=cores).limit(
            Scheme.PS, layer, cluster
        )
        for cores in (0, 1, 2)
    }
    assert [each.limit for each in took.values()] == [LINK, "shared cores", "shared cores"]
    assert took[1].time.transfer_s == pytest.approx(2 * took[2].time.transfer_s, rel=0.01)


def test_idle_time_of_shared_cores_counts_on_shared_cores_alone() -> None:
    layer, cluster = Layer(name="w", kind="other", num_values=10**6), Cluster(num_workers=4)
    figures = {"worker_chunk_s": 20e-6, "switch_packet_s": 5e-6}
    for shared, per_chunk_s in ((0.0, 50e-6), (10e-6, 50e-6), (40e-6, 80e-6)):
        capacity = Capacity(**figures, shared_chunk_s=shared, shared_cores=2)
        found = capacity.limit(Scheme.INA, layer, cluster)
        assert found.limit == "shared cores"
        expected = ina_frames(10**6, 352) * per_chunk_s
        assert found.time.transfer_s == pytest.approx(expected, rel=0.01)
    own = Capacity(**figures, shared_chunk_s=40e-6).limit(Scheme.INA, layer, cluster)
    assert own == Capacity(**figures).limit(Scheme.INA, layer, cluster)


def test_each_slot_takes_a_chunk_per_round() -> None:
    layer, cluster = (
        Layer(name="w", kind="other", num_values=10**6),
        Cluster(num_workers=4, slots=128),
    )
    rounds = ina_frames(10**6, 352) / split_slots(128)[1]
    found = Capacity(switch_round_s=0.05).limit(Scheme.INA, layer, cluster)
    assert found.time.transfer_s == pytest.approx(0.05 * rounds)
    assert found.time.transfer_s > 2 * exchange_time(Scheme.INA, layer, cluster).transfer_s


def test_latencies_are_those_of_rounds_and_steps() -> None:
    capacity = Capacity(ring_step_s=1e-3, switch_round_s=2e-3)
    cluster = Cluster(num_workers=4, round_trip_s=1e-4)
    layer = Layer(name="w", kind="other", num_values=256)
    assert capacity.limit(Scheme.INA, layer, cluster).time.latency_s == pytest.approx(4.2e-3)
    ring = predict(
        Model(
            name="w",
            source="",
            layers=(ModelLayer(name="w", kind="other", num_values=256, backward_s=1),),
        ),
        cluster,
        Strategy.RING,
        Computing(),
        capacity=capacity,
    )
    assert ring.layers[0].exchange.latency_s == pytest.approx(6 * 1e-3 + 3 * 1e-4)


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
@pytest.mark.parametrize("name", [each.name for each in fields(Capacity)])
def test_invalid_times_are_refused(name: str, value: float) -> None:
    with pytest.raises(SchemeError, match=f"{name} is"):
        Capacity(**{name: value})


def test_best_scheme_knows_the_capacity_of_the_switch() -> None:
    cluster = Cluster(num_workers=4, link_bits_per_s=1e10)
    capacity = Capacity(switch_packet_s=100e-6)
    found = predict(TENSOR, cluster, Strategy.BEST, Computing(), capacity=capacity)
    assert found.schemes == {"w": "ps"}
    assert predict(TENSOR, cluster, Strategy.BEST, Computing()).schemes == {"w": "ina"}
