# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes at the hosts' interfaces are those of the cost model; loss of packets changes no result."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

from parameter_cluster import gradients, sum_in_order
from scheme_fabric import Fabric, factor_workers, parameter_cluster
from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.hostlib.factors import FactorPair, rebuild
from switchfold.hostlib.schemes import Cluster, Layer, Scheme
from switchfold.hostlib.schemes.wire_cost import NodeBytes, wire_bytes

WORKERS = 4
LAYER = Layer(name="fc", kind="fc", rows=1024, columns=1024)
RATE = 100_000_000
"""Rate of the links: on faster ones, receivers that share processors acknowledge less often."""
AGREEMENT = 0.02
ATTEMPTS = 30
"""A busy machine may make TCP probe, on one interface or another, although nothing was lost."""
WAIT_S = 60.0
Exchange = Callable[[int], Sequence[Future[Any]]]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")


def cluster(batch: int, *, is_colocated: bool) -> Cluster:
    return Cluster(
        num_workers=WORKERS,
        num_servers=WORKERS if is_colocated else 1,
        is_colocated=is_colocated,
        batch=batch,
    )


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Generator[Fabric]:
    records = tmp_path_factory.mktemp("records")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "records_directory", lambda: records)
        topology = single_switch(WORKERS + 1, rate_bits_per_s=RATE)
        name = f"test-schemes-{os.getpid()}"
        with Testbed(topology, name=name, has_bridge=True) as testbed:
            yield Fabric(testbed)


def differences(
    before: list[tuple[int, int]], after: list[tuple[int, int]], want: NodeBytes
) -> list[float]:
    """Return by how much each interface carried more than predicted, both directions together."""
    nodes = [want.worker_sent + want.worker_received] * WORKERS
    if want.server_sent:
        nodes.append(want.server_sent + want.server_received)
    carried = [sum(new) - sum(old) for new, old in zip(after, before, strict=True)]
    return [round(have / node - 1, 4) for have, node in zip(carried, nodes, strict=False)]


def check_bytes(fabric: Fabric, exchange: Exchange, want: NodeBytes) -> None:
    found: list[list[float]] = []
    for iteration in range(1 + ATTEMPTS):
        before = fabric.carried()
        for future in exchange(iteration):
            future.result(WAIT_S)
        if iteration:  # the first one opens connections
            found.append(differences(before, fabric.carried(), want))
            if all(min(map(abs, each)) <= AGREEMENT for each in zip(*found, strict=True)):
                return
    pytest.fail(f"measured over predicted bytes, less 1, per interface: {found}")


@pytest.mark.root
@needs_root
@pytest.mark.parametrize("is_colocated", [False, True])
def test_bytes_of_a_parameter_server(fabric: Fabric, is_colocated: bool) -> None:
    arrays = gradients(WORKERS, LAYER.num_values)
    # One layer on several shards: pairs as small as its part of each.
    pair_bytes = LAYER.num_bytes // WORKERS if is_colocated else 2 << 20
    with parameter_cluster(fabric, WORKERS, is_colocated=is_colocated, pair_bytes=pair_bytes) as (
        clients,
        _,
    ):
        check_bytes(
            fabric,
            lambda i: [c.push_pull("fc", a, i) for c, a in zip(clients, arrays, strict=True)],
            wire_bytes(Scheme.PS, LAYER, cluster(1, is_colocated=is_colocated)),
        )


def factors(batch: int, rows: int = 1024, columns: int = 1024) -> list[FactorPair]:
    rng = np.random.default_rng(1)
    return [
        FactorPair(*(rng.standard_normal((batch, size), np.float32) for size in (rows, columns)))
        for _ in range(WORKERS)
    ]


@pytest.mark.root
@needs_root
def test_bytes_of_factors_to_a_server(fabric: Fabric) -> None:
    pairs = factors(32)
    with parameter_cluster(fabric, WORKERS) as (clients, _):
        check_bytes(
            fabric,
            lambda i: [c.push_factors("fc", *p, i) for c, p in zip(clients, pairs, strict=True)],
            wire_bytes(Scheme.ADAM, LAYER, cluster(32, is_colocated=False)),
        )


@pytest.mark.root
@needs_root
def test_bytes_of_factors_to_all(fabric: Fabric) -> None:
    pairs = factors(256)
    with factor_workers(fabric, WORKERS) as workers:
        check_bytes(
            fabric,
            lambda i: [w.exchange("fc", *p, i) for w, p in zip(workers, pairs, strict=True)],
            wire_bytes(Scheme.SFB, LAYER, cluster(256, is_colocated=True)),
        )


@pytest.mark.root
@needs_root
def test_loss_changes_no_result(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path / "records")
    workers, iterations = 2, 3
    arrays = gradients(workers, 200_000)
    pairs = factors(64, 200, 100)[:workers]
    with Testbed(
        single_switch(workers + 1), name=f"test-loss-{os.getpid()}", impairments="loss=0.01"
    ) as testbed:
        fabric = Fabric(testbed)
        with parameter_cluster(fabric, workers, pair_bytes=1 << 17) as (clients, (server,)):
            for i in range(iterations):
                futures = [c.push_pull("w", a, i) for c, a in zip(clients, arrays, strict=True)]
                for future in futures:
                    assert future.result(WAIT_S).tobytes() == sum_in_order(arrays).tobytes()
            # Seven pairs: each once per iteration, after both updates.
            assert server.counters["broadcasts"] == 7 * iterations
            assert server.counters["updates"] == 7 * iterations * workers
        with factor_workers(fabric, workers) as ends:
            exchanged = [e.exchange("fc", *p, 0) for e, p in zip(ends, pairs, strict=True)]
            rebuilt = [rebuild(future.result(WAIT_S)) for future in exchanged]
            assert rebuilt[0].tobytes() == rebuilt[1].tobytes()
            np.testing.assert_allclose(rebuilt[0], sum(u.T @ v for u, v in pairs), atol=1e-4)
        assert sum(link.from_host_packets for link in testbed.link_bytes()) > 3000
