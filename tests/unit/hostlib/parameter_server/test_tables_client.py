# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Workers' clients over one server and three: pushes, pulls, staleness, sums, what is refused."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from switchfold.hostlib.errors import (
    ConfigurationError,
    ExchangeTimeoutError,
    NonFiniteGradientError,
    PeerClosedError,
    PeerMismatchError,
    PeerRefusedError,
    RowShapeError,
    RowTableFullError,
    ServerLostError,
)
from switchfold.hostlib.parameter_server import ClientOptions
from switchfold.hostlib.parameter_server.rows import Adagrad, PulledRows, RowTable, Sgd
from switchfold.hostlib.parameter_server.tables import TableClient, TableDefinition
from switchfold.hostlib.peers.frames import FrameKind
from table_cluster import WAIT_S, DenseSums, Floats, TableCluster, floats_of, keys_of

EXTREMES = keys_of(-(1 << 63), (1 << 63) - 1, 0, -1, 1)


@pytest.mark.parametrize("num_servers", [1, 3])
@pytest.mark.parametrize("has_log", [False, True])
def test_pushes_and_pulls(tmp_path: Path, num_servers: int, has_log: bool) -> None:
    rng = np.random.default_rng(1)
    dense = DenseSums(200, 3, 2)
    dense.keys[:5] = EXTREMES
    with TableCluster(2, num_servers, tmp_path if has_log else None) as cluster:
        clients = [cluster.client(w) for w in range(2)]
        tables = [client.define(TableDefinition(name="w", width=3)) for client in clients]
        futures: list[Future[None]] = []
        for _ in range(20):
            for table in tables:
                places, gradients = dense.draw(rng, 64)
                dense.add(places, gradients)
                futures.append(table.push(dense.keys[places], gradients))
                gradients[:] = np.nan  # the client has its own copy
        for future in futures:
            future.result(WAIT_S)
        order = rng.integers(0, 200, 500)
        found = tables[0].pull(dense.keys[order]).result(WAIT_S)
        np.testing.assert_array_equal(found.values, dense.sums[order])
        assert found.values.dtype == np.float32
        pushes = sum(server.tables.state.counters["pushed_keys"] for server in cluster.servers)
        assert pushes == 2 * 20 * 64


@pytest.mark.parametrize("num_servers", [1, 3])
def test_arrays_may_change_after_the_call(num_servers: int) -> None:
    with TableCluster(1, num_servers) as cluster:
        client = cluster.client(0)
        table = client.define(TableDefinition(name="w", width=1))
        keys, gradients = np.arange(50), np.arange(50, dtype=np.float32).reshape(50, 1)
        changed = threading.Event()

        def wait() -> None:
            assert changed.wait(WAIT_S)

        client._loop.post(wait)
        futures = table.push_pull(keys, gradients, keys)
        keys[:], gradients[:] = 7, -1
        changed.set()
        futures[0].result(WAIT_S)
        assert (futures[1].result(WAIT_S).values[:, 0] == np.arange(50)).all()
        assert (table.pull(keys).result(WAIT_S).values == 7).all()


@pytest.mark.parametrize("num_servers", [1, 3])
def test_push_pull_holds_the_workers_own_pushes(tmp_path: Path, num_servers: int) -> None:
    """Also while these wait for the log."""
    with TableCluster(1, num_servers, tmp_path) as cluster:
        table = cluster.client(0).define(TableDefinition(name="w", width=1))
        keys = np.arange(100)
        ones = np.ones((100, 1), np.float32)
        pulled = [table.push_pull(keys, ones, keys[::-1].copy())[1] for _ in range(30)]
        for number, future in enumerate(pulled):
            found = future.result(WAIT_S)
            assert (found.values >= number + 1).all()
            assert (found.values[:, 0] == found.updates).all()


def test_empty_batches() -> None:
    with TableCluster(1, 3) as cluster:
        table = cluster.client(0).define(TableDefinition(name="w", width=2))
        none = np.empty(0, np.int64)
        push, pull = table.push_pull(none, np.empty((0, 2), np.float32), none)
        assert push.result(WAIT_S).shape == pull.result(WAIT_S).versions.shape == (3,)
        found = pull.result(WAIT_S)
        assert (found.values.shape, found.updates.shape) == ((0, 2), (0,))


