# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The transport benchmark's rig: softswitch on a host adds, over links that lose packets."""

from __future__ import annotations

import itertools
import os
import signal
import socket
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.transport.conditions import parse_condition
from benchmarks.transport.congestion import default_control
from benchmarks.transport.contenders import contenders
from benchmarks.transport.fabrics import WORKERS, PlainFabric, fabric, host_named
from benchmarks.transport.rig import Round, Size, TransportRig
from switchfold.bmv2_topos import state
from switchfold.bmv2_topos.network.namespaces import call_in_namespace, call_with_route
from time_bound import wait_until

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
FIRST_PORT = 47_400
TOLERANCE = 0.2
ROUNDS = 3
SIZE = Size(elements=352 * 60, rate_bits_per_s=20_000_000, tolerance=TOLERANCE, timeout_s=120.0)


def test_sums_by_a_host_are_verified_and_lack_what_is_tolerated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    known = contenders(TOLERANCE, SIZE.elements)
    mine = [known["server"], known["server-tolerant"]]
    found: dict[str, list[Round]] = {each.name: [] for each in mine}
    with TransportRig(mine, SIZE) as rig:
        rig.set_condition(parse_condition("0"), seed=1)
        for each in mine:
            calm = rig.run(each.name, 0)
            assert isinstance(calm, Round), calm
            assert (calm.lost, calm.link_bytes > 0, calm.busiest_s > 0) == (0, True, True)
            assert calm.seen >= calm.sent, "every contribution came to a place of loss"
        rig.set_condition(parse_condition("0.1:up"), seed=1)
        for number in range(1, ROUNDS + 1):
            for each in mine:
                outcome = rig.run(each.name, number)
                assert isinstance(outcome, Round), outcome
                found[each.name].append(outcome)
    for name, rounds in found.items():
        assert sum(each.lost for each in rounds) > 0, name
        assert min(each.coverage for each in rounds) >= 1 - (known[name].tolerance or 0.0)
    assert {each.coverage for each in found["server"]} == {1.0}
    assert sum(each.sent_again for each in found["server"]) > 0
    tolerant = found["server-tolerant"]
    assert sum(each.flushed for each in tolerant) > 0
    assert min(each.coverage for each in tolerant) < 1


def test_senders_that_drop_send_less_and_sums_lack_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    known = contenders(TOLERANCE, SIZE.elements)
    mine = [known["ring"], known["ring-dropping"]]
    with TransportRig(mine, SIZE) as rig:
        rig.set_condition(parse_condition("0.01:up"), seed=1)
        whole, dropped = (rig.run(each.name, 0) for each in mine)
    assert isinstance(whole, Round), whole
    assert isinstance(dropped, Round), dropped
    assert (whole.coverage, dropped.coverage) == (1.0, 1 - TOLERANCE)
    values = 4 * SIZE.elements * 2 * 2 * 3  # each of 4 workers sends and gets 3/2 of its tensor
    assert whole.link_bytes > values
    assert dropped.link_bytes > (1 - TOLERANCE) * values


def test_connections_use_the_congestion_control_of_the_contender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    topology = fabric(SIZE.rate_bits_per_s)
    with PlainFabric(topology, [], name=f"cc{os.getpid()}") as plain, ExitStack() as stack:
        hosts = [host_named(topology, name) for name in ("h1", "h2", "h5")]
        inside = [plain.testbed.namespace_of(host) or "" for host in hosts]
        for port, name in enumerate(("reno", ""), FIRST_PORT):
            plain.use_congestion_control(name)
            for host, namespace in zip(hosts[1:], inside[1:], strict=True):
                at = (host.address, port)
                listener = call_in_namespace(namespace, partial(socket.create_server, at))
                stack.enter_context(listener)
                call = partial(socket.create_connection, at, timeout=SIZE.timeout_s)
                caller = stack.enter_context(call_in_namespace(inside[0], call))
                called = stack.enter_context(listener.accept()[0])
                used = {control_of(caller), control_of(called)}
                assert used == {name or default_control()}


def control_of(connection: socket.socket) -> str:
    said = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return said.rstrip(b"\0").decode()


def test_transposed_job_adds_on_each_host_and_goes_on_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    known = contenders(TOLERANCE, SIZE.elements)
    with TransportRig([known["shards"], known["shards-tolerant"]], SIZE) as rig:
        plain = rig._plain  # pyright: ignore[reportPrivateUsage]
        assert plain is not None

        def summed(name: str, number: int) -> tuple[Round, list[int]]:
            """Sum once; return the round, and the bytes that each adder got meanwhile."""
            before = given_to_adders(plain)
            outcome = rig.run(name, number)
            assert isinstance(outcome, Round), outcome
            return outcome, [n - m for n, m in zip(given_to_adders(plain), before, strict=True)]

        rig.set_condition(parse_condition("0"), seed=1)
        calm, given = summed("shards", 0)
        assert (calm.coverage, calm.lost) == (1.0, 0)
        part = 4 * SIZE.elements  # a quarter of each worker's tensor
        assert all(count >= part for count in given), "each host adds a quarter"
        rig.set_condition(parse_condition("0.1:up"), seed=1)
        repaired, _ = summed("shards", 1)
        tolerant, _ = summed("shards-tolerant", 1)
        assert min(repaired.lost, repaired.sent_again, tolerant.lost, tolerant.flushed) > 0
        assert repaired.coverage == 1.0
        assert 1 - TOLERANCE <= tolerant.coverage < 1
        rig.set_condition(parse_condition("0"), seed=1)
        os.kill(plain.adder_pids[1], signal.SIGKILL)
        summed("shards", 2)  # redone without it
        _, given = summed("shards", 3)
        assert given[1] == 0
        assert all(count > part for count in given[:1] + given[2:]), "the others add a third"
        plain.restart_adder(1)
        numbers = itertools.count(4)
        wait_until(lambda: summed("shards", next(numbers))[1][1] > 0, "the host that is back adds")
        _, given = summed("shards", next(numbers))
        assert all(count >= part for count in given), "each host adds a quarter again"


def given_to_adders(plain: PlainFabric) -> list[int]:
    """Return how many bytes have gone from each worker's kernel to the softswitch beside it."""

    def sent(route: Any) -> int:
        (link,) = route.get_links(ifname="agg")
        return link.get_attr("IFLA_STATS64")["tx_bytes"]

    topology = plain.testbed.topology
    inside = [plain.testbed.namespace_of(host_named(topology, name)) or "" for name in WORKERS]
    return [call_with_route(namespace, sent) for namespace in inside]
