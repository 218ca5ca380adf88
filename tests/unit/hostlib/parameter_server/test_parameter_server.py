# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportPrivateUsage=false
from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from parameter_cluster import WAIT_S, ParameterCluster, gradients, sum_in_order
from switchfold.hostlib.errors import (
    ConfigurationError,
    ExchangeTimeoutError,
    MemberLostError,
    PeerMismatchError,
    PeerRefusedError,
    ServerLostError,
    UnsupportedDtypeError,
)
from switchfold.hostlib.parameter_server import (
    ClientOptions,
    PairLayout,
    ParameterClient,
    RuleKind,
    StragglerDrop,
)
from switchfold.hostlib.parameter_server.command import run as run_command
from switchfold.hostlib.parameter_server.pair_state import Origin
from switchfold.hostlib.peers.connection import KEEPALIVE_S
from time_bound import wait_until

SMALL_PAIRS = {"pair_bytes": 4096}


def test_pairs_are_even_over_shards() -> None:
    layout = PairLayout(3, pair_bytes=2 << 20)
    layout.add_all({"all": 10_000_000})
    pairs = layout.keys[0].pairs
    assert len(pairs) == 20
    counts = [sum(pair.shard == shard for pair in pairs) for shard in range(3)]
    assert sorted(counts) == [6, 7, 7]
    assert max(layout.shard_values) - min(layout.shard_values) <= (2 << 20) // 4
    assert sum(pair.num_values for pair in pairs) == 10_000_000
    assert [pair.first for pair in pairs[1:]] == list(
        np.cumsum([pair.num_values for pair in pairs])[:-1]
    )


def test_shards_of_many_unlike_keys_differ_by_at_most_a_pair() -> None:
    sizes = np.random.default_rng(3).integers(1, 5000, 200)
    layout = PairLayout(7, pair_bytes=4096)
    for number, size in enumerate(sizes):
        layout.add(f"layer{number}", int(size))
        assert max(layout.shard_values) - min(layout.shard_values) <= 1024


@pytest.mark.parametrize("num_servers", [1, 3, 0])
def test_all_workers_get_the_sum_in_worker_order(num_servers: int) -> None:
    arrays = gradients(3, 5000)
    expected = [sum_in_order(arrays), sum_in_order([2 * array for array in arrays])]
    with ParameterCluster(3, num_servers, client=SMALL_PAIRS) as cluster:
        # Whoever comes first: the bytes are the same.
        for iteration, order in enumerate(([2, 0, 1], [1, 2, 0])):
            futures = {
                worker: cluster.clients[worker].push_pull(
                    "w", (iteration + 1) * arrays[worker], iteration
                )
                for worker in order
            }
            for future in futures.values():
                assert future.result(WAIT_S).tobytes() == expected[iteration].tobytes()
                assert future.num_contributors == 3


def test_worker_and_server_move_as_many_floats_as_the_formula() -> None:
    arrays = gradients(4, 64 * 48)
    with ParameterCluster(4) as cluster:
        cluster.push_pull("fc", arrays, 0)
        assert cluster.node_floats() == ([6144] * 4, [24_576])
    with ParameterCluster(4, 0, client={"pair_bytes": 64 * 48}) as cluster:
        cluster.push_pull("fc", arrays, 0)
        workers, servers = cluster.node_floats()
        assert [sum(node) for node in zip(workers, servers, strict=True)] == [9216] * 4


def test_factors_go_up_and_the_matrix_comes_down() -> None:
    rng = np.random.default_rng(1)
    factors = [
        (rng.standard_normal((4, 64), np.float32), rng.standard_normal((4, 48), np.float32))
        for _ in range(4)
    ]
    expected = sum(u.T @ v for u, v in factors)
    with ParameterCluster(4, client=SMALL_PAIRS) as cluster:
        futures = [
            client.push_factors("fc", u, v, 0)
            for client, (u, v) in zip(cluster.clients, factors, strict=True)
        ]
        results = [future.result(WAIT_S) for future in futures]
        assert cluster.node_floats() == ([3520] * 4, [14_080])
    for result in results:
        assert result.shape == (64, 48)
        assert result.tobytes() == results[0].tobytes()
        assert np.abs(result - expected).max() < 1e-5
    factors[1] = (factors[1][0][:0], factors[1][1][:0])  # a batch without samples
    with ParameterCluster(2, 0, client=SMALL_PAIRS) as cluster:
        futures = [
            client.push_factors("fc", u, v, 0)
            for client, (u, v) in zip(cluster.clients, factors, strict=False)
        ]
        expected = factors[0][0].T @ factors[0][1]
        for future in futures:
            assert np.abs(future.result(WAIT_S) - expected).max() < 1e-5