def test_optimiser_and_first_values_are_the_tables_own() -> None:
    optimiser = Adagrad(learning_rate=0.5)
    alone = RowTable(width=4, max_rows=100, optimiser=optimiser, seed=5)
    with TableCluster(1, 3) as cluster:
        definition = TableDefinition(name="w", width=4, optimiser=optimiser, seed=5)
        table = cluster.client(0).define(definition)
        rng = np.random.default_rng(3)
        for _ in range(5):
            keys = rng.integers(-9, 9, 20)
            gradients = rng.standard_normal((20, 4), np.float32)
            alone.push(keys, gradients)
            table.push(keys, gradients).result(WAIT_S)
        wanted = np.arange(-9, 9)
        assert table.pull(wanted).result(WAIT_S).values.tobytes() == (
            alone.pull(wanted).values.tobytes()
        )


def test_what_cannot_be_pushed_is_refused_at_once() -> None:
    with TableCluster(1) as cluster:
        client = cluster.client(0)
        table = client.define(TableDefinition(name="w", width=2))
        keys, ones = keys_of(7, 8), np.ones((2, 2), np.float32)
        for bad_keys, bad_gradients in (
            (keys.astype(np.int32), ones),
            (keys, ones.astype(np.float64)),
            (keys, np.ones((2, 3), np.float32)),
            (keys, np.ones((3, 2), np.float32)),
            (keys, np.ones((2, 4), np.float32)[:, ::2]),
            (keys.reshape(2, 1), ones),
        ):
            with pytest.raises(RowShapeError, match="give a contiguous array"):
                table.push(bad_keys, bad_gradients)
        with pytest.raises(RowShapeError, match="keys of int32"):
            table.pull(keys.astype(np.int32))
        for number in (np.nan, np.inf, -np.inf):
            ones[1, 0] = number
            with pytest.raises(NonFiniteGradientError, match=r"key 8 of table 'w', at 1") as caught:
                table.push(keys, ones)
            assert (caught.value.position, caught.value.key) == (1, 8)
        assert not cluster.servers[0].tables.state.counters["pushes"]


def test_batches_that_are_too_large_are_refused_at_once() -> None:
    with TableCluster(1, 2) as cluster:
        client = cluster.client(0)
        table = client.define(TableDefinition(name="w", width=1 << 12))
        count = 5000
        keys = np.zeros(count, np.int64)
        with pytest.raises(ConfigurationError, match="the limit is 67108864: use several"):
            table.push(keys, np.zeros((count, 1 << 12), np.float32))
        with pytest.raises(ConfigurationError, match="the limit is 67108864: use several"):
            table.pull(keys)
        spread = np.arange(count)
        assert len(table.pull(spread).result(WAIT_S).values) == count


def test_the_largest_batch_fits_into_the_log(tmp_path: Path) -> None:
    width = (1 << 20) - 2
    with TableCluster(1, 1, tmp_path) as cluster:
        table = cluster.client(0).define(TableDefinition(name="w", width=width))
        keys, gradients = np.arange(16), np.ones((16, width), np.float32)
        table.push(keys, gradients).result(WAIT_S)
        assert (table.pull(keys[:1]).result(WAIT_S).values == 1).all()


def test_a_table_that_a_server_does_not_know_is_named() -> None:
    """Neither a success nor a connection that breaks again and again."""
    with TableCluster(1, 2) as cluster:
        client = cluster.client(0)
        known = client.define(TableDefinition(name="known", width=1))
        unknown = TableDefinition(name="unknown", width=1)
        keys, ones = np.arange(8), np.ones((8, 1), np.float32)
        for future in (
            client.send(FrameKind.PUSH, unknown, keys, ones),
            client.pull(unknown, keys),
        ):
            with pytest.raises(ConfigurationError, match=r"has not been defined .* `define` first"):
                future.result(WAIT_S)
        known.push(keys, ones).result(WAIT_S)
        assert (known.pull(keys).result(WAIT_S).values == 1).all()


