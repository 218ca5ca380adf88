# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A worker of a transposed job: each tree's datagrams go to its root, and come from there alone."""

from __future__ import annotations

import contextlib
import socket
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, closing

import numpy as np
import pytest

from hostlib_reflector import reflect_datagrams, running
from loopback import LOOPBACK
from switchfold.hostlib import Session, SessionOptions, errors
from switchfold.hostlib.control.session_api import session_pb2 as api
from switchfold.hostlib.control.view import Endpoint, JobView, Member, TreeView
from switchfold.hostlib.control.view_message import decode_view
from switchfold.hostlib.native.transports import SocketTransport
from switchfold.hostlib.slots.slot_probe import SlotProbe
from switchfold.hostlib.slots.wire import HEADER_DTYPE, datagram_bytes
from switchfold.hostlib.transports.base import Datagrams
from switchfold.hostlib.transports.sockets import open_udp
from switchfold.hostlib.transports.tunnel import TunnelTransport
from switchfold.hostlib.transports.udp import UdpTransport
from time_bound import wait_until

VALUES = 352
SIZE = datagram_bytes(VALUES)
HEADER = HEADER_DTYPE.itemsize
TREES = (11, 300, 65535)
Peer = socket.socket


@pytest.fixture
def peers() -> Generator[list[Peer]]:
    with ExitStack() as stack:
        yield [stack.enter_context(open_udp(LOOPBACK, 0)) for _ in TREES]


@pytest.fixture
def transport() -> Generator[UdpTransport]:
    with closing(UdpTransport("127.0.0.1")) as made:
        yield made


def roots(peers: list[Peer]) -> dict[int, Endpoint]:
    return {
        tree: Endpoint(address=LOOPBACK, udp_port=peer.getsockname()[1])
        for tree, peer in zip(TREES, peers, strict=False)
    }


def datagrams(*trees: int) -> Datagrams:
    """Return a datagram for each of these trees, numbered by its slot."""
    rows = np.zeros((len(trees), SIZE), np.uint8)
    header = rows[:, :HEADER].view(HEADER_DTYPE)[:, 0]
    header["job_id"] = trees
    header["slot_index"] = np.arange(len(trees))
    return rows


def slots_at(peer: Peer, count: int) -> list[int]:
    """Return the numbers of the next datagrams that come, and of all that are there by then."""
    found: list[int] = []

    def have_come() -> bool:
        with contextlib.suppress(BlockingIOError):
            while True:
                row = np.frombuffer(peer.recv(SIZE + 1), np.uint8)
                found.append(int(row[:HEADER].view(HEADER_DTYPE)["slot_index"][0]))
        return len(found) >= count

    wait_until(have_come, lambda: f"{count} datagrams: {found}", interval_s=0.001)
    return found


def test_each_tree_goes_to_its_root_in_order(transport: UdpTransport, peers: list[Peer]) -> None:
    transport.open_trees(roots(peers), SIZE)
    trees = np.random.default_rng(1).choice(TREES, 700)
    for first in range(0, trees.size, 350):  # more than one call of the kernel takes
        part = datagrams(*trees)[first : first + 350]
        assert transport.send(part) == len(part)
        for tree, peer in zip(TREES, peers, strict=True):
            places = np.flatnonzero(trees == tree)
            mine = places[(places >= first) & (places < first + 350)]
            assert slots_at(peer, mine.size) == mine.tolist()
    assert transport.counters == Counter()


def test_result_is_taken_from_the_root_of_its_tree_alone(
    transport: UdpTransport, peers: list[Peer]
) -> None:
    transport.open_trees(roots(peers), SIZE)
    local = "127.0.0.1", transport.local.udp_port
    out = np.empty((99, SIZE), np.uint8)
    taken: list[int] = []

    def received(count: int) -> bool:
        taken.extend(out[: transport.receive(out, 0.0), 4:6].copy().view(">u2")[:, 0].tolist())
        return len(taken) == count

    for count, peer in enumerate(peers, 1):
        for row in datagrams(*TREES):
            peer.sendto(row, local)
        wait_until(lambda count=count: received(count), f"{count} results")
        wait_until(
            lambda count=count: (
                received(count) and transport.counters["other_traffic"] == 2 * count
            ),
            "those of other trees are counted",
        )
    assert taken == list(TREES), "each root's own"
    assert transport.counters == Counter(other_traffic=6)
    with open_udp(LOOPBACK, 0) as stranger:
        stranger.sendto(datagrams(TREES[0])[0], local)
        wait_until(lambda: transport.counters["stranger"] == 1, "a stranger's is counted")
    assert transport.receive(out, 0.0) == 0
    with pytest.raises(errors.PortTakenError):
        UdpTransport(*local)


