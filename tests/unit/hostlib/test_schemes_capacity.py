# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The capacity of hosts and switch decides where the links could carry more."""

from __future__ import annotations

import json
import math

import pytest

from switchfold.controller.__main__ import run
from switchfold.hostlib.errors import SchemeError
from switchfold.hostlib.schemes import Cluster, Layer, Scheme
from switchfold.hostlib.schemes.capacity import LINK, Capacity
from switchfold.hostlib.schemes.models import Model, ModelLayer
from switchfold.hostlib.schemes.prediction import UNLIMITED, Computing, Strategy, predict
from switchfold.hostlib.schemes.wire_cost import exchange_time, ina_frames

TENSOR = Model(
    name="16 MB",
    source="",
    layers=(ModelLayer(name="w", kind="other", num_values=4_000_000, backward_s=1e-9),),
)
UNSHAPED = 1e12
MEASURED = [
    (1e8, 4, 1.54),
    (1e8, 8, 1.83),
    (1e9, 2, 0.94),
    (1e9, 4, 1.22),
    (1e9, 8, 1.20),
    (UNSHAPED, 2, 0.86),
    (UNSHAPED, 4, 1.04),
]
"""Link, workers, and times Gloo's ring of an allreduce, frame by frame on a machine of 2 cores."""
CLEAR = [row for row in MEASURED if abs(row[2] - 1) > 0.15]
"""Where one of the two is clearly faster."""


def gain(link_bits_per_s: float, num_workers: int, capacity: Capacity) -> float:
    cluster = Cluster(num_workers=num_workers, link_bits_per_s=link_bits_per_s)
    took = [
        predict(TENSOR, cluster, strategy, Computing(), capacity=capacity).exchange_s
        for strategy in (Strategy.RING, Strategy.INA)
    ]
    return took[0] / took[1]


@pytest.mark.parametrize(("rate", "workers", "measured"), CLEAR)
@pytest.mark.parametrize("cores", [0, 2])
def test_direction_is_that_of_the_measurement(
    rate: float, workers: int, measured: float, cores: int
) -> None:
    assert (gain(rate, workers, Capacity(shared_cores=cores)) > 1) == (measured > 1)


@pytest.mark.parametrize(("rate", "workers", "measured"), MEASURED)
def test_two_shared_cores_come_near_the_measurement(
    rate: float, workers: int, measured: float
) -> None:
    assert gain(rate, workers, Capacity(shared_cores=2)) == pytest.approx(measured, rel=0.35)


def test_without_limits_the_link_decides() -> None:
    layer, cluster = Layer(name="w", kind="other", num_values=10**6), Cluster(num_workers=4)
    for scheme in (Scheme.PS, Scheme.INA):
        found = UNLIMITED.limit(scheme, layer, cluster)
        assert (found.time, found.limit) == (exchange_time(scheme, layer, cluster), LINK)
    alone = Capacity().limit(Scheme.INA, layer, Cluster(num_workers=1))
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
    assert found.time.transfer_s == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
def test_invalid_times_are_refused(value: float) -> None:
    with pytest.raises(SchemeError, match="worker_chunk_s is"):
        Capacity(worker_chunk_s=value)
    with pytest.raises(SchemeError, match="switch_packet_s is"):
        Capacity(switch_packet_s=value)
    with pytest.raises(SchemeError, match="tcp_byte_s is"):
        Capacity(tcp_byte_s=value)


def test_best_scheme_knows_the_capacity_of_the_switch() -> None:
    cluster = Cluster(num_workers=4, link_bits_per_s=1e10)
    capacity = Capacity(switch_packet_s=100e-6)
    found = predict(TENSOR, cluster, Strategy.BEST, Computing(), capacity=capacity)
    assert found.schemes == {"w": "ps"}
    assert predict(TENSOR, cluster, Strategy.BEST, Computing()).schemes == {"w": "ina"}


def test_command_says_where_a_ring_is_faster(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["scheme", "predict", "--model", "vgg19", "--iteration-ms", "900"]
    wanted = [*arguments, "--rate", "100M,1G,10G", "--workers", "4"]
    assert run(wanted) == 0
    out = capsys.readouterr().out
    assert "assumed: a worker needs 3 us of processor per chunk, the switch 2.5 us per" in out
    slow, middle, fast = (line for line in out.splitlines() if line.startswith("4 workers: "))
    assert "aggregation helps: 1.5" in slow
    assert "aggregation helps: 1.4" in middle
    assert "a ring is faster here: " in fast
    assert "of aggregation, which the switch limits" in fast
    hardware = ["--switch-us", "0", "--worker-us", "0.5", "--tcp-ns", "0"]
    assert run([*wanted, *hardware]) == 0
    out = capsys.readouterr().out
    assert out.count("aggregation helps") == 3
    assert run([*wanted, "--cores", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["capacity"]["shared_cores"] == 2