def test_many_keys_and_iterations_are_in_flight_at_once() -> None:
    arrays = gradients(2, 3000)
    with ParameterCluster(2, 2, client=SMALL_PAIRS) as cluster:
        futures = [
            [
                client.push_pull(f"layer{layer}", (iteration + layer) * array, iteration)
                for iteration in range(3)
                for layer in range(4)
            ]
            for client, array in zip(cluster.clients, arrays, strict=True)
        ]
        for row in futures:
            for position, future in enumerate(row):
                scale = position // 4 + position % 4
                expected = sum_in_order([scale * array for array in arrays])
                assert future.result(WAIT_S).tobytes() == expected.tobytes()
        # Three pairs per key: each answered once per iteration.
        assert sum(cluster.server_counts("broadcasts")) == 3 * 4 * 3


def test_update_of_one_worker_alone_is_not_answered() -> None:
    arrays = gradients(2, 10)
    with ParameterCluster(2) as cluster:
        early = [cluster.clients[0].push_pull("w", arrays[0], i) for i in (0, 1)]
        # Updates of the next iteration do not complete this one.
        wait_until(lambda: cluster.server_counts("updates") == [2], "both updates")
        assert cluster.server_counts("broadcasts") == [0]
        assert not early[0].done()
        cluster.clients[1].push_pull("w", arrays[1], 0).result(WAIT_S)
        assert early[0].result(WAIT_S).tobytes() == sum_in_order(arrays).tobytes()
        assert not early[1].done()
        cluster.clients[1].push_pull("w", arrays[1], 1).result(WAIT_S)
        assert early[1].result(WAIT_S).tobytes() == sum_in_order(arrays).tobytes()


def test_replayed_update_is_ignored_and_counted() -> None:
    arrays = gradients(2, 10)
    with ParameterCluster(2) as cluster:
        (server,) = cluster.servers
        first = cluster.clients[0].push_pull("w", arrays[0], 0)
        wait_until(lambda: server.counters["updates"] == 1, "the first update")

        def replay() -> None:
            server.update(Origin(0, 0, 0), 0, 0, 100 * arrays[0])

        server.loop.run(replay)
        assert (server.counters["updates"], server.counters["replayed_updates"]) == (1, 1)
        assert server.counters["broadcasts"] == 0
        assert not first.done()
        last = cluster.clients[1].push_pull("w", arrays[1], 0)
        for future in (first, last):
            assert future.result(WAIT_S).tobytes() == sum_in_order(arrays).tobytes()
        server.loop.run(replay)  # of a closed iteration: answered again, not added
        assert server.counters["replayed_updates"] == 2
        assert server.counters["broadcasts"] == 1


def test_broken_connection_resends_what_is_not_answered() -> None:
    arrays = gradients(2, 500_000)
    expected = sum_in_order(arrays)
    with ParameterCluster(2, client={"pair_bytes": 1 << 18}) as cluster:
        (server,) = cluster.servers
        for iteration in range(5):
            first = cluster.clients[0].push_pull("w", arrays[0], iteration)
            if iteration:
                wait_until(lambda: server.counters["updates"] % 16 == 8, "one worker's updates")
                server.loop.run(server.close_connections)
            # In place: what is sent once more must still be the update.
            array = arrays[1].copy()
            second = cluster.clients[1].push_pull("w", array, iteration, array)
            assert second.result(WAIT_S) is array
            assert array.tobytes() == expected.tobytes()
            assert first.result(WAIT_S).tobytes() == expected.tobytes()
        assert server.counters["updates"] == 2 * 8 * 5
        assert server.counters["broadcasts"] == 8 * 5
        assert cluster.clients[0].counters["reconnections"] == 4


