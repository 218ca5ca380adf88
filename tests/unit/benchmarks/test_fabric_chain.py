# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Chain replication of the benchmark of the live scheduler, with real servers in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from benchmarks.fabric.chain import ChainHead
from switchfold.hostlib.errors import HostlibError
from switchfold.hostlib.parameter_server import (
    ClientOptions,
    HotRowUse,
    ParameterServer,
    ServerOptions,
)
from switchfold.hostlib.parameter_server.tables import DenseTensor, TableClient, TensorDefinition
from switchfold.hostlib.parameter_server.transfers import FabricWorker, TransferOptions
from time_bound import wait_until

WAIT_S = 60.0
VALUES = 700
DEFINITION = TensorDefinition(name="model", num_values=VALUES, block_values=256)
TRANSFERS = TransferOptions(
    controller="unix:/nowhere/controller.sock", job="chain", host="h1", grant_wait_s=1e-6
)


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A head with two workers, and its tail."""

    head: ParameterServer
    tail: ParameterServer
    link: ChainHead
    tensors: list[DenseTensor]
    workers: list[FabricWorker]


@pytest.fixture
def chain() -> Iterator[Chain]:
    with ExitStack() as stack:
        head, tail = (
            stack.enter_context(ParameterServer(ServerOptions(num_workers=count), insecure=True))
            for count in (2, 1)
        )
        link = ChainHead(
            head,
            ("127.0.0.1", tail.port),
            DEFINITION,
            TRANSFERS,
            source="127.0.0.1",
            timeout_s=WAIT_S,
        )
        stack.callback(link.close)
        tensors: list[DenseTensor] = []
        workers: list[FabricWorker] = []
        for number in range(2):
            options = ClientOptions(
                worker_id=number,
                source="127.0.0.1",
                timeout_s=WAIT_S,
                use_hot_rows=HotRowUse.NEVER,
                insecure=True,
            )
            client = stack.enter_context(TableClient([("127.0.0.1", head.port)], options))
            tensors.append(DenseTensor(client, DEFINITION))
            workers.append(stack.enter_context(FabricWorker(tensors[-1], TRANSFERS)))
        yield Chain(head=head, tail=tail, link=link, tensors=tensors, workers=workers)


def update(seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(VALUES, np.float32)


def test_head_and_tail_have_the_sum_of_all_updates(chain: Chain) -> None:
    first = update(99)
    chain.tensors[0].start(first).result(WAIT_S)
    chain.link.start(first)
    pushes = [chain.workers[n % 2].push(update(n)) for n in range(8)]
    versions = sorted(push.result(WAIT_S).parts[0].version for push in pushes)
    assert versions == list(range(1, 9))
    model = chain.workers[0].get().result(WAIT_S)
    np.testing.assert_allclose(
        model, first + sum(update(n) for n in range(8)), rtol=1e-5, atol=1e-5
    )
    np.testing.assert_array_equal(chain.link.tail_model(), model)
    num_bytes = (4 * DEFINITION.block_values + 8) * DEFINITION.num_blocks
    assert chain.link.counters == {"passed_updates": 8, "passed_bytes": 8 * num_bytes}


def test_an_update_is_applied_after_the_tail_has_it(chain: Chain) -> None:
    seen: list[tuple[int, int]] = []
    tail = chain.tail.tables.state
    chain.head.updates.on_update = lambda committed: seen.append(
        (committed.version, tail.num_commits)
    )
    for number in range(4):
        chain.workers[number % 2].push(update(number)).result(WAIT_S)
    wait_until(lambda: len(seen) == 4, "the callback of each update")
    assert [version for version, _ in seen] == [1, 2, 3, 4]
    assert all(at_tail >= version for version, at_tail in seen)


def test_an_update_that_the_tail_does_not_get_is_not_applied(chain: Chain) -> None:
    chain.workers[0].push(update(1)).result(WAIT_S)
    chain.link.close()
    with pytest.raises(HostlibError):
        chain.workers[1].push(update(2)).result(WAIT_S)
    model = chain.workers[0].get().result(WAIT_S)
    np.testing.assert_array_equal(model, update(1))