def test_a_server_refuses_gradients_of_another_width() -> None:
    """As a client sends them that did not define the table like this."""
    with TableCluster(1) as cluster:
        client = cluster.client(0)
        table = client.define(TableDefinition(name="w", width=2))
        other = TableDefinition(name="w", width=3)
        with pytest.raises(Exception, match="bytes of 1 keys with gradients of 2 values"):
            client.send(FrameKind.PUSH, other, keys_of(1), np.ones((1, 3), np.float32)).result(
                WAIT_S
            )
        assert not table.pull(keys_of(1)).result(WAIT_S).values.any()


def test_tables_are_defined_alike() -> None:
    with TableCluster(2, 2) as cluster:
        first, second = cluster.client(0), cluster.client(1)
        first.define(TableDefinition(name="w", width=2))
        second.define(TableDefinition(name="w", width=2))
        with pytest.raises(PeerMismatchError, match=r"'w' .* width 3 instead of 2, optimiser Sgd"):
            second.define(TableDefinition(name="w", width=3, optimiser=Sgd(learning_rate=0.1)))
        # The CRC-32 of both is the same.
        first.define(TableDefinition(name="plumless", width=2))
        with pytest.raises(ConfigurationError, match="'buckeroo' has the number of 'plumless'"):
            second.define(TableDefinition(name="buckeroo", width=2))


def test_full_tables_deny_pushes_and_pulls_of_new_keys() -> None:
    with TableCluster(1) as cluster:
        table = cluster.client(0).define(TableDefinition(name="w", width=1, max_rows=2))
        ones = np.ones((2, 1), np.float32)
        table.push(keys_of(1, 2), ones).result(WAIT_S)
        for future in (table.push(keys_of(2, 3), ones), table.pull(keys_of(2, 3))):
            with pytest.raises(RowTableFullError, match="server 0: table 'w': no room for key 3"):
                future.result(WAIT_S)
        assert table.pull(keys_of(1, 2)).result(WAIT_S).values.tolist() == [[1], [1]]


def test_sums_beyond_float32_are_denied_at_their_position() -> None:
    with TableCluster(1) as cluster:
        table = cluster.client(0).define(TableDefinition(name="w", width=1))
        huge = floats_of([1], [3e38], [3e38])
        with pytest.raises(NonFiniteGradientError, match="table 'w': gradients of key 5 at 1"):
            table.push(keys_of(4, 5, 5), huge).result(WAIT_S)
        assert not table.pull(keys_of(4, 5)).result(WAIT_S).values.any()


def test_a_stale_pull_waits_for_the_slowest_worker() -> None:
    with TableCluster(3) as cluster:
        clients = [cluster.client(w) for w in range(3)]
        tables = [
            client.define(TableDefinition(name="w", width=1, staleness=1)) for client in clients
        ]
        free = clients[0].define(TableDefinition(name="free", width=1))
        clients[0].advance().result(WAIT_S)
        tables[0].pull(keys_of(1)).result(WAIT_S)
        clients[0].advance().result(WAIT_S)
        clients[1].advance().result(WAIT_S)
        waiting = tables[0].pull(keys_of(1))
        free.pull(keys_of(1)).result(WAIT_S)
        tables[1].pull(keys_of(1)).result(WAIT_S)
        assert not waiting.done()
        tables[2].push(keys_of(1), floats_of([5])).result(WAIT_S)
        clients[2].advance().result(WAIT_S)
        assert waiting.result(WAIT_S).values.tolist() == [[5]]


def test_a_pull_that_waits_for_too_long_names_the_slow_worker() -> None:
    with TableCluster(3, timeout_s=0.2) as cluster:
        clients = [cluster.client(w) for w in range(3)]
        tables = [
            client.define(TableDefinition(name="w", width=1, staleness=0)) for client in clients
        ]
        clients[0].advance().result(WAIT_S)
        clients[2].advance().result(WAIT_S)
        with pytest.raises(
            ExchangeTimeoutError, match=r"server 0: table 'w': worker 1 has ended 0 .* worker 0 1;"
        ) as caught:
            tables[0].pull(keys_of(1)).result(WAIT_S)
        assert caught.value.worker_ids == [1]
        clients[1].advance().result(WAIT_S)
        tables[0].pull(keys_of(1)).result(WAIT_S)