def test_infinity_and_overflow_travel_without_a_warning() -> None:
    arrays = [np.array([3e38, np.inf, sign * np.inf, 1], np.float32) for sign in (1, -1)]
    with ParameterCluster(2) as cluster:  # a warning would end the update: pytest raises it
        for result in cluster.push_pull("w", arrays, 0):
            np.testing.assert_array_equal(result, np.array([np.inf, np.inf, np.nan, 2]))


@pytest.mark.parametrize("is_server", [False, True])
def test_streams_that_stand_still_are_not_dialled_again(
    monkeypatch: pytest.MonkeyPatch, *, is_server: bool
) -> None:
    # Longer than the interval of the kernel's probes, which go on while all threads pause.
    monkeypatch.setattr("switchfold.hostlib.peers.heartbeat.SILENCE_S", 2.5 * KEEPALIVE_S)
    monkeypatch.setattr("switchfold.hostlib.peers.heartbeat.HEARTBEAT_S", 0.1)
    arrays, hangs, release = gradients(2, 1000), threading.Event(), threading.Event()
    with ParameterCluster(2) as cluster:
        cluster.push_pull("w", arrays, 0)
        loop = cluster.servers[0].loop if is_server else cluster.clients[0]._loop

        def hang() -> None:
            hangs.set()
            release.wait(WAIT_S)

        # Nothing comes from it, but its kernel acknowledges.
        loop.post(hang)
        assert hangs.wait(WAIT_S)
        futures = [c.push_pull("w", a, 1) for c, a in zip(cluster.clients, arrays, strict=True)]
        with pytest.raises(TimeoutError):
            futures[1].result(4 * KEEPALIVE_S)
        release.set()
        for future in futures:
            assert future.result(WAIT_S).tobytes() == sum_in_order(arrays).tobytes()
        assert [client.counters["reconnections"] for client in cluster.clients] == [0, 0]


def test_mean_is_the_sum_divided() -> None:
    arrays = gradients(2, 100)
    mean = sum_in_order(arrays) / np.float32(2)
    with ParameterCluster(2, rule=RuleKind.MEAN) as cluster:
        assert cluster.push_pull("w", arrays, 0)[1].tobytes() == mean.tobytes()


def test_stragglers_are_dropped_and_the_mean_is_of_those_who_came() -> None:
    arrays = gradients(3, 2000)
    # All three are in time, as they are first and last.
    patient = StragglerDrop(deadline_s=10 * WAIT_S, quorum=2)
    options = {"rule": RuleKind.MEAN, "stragglers": patient, "timeout_s": 20 * WAIT_S}
    with ParameterCluster(3, client=SMALL_PAIRS, **options) as cluster:
        (server,) = cluster.servers

        def have(drop: StragglerDrop) -> None:
            server.options = replace(server.options, stragglers=drop)

        full = cluster.push_pull("w", arrays, 0)
        server.loop.run(lambda: have(replace(patient, deadline_s=2.0)))
        started_s = time.monotonic()
        futures = [cluster.clients[w].push_pull("w", arrays[w], 1) for w in (0, 2)]
        expected = (arrays[0] + arrays[2]) / np.float32(2)
        for future in futures:
            assert future.result(WAIT_S).tobytes() == expected.tobytes()
            assert future.num_contributors == 2
        assert time.monotonic() - started_s > 1.9
        # The late update is thrown away; its worker gets what the others got.
        late = cluster.clients[1].push_pull("w", 1000 * arrays[1], 1)
        assert late.result(WAIT_S).tobytes() == expected.tobytes()
        assert cluster.server_counts("late_updates") == [2]
        assert cluster.server_counts("partial_pairs") == [2]
        server.loop.run(lambda: have(patient))
        assert cluster.push_pull("w", arrays, 2)[0].tobytes() == full[0].tobytes()