def test_root_that_is_gone_holds_up_no_other(transport: UdpTransport, peers: list[Peer]) -> None:
    transport.open_trees(roots(peers), SIZE)
    peers[1].close()
    for _ in range(4):  # the kernel reports a refusal at a later call
        rows = datagrams(*np.tile(TREES, 20))
        assert transport.send(rows) == len(rows)
        for at in (0, 2):
            assert slots_at(peers[at], 20) == list(range(at, 60, 3)), "each once"
    assert transport.counters["network_error"] > 0


@contextlib.contextmanager
def small_pairs() -> Generator[tuple[SocketTransport, list[Peer]]]:
    """Yield a transport whose two sockets have little room, and where these lead."""
    with ExitStack() as stack:
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
        for sender, receiver in pairs:
            stack.enter_context(receiver)
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
            sender.setblocking(False)
            receiver.setblocking(False)
        transport = SocketTransport(pairs[0][0])
        stack.callback(transport.close)
        transport.route([pairs[1][0]], {TREES[1]: 1})
        transport.open(SIZE)
        yield transport, [receiver for _, receiver in pairs]


def test_busy_sockets_get_each_datagram_once_and_in_order() -> None:
    rows = datagrams(*np.random.default_rng(3).choice(TREES[:2], 2000, p=(0.1, 0.9)))
    trees = rows[:, 4:6].copy().view(">u2")[:, 0]
    out = np.empty((1, SIZE), np.uint8)
    with small_pairs() as (transport, receivers):
        found: list[list[int]] = [[] for _ in receivers]
        done = transport.send(rows)
        assert 0 < done < len(rows)
        assert transport.counters["send_busy"] == 1

        def all_have_come() -> bool:
            nonlocal done
            done += transport.send(rows[done:])
            assert transport.receive(out, 0.0) == 0
            for slots, receiver in zip(found, receivers, strict=True):
                slots.extend(slots_at(receiver, 0))
            return sum(map(len, found)) >= len(rows)

        wait_until(all_have_come, lambda: f"{done} sent", interval_s=0.0)
        assert done == len(rows)
        for tree, slots in zip(TREES, found, strict=False):
            assert slots == np.flatnonzero(trees == tree).tolist()


def test_datagrams_kept_for_a_busy_socket_leave_while_results_are_awaited() -> None:
    rows = datagrams(*[TREES[1]] * 200)
    out = np.empty((1, SIZE), np.uint8)
    with small_pairs() as (transport, (_, receiver)):
        assert transport.send(rows) == len(rows), "nothing is left for another call"
        found = slots_at(receiver, 1)
        assert len(found) < len(rows)

        def rest_has_come() -> bool:
            assert transport.receive(out, 0.0) == 0
            found.extend(slots_at(receiver, 0))
            return len(found) >= len(rows)

        wait_until(rest_has_come, lambda: f"{found}", interval_s=0.0)
        assert found == list(range(200))


def test_datagrams_kept_for_a_busy_socket_are_forgotten_with_their_view() -> None:
    rows = datagrams(*[TREES[1]] * 200)
    out = np.empty((1, SIZE), np.uint8)
    with small_pairs() as (transport, (first, second)):
        assert transport.send(rows) == len(rows)
        assert len(slots_at(second, 1)) < len(rows)
        transport.route([], {})
        transport.open(SIZE)
        assert transport.receive(out, 0.0) == 0
        assert transport.send(rows[:3]) == 3
        assert slots_at(first, 3) == [0, 1, 2], "and nothing else"


def test_next_view_may_have_other_roots(transport: UdpTransport, peers: list[Peer]) -> None:
    for kept in (2, 3, 2):
        transport.open_trees(dict(list(roots(peers).items())[:kept]), SIZE)
        assert transport.send(datagrams(*TREES[:kept])) == kept
        assert [slots_at(peer, 1) for peer in peers[:kept]] == [[place] for place in range(kept)]
    transport.open(roots(peers)[TREES[2]], SIZE)
    assert transport.send(datagrams(*TREES)) == 3
    assert [slots_at(peers[at], count) for at, count in ((2, 3), (1, 0), (0, 0))] == [
        [0, 1, 2],
        [],
        [],
    ]
    local = "127.0.0.1", transport.local.udp_port
    peers[0].sendto(datagrams(TREES[0])[0], local)
    wait_until(lambda: transport.counters["stranger"] == 1, "the root of before is a stranger")