@pytest.mark.parametrize("num_servers", [1, 3])
@pytest.mark.parametrize("is_mean", [False, True])
def test_synchronous_sums_are_numpys_in_the_order_of_workers(
    num_servers: int, is_mean: bool
) -> None:
    rng = np.random.default_rng(4)
    num_workers, num_keys = 3, 50
    values = np.zeros((num_keys, 2), np.float32)
    with TableCluster(num_workers, num_servers) as cluster:
        clients = [cluster.client(w) for w in range(num_workers)]
        definition = TableDefinition(name="w", width=2, staleness=0, is_mean=is_mean)
        tables = [client.define(definition) for client in clients]
        for _ in range(10):
            sums: dict[int, Floats] = {}
            pushes = [
                [(rng.integers(0, num_keys, 30), rng.standard_normal((30, 2), np.float32))] * 2
                for _ in range(num_workers)
            ]
            for w in rng.permutation(num_workers):
                for keys, gradients in pushes[w]:
                    tables[w].push(keys, gradients)
                clients[w].advance()
            for keys, gradients in (push for own in pushes for push in own):
                scaled = gradients / np.float32(num_workers) if is_mean else gradients
                for key, gradient in zip(keys.tolist(), scaled, strict=True):
                    sums[key] = sums[key] + gradient if key in sums else gradient
            for key, total in sums.items():
                values[key] += total
            for table in tables:
                found = table.pull(np.arange(num_keys)).result(WAIT_S)
                assert found.values.tobytes() == values.tobytes()


@pytest.mark.parametrize("has_log", [False, True])
def test_a_synchronous_pull_sees_the_iterations_before_it_alone(
    tmp_path: Path, has_log: bool
) -> None:
    """Also if the worker has not waited for it, and goes on."""
    with TableCluster(2, 1, tmp_path if has_log else None) as cluster:
        clients = [cluster.client(w) for w in range(2)]
        tables = [
            client.define(TableDefinition(name="w", width=1, staleness=0)) for client in clients
        ]
        pulls: list[list[Future[PulledRows]]] = [[], []]
        for worker in (0, 1):
            for _ in range(5):
                tables[worker].push(keys_of(1), floats_of([1]))
                clients[worker].advance()
                pulls[worker].append(tables[worker].pull(keys_of(1)))
        found = [future.result(WAIT_S).values.item() for future in pulls[0]]
        assert found == [2, 4, 6, 8, 10]
        # Worker 1 ended all of them after worker 0 had.
        assert [future.result(WAIT_S).values.item() for future in pulls[1]] == found


def test_refused_sums_of_an_iteration_are_told_to_the_last_worker() -> None:
    with TableCluster(2) as cluster:
        clients = [cluster.client(w) for w in range(2)]
        tables = [
            client.define(TableDefinition(name="w", width=1, staleness=0)) for client in clients
        ]
        for table in tables:
            table.push(keys_of(9), floats_of([3e38])).result(WAIT_S)
        clients[0].advance().result(WAIT_S)
        with pytest.raises(NonFiniteGradientError, match=r"table 'w': .* key 9 .* beyond float32"):
            clients[1].advance().result(WAIT_S)
        for client, table in zip(clients, tables, strict=True):
            table.push(keys_of(9), floats_of([1]))
            client.advance()
        assert tables[0].pull(keys_of(9)).result(WAIT_S).values.item() == 2


def test_pushes_wait_while_too_much_has_no_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchfold.hostlib.parameter_server.tables.client.MAX_OPEN_BYTES", 100)
    with TableCluster(1) as cluster:
        client = cluster.client(0)
        table = client.define(TableDefinition(name="w", width=1))
        for _ in range(50):
            table.push(np.arange(8), np.ones((8, 1), np.float32))
        # A push larger than the limit goes alone.
        table.push(np.arange(20), np.ones((20, 1), np.float32)).result(WAIT_S)
        assert table.pull(keys_of(0)).result(WAIT_S).values.item() == 51