def test_missing_worker_is_named_in_time() -> None:
    with ParameterCluster(3, timeout_s=1.0) as cluster:
        array = np.ones(10, np.float32)
        future = cluster.clients[1].push_pull("fc1", array, 0)
        with pytest.raises(ExchangeTimeoutError, match=r"'fc1', iteration 0: .*worker 0, 2 in 1 s"):
            future.result(60)
        error = future.exception()
        assert isinstance(error, ExchangeTimeoutError)
        assert error.worker_ids == [0, 2]


def test_dead_worker_is_named_in_time() -> None:
    with ParameterCluster(2, grace_s=0.2) as cluster:
        array = np.ones(10, np.float32)
        cluster.push_pull("w", [array, array], 0)
        cluster.clients[1].close()
        with pytest.raises(MemberLostError, match="worker 1 is gone") as caught:
            cluster.clients[0].push_pull("w", array, 1).result(60)
        assert caught.value.worker_id == 1


def test_idle_worker_whose_connection_broke_is_not_given_up() -> None:
    with ParameterCluster(2, grace_s=0.4) as cluster:
        (server,) = cluster.servers
        array = np.ones(10, np.float32)
        cluster.push_pull("w", [array, array], 0)
        server.loop.run(server.close_connections)
        wait_until(lambda: len(server._ends) == 2, "their return")
        first = cluster.clients[0].push_pull("w", array, 1)
        with pytest.raises(TimeoutError):  # longer than the interval of the checks for lost workers
            first.result(1.2)
        cluster.clients[1].push_pull("w", array, 1).result(WAIT_S)
        assert (first.result(WAIT_S) == 2).all()


def test_unlike_keys_are_refused_with_worker_and_key() -> None:
    with ParameterCluster(2) as cluster:
        first = cluster.clients[0].push_pull("fc1", np.ones(10, np.float32), 0)
        wait_until(lambda: cluster.server_counts("updates") == [1], "the first update")
        second = cluster.clients[1].push_pull("fc1", np.ones(11, np.float32), 0)
        with pytest.raises(PeerMismatchError, match=r"worker 1 declares 'fc1' of 11 .* of 10"):
            second.result(WAIT_S)
        assert not first.done()


def test_strangers_are_refused() -> None:
    with ParameterCluster(2) as cluster:
        array = np.ones(10, np.float32)
        for options, text in (
            (ClientOptions(worker_id=0, token="wrong"), "secret"),
            (ClientOptions(worker_id=2), "workers 0 to 1"),
        ):
            with (
                ParameterClient(cluster.addresses, options) as stranger,
                pytest.raises(PeerRefusedError, match=text),
            ):
                stranger.push_pull("w", array, 0).result(WAIT_S)


def test_server_that_is_away_is_named() -> None:
    with ParameterCluster(1) as cluster:
        address = cluster.addresses[0]
    options = ClientOptions(worker_id=0, reconnect_s=0.5)
    with ParameterClient([address], options) as client:
        with pytest.raises(
            ServerLostError, match=rf"server 0: .*{address[1]} for 0\.5 s"
        ) as caught:
            client.push_pull("w", np.ones(10, np.float32), 0).result(WAIT_S)
        assert caught.value.shard == 0


def test_bad_arguments_are_refused_at_once() -> None:
    with ParameterCluster(1) as cluster:
        (client,) = cluster.clients
        array = np.ones(10, np.float32)
        client.push_pull("w", array, 0).result(WAIT_S)
        with pytest.raises(UnsupportedDtypeError, match="float64"):
            client.push_pull("x", np.ones(10), 0)  # pyright: ignore[reportArgumentType]
        with pytest.raises(ConfigurationError, match="contiguous"):
            client.push_pull("x", np.ones((4, 4), np.float32)[:, ::2], 0)
        with pytest.raises(ConfigurationError, match="iteration 0 of key 'w' after 0"):
            client.push_pull("w", array, 0)
        with pytest.raises(ConfigurationError, match="has 10 values, not 5"):
            client.push_pull("w", array[:5], 1)
        with pytest.raises(ConfigurationError, match="shape"):
            client.push_pull("w", array, 1, np.empty(9, np.float32))


def test_no_thread_stays() -> None:
    before = set(threading.enumerate())
    with ParameterCluster(1) as cluster:
        array = np.ones(2_500_000, np.float32)
        assert (cluster.clients[0].push_pull("w", array, 0).result(WAIT_S) == array).all()
    assert set(threading.enumerate()) <= before