def test_roots_are_bounded(transport: UdpTransport) -> None:
    many = {tree: Endpoint(address=LOOPBACK, udp_port=1000 + tree) for tree in range(33)}
    with pytest.raises(errors.TransportError, match="have 33 roots; a UDP transport reaches at"):
        transport.open_trees(many, SIZE)


def transposed_view(peers: list[Peer]) -> JobView:
    return JobView(
        job=1,
        generation=2,
        worker_id=0,
        members=(Member(worker_id=0),),
        trees=tuple(
            TreeView(tree_id=tree, slot_count=20, members=1, root=root)
            for tree, root in roots(peers).items()
        ),
        child_id=0,
        worker_bitmap=1,
        values_per_packet=VALUES,
        switch=next(iter(roots(peers).values())),
    )


def test_session_sums_over_all_roots(transport: UdpTransport, peers: list[Peer]) -> None:
    array = np.random.default_rng(2).integers(-(2**31), 2**31 - 1, 90 * VALUES).astype(np.int32)
    options = SessionOptions(timeout_s=120.0, min_rto_s=0.05)
    with ExitStack() as stack:
        for peer in peers:
            peer.connect(("127.0.0.1", transport.local.udp_port))
            stack.enter_context(running(peer, SIZE, reflect_datagrams))
        session = Session.direct(transposed_view(peers), transport, options)
        stack.enter_context(session)
        for _ in range(3):
            np.testing.assert_array_equal(session.allreduce(array).result(60), array)
        assert session.statistics["value_packets_received"] == 3 * 90


def test_silent_root_is_the_one_that_was_asked(transport: UdpTransport, peers: list[Peer]) -> None:
    view = transposed_view(peers)
    transport.open_trees(roots(peers), SIZE)
    probe = SlotProbe(view, transport, Counter())
    assert probe.silent_tree == 0
    probe.send(datagrams(TREES[1])[0], 5.0)
    assert (probe.silent_s(6.5), probe.silent_tree) == (1.5, TREES[1])
    assert slots_at(peers[1], 1) == [0]
    probe.note_answer()
    assert (probe.silent_s(7.0), probe.silent_tree) == (0.0, 0)
    assert view.switch_of(TREES[1]) == roots(peers)[TREES[1]]


def test_other_transports_refuse_before_they_join() -> None:
    transport = TunnelTransport(
        Endpoint(address="10.0.0.1", udp_port=4000, mac="02:00:00:00:00:01"),
        port_address=(LOOPBACK, 9),
    )
    with pytest.raises(
        errors.ConfigurationError, match=r"TunnelTransport sends to one switch.*transport udp"
    ):
        Session.join(
            controller=f"{LOOPBACK}:9",
            job="train",
            worker_id=0,
            num_workers=1,
            transport=transport,
            options=SessionOptions(path="transposed", insecure=True),
        )
    with pytest.raises(errors.TransportClosedError):
        transport.send(datagrams(1))


def test_session_of_another_transport_refuses_the_view(peers: list[Peer]) -> None:
    transport = TunnelTransport(
        Endpoint(address="10.0.0.1", udp_port=4000, mac="02:00:00:00:00:01"),
        port_address=(LOOPBACK, 9),
    )
    with pytest.raises(errors.ConfigurationError, match="another path"):
        Session.direct(transposed_view(peers), transport)
    transport.close()


def test_transposed_job_names_no_switch() -> None:
    with pytest.raises(errors.ConfigurationError, match=r"switch_name is 's1'.*leave it out"):
        SessionOptions(path="transposed", switch_name="s1")


def test_view_of_the_controller_has_its_roots() -> None:
    message = api.View(
        generation=3,
        members=[api.Member(worker_id=0)],
        trees=[
            api.Tree(tree_id=4, slot_count=8, switch_address="10.9.0.1", switch_udp_port=21318),
            api.Tree(tree_id=5, slot_count=8, switch_address="10.9.0.2", switch_udp_port=21318),
        ],
        worker_bitmap=1,
        switch_address="10.9.0.1",
        switch_udp_port=21318,
    )
    view = decode_view(message, job=1, worker_id=0, values_per_packet=VALUES)
    assert view.is_transposed
    assert not view.can_multicast
    assert [view.switch_of(tree).address for tree in (4, 5)] == ["10.9.0.1", "10.9.0.2"]
    message.trees[1].switch_address = ""
    with pytest.raises(errors.ConfigurationError, match="some have none"):
        decode_view(message, job=1, worker_id=0, values_per_packet=VALUES)