def test_a_push_that_finds_no_room_in_time_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchfold.hostlib.parameter_server.tables.client.MAX_OPEN_REQUESTS", 1)
    with TableCluster(1) as cluster:
        client = cluster.client(0, timeout_s=WAIT_S, reconnect_s=WAIT_S)
        table = client.define(TableDefinition(name="w", width=1))
        cluster.servers[0].close()
        table.push(keys_of(1), floats_of([1]))
        client.options = replace(client.options, timeout_s=0.2)  # for room; requests have theirs
        with pytest.raises(ExchangeTimeoutError, match=r"1 requests with 12 bytes .* limits of 1 "):
            table.push(keys_of(1), floats_of([1]))
        with pytest.raises(ExchangeTimeoutError, match="1 requests"):
            client.advance()


def test_no_server_no_client() -> None:
    with TableCluster(1) as cluster:
        addresses = cluster.addresses
    with pytest.raises(
        ServerLostError, match=rf"server 0: .*{addresses[0][1]} for 0\.2 s"
    ) as caught:
        cluster.client(0, addresses, reconnect_s=0.2)
    assert caught.value.shard == 0
    with pytest.raises(ConfigurationError, match="at least one"):
        TableClient([], ClientOptions(worker_id=0))


def test_strangers_are_refused() -> None:
    with TableCluster(2) as cluster:
        with pytest.raises(PeerRefusedError, match="secret"):
            cluster.client(0, token="wrong")
        with pytest.raises(PeerRefusedError, match="workers 0 to 1"):
            cluster.client(2)
        with pytest.raises(PeerRefusedError, match="this is worker 0 of job 1, not 1 of 1"):
            cluster.client(0, [cluster.addresses[0], cluster.addresses[0]])
    with pytest.raises(ConfigurationError, match="worker -1"):
        cluster.client(-1)
    with pytest.raises(ConfigurationError, match="positive times"):
        cluster.client(0, timeout_s=0.0)


def test_a_closed_client_says_so() -> None:
    with TableCluster(1, timeout_s=30.0) as cluster:
        client = cluster.client(0)
        table = client.define(TableDefinition(name="w", width=1))
        client.close()
        client.close()
        for call in (
            lambda: client.define(TableDefinition(name="v", width=1)),
            lambda: table.push(keys_of(1), floats_of([1])),
            lambda: table.pull(keys_of(1)).result(WAIT_S),
            client.advance,
        ):
            with pytest.raises(PeerClosedError, match="the table client is closed; make a new one"):
                call()


def test_closing_a_client_fails_what_is_open() -> None:
    with TableCluster(2) as cluster:
        client = cluster.client(0)
        table = client.define(TableDefinition(name="w", width=1, staleness=0))
        client.advance().result(WAIT_S)
        waiting = table.pull(keys_of(1))
        client.close()
        with pytest.raises(PeerClosedError, match="the table client is closed"):
            waiting.result(WAIT_S)


def test_callbacks_that_would_wait_for_themselves_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with TableCluster(1) as cluster:
        client = cluster.client(0)
        table = client.define(TableDefinition(name="w", width=1))
        keys, ones = keys_of(1), floats_of([1])
        errors: list[Exception] = []
        done = threading.Event()

        def call(_: Future[None]) -> None:
            table.push(keys, ones)  # does not wait
            monkeypatch.setattr(
                "switchfold.hostlib.parameter_server.tables.client.MAX_OPEN_BYTES", 1
            )
            for bad in (lambda: client.define(table.definition), lambda: table.push(keys, ones)):
                try:
                    bad()
                except ConfigurationError as error:
                    errors.append(error)
            done.set()

        held = threading.Event()

        def wait() -> None:
            assert held.wait(WAIT_S)

        client._loop.post(wait)
        table.push(keys, ones).add_done_callback(call)
        held.set()
        assert done.wait(WAIT_S)
        assert len(errors) == 2
        assert all("would wait for its own thread" in str(error) for error in errors)