def test_send_does_not_wait_for_the_server() -> None:
    with ParameterCluster(2) as cluster:
        array = np.ones(2_500_000, np.float32)
        # The other worker's update is due before any server can answer.
        futures = [cluster.clients[0].push_pull("w", array, 0)]
        assert not futures[0].done()
        futures.append(cluster.clients[1].push_pull("w", array, 0))
        for future in futures:
            future.result(WAIT_S)


def test_command_says_where_it_listens_and_what_is_wrong() -> None:
    command = [
        sys.executable,
        "-m",
        "switchfold.hostlib.parameter_server",
        "--address",
        "127.0.0.1",
    ]
    with subprocess.Popen(
        [*command, "--num-workers", "1", "--rule", "mean"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = re.fullmatch(r"listening on (127\.0\.0\.1):(\d+)\n", process.stdout.readline())
        assert said is not None
        with ParameterClient([(said[1], int(said[2]))], ClientOptions(worker_id=0)) as client:
            array = np.arange(10, dtype=np.float32)
            assert (client.push_pull("w", array, 0).result(WAIT_S) == array).all()
        process.send_signal(signal.SIGTERM)
        counted, _ = process.communicate(timeout=WAIT_S)
        assert process.returncode == 0
        assert "broadcasts=1 received_floats=10 sent_floats=10 updates=1" in counted


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--num-workers", "0"], "0 workers; give 1 to"),
        (["--num-workers", "2", "--address", "192.0.2.1"], "cannot listen"),
        (["--num-workers", "2", "--port", "70000"], "port"),
    ],
)
def test_command_refuses_bad_options(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["--address", "127.0.0.1", *arguments]) == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--hot-rows", "5"], "options of hot rows without --controller"),
        (["--controller", "here:1"], "a server with hot rows needs both"),
        (["--controller", "here:1", "--hot-job", "j", "--hot-rows", "0"], "0 hot rows"),
        (["--controller", "here:1", "--hot-job", "j", "--hot-address", "x"], "hot address 'x'"),
        (["--controller", "here:1", "--hot-job", "j", "--hot-flush-ms", "0"], "flush 0.0 s"),
        (["--controller", "here:1", "--hot-job", "j", "--shard", "32"], "server 32 of 1 workers"),
    ],
)
def test_command_refuses_bad_options_of_hot_rows(
    arguments: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["--address", "127.0.0.1", "--num-workers", "1", *arguments]) == 1
    assert what in capsys.readouterr().err


SCHEDULED = ["--controller", "here:1", "--transfer-job", "j", "--transfer-host", "h1"]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--transfer-job", "j"], "need --controller and --transfer-job"),
        (["--controller", "here:1", "--tau-max", "4"], "a server with hot rows needs both"),
        (["--tau-max", "4"], "need --controller and --transfer-job"),
        (["--transfer-host", "h1"], "need --controller and --transfer-job"),
        (["--controller", "here:1", "--transfer-job", "j"], "the name of this host"),
        ([*SCHEDULED, "--tau-max", "-1"], "tau_max -1; give 0 to 2^32 - 1"),
        ([*SCHEDULED, "--place-wait", "0"], "place wait 0.0 s"),
        (["--replica-of", "0"], "a replica of server 0 needs scheduled updates"),
    ],
)
def test_command_refuses_bad_options_of_scheduled_updates(
    arguments: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["--address", "127.0.0.1", "--num-workers", "1", *arguments]) == 1
    assert what in capsys.readouterr().err


@pytest.mark.parametrize(
    "retired",
    [
        ("--rule", "sgd"),
        ("--learning-rate", "0.1"),
        ("--momentum", "0.9"),
        ("--checkpoints", "/tmp"),
        ("--every", "4"),
    ],
)
def test_command_says_what_replaces_a_retired_option(
    retired: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        run_command(["--address", "127.0.0.1", "--num-workers", "2", *retired])
    assert caught.value.code == 2
    text = capsys.readouterr().err
    assert f"argument {retired[0]}: " in text
    assert "is retired; use a TableDefinition or TensorDefinition" in text
