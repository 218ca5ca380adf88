# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A testbed's controller plans sums of all members, is killed, and plans again; all by TLS."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from member_scene import check_sums, reduce_all, vectors_of
from scheme_fabric import Fabric
from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.hostlib.credentials import Credentials
from switchfold.hostlib.parameter_server import ClientOptions
from switchfold.hostlib.parameter_server.transfers import FabricMember, TransferOptions
from time_bound import wait_until

NUM_MEMBERS = 4
NUM_VALUES = 1 << 18
VECTOR_BYTES = 4 * NUM_VALUES
RATE = 100_000_000
LIMIT_S = 180.0
PORT = 7200

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
pytestmark = [pytest.mark.root, needs_root]


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Testbed]:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    topology = single_switch(NUM_MEMBERS, rate_bits_per_s=RATE)
    with Testbed(topology, name=f"test-sums-{os.getpid()}") as testbed:
        yield testbed


@pytest.fixture
def members(testbed: Testbed) -> Generator[list[FabricMember]]:
    fabric = Fabric(testbed)
    addresses = [(address, PORT) for address in fabric.addresses]

    def member(number: int) -> FabricMember:
        folder = testbed.endpoint(number).credentials
        assert folder is not None
        options = TransferOptions(
            controller=testbed.controller_address,
            job="sums",
            host=testbed.topology.hosts[number].name,
            token=testbed.endpoint(0).token,
            credentials=str(folder),
        )
        client = ClientOptions(
            worker_id=number,
            source=fabric.addresses[number],
            credentials=Credentials(folder),
            timeout_s=LIMIT_S,
        )
        return FabricMember(addresses, options, client)

    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(fabric.at(number, lambda number=number: member(number)))
            for number in range(NUM_MEMBERS)
        ]


def counts(members: list[FabricMember], name: str) -> list[int]:
    return [member.counters[f"{name}_allreduces"] for member in members]


def wait_for_registrations(members: list[FabricMember]) -> None:
    for member in members:
        requests = member._allreduces._requests
        wait_until(lambda requests=requests: requests._is_registered, "no registration", LIMIT_S)


def test_members_add_up_with_a_controller_without_it_and_again(
    testbed: Testbed, members: list[FabricMember]
) -> None:
    wait_for_registrations(members)
    before = Fabric(testbed).carried()
    for seed in range(3):
        vectors = vectors_of(NUM_MEMBERS, NUM_VALUES, seed)
        check_sums(reduce_all(members, vectors), vectors)
    wanted = 3 * 2 * (NUM_MEMBERS - 1) / NUM_MEMBERS * VECTOR_BYTES
    for (sent, received), (sent_before, received_before) in zip(
        Fabric(testbed).carried(), before, strict=True
    ):
        for moved in sent - sent_before, received - received_before:
            assert 0.95 * wanted <= moved
    testbed.stop_controller()
    ungranted = counts(members, "ungranted")
    vectors = vectors_of(NUM_MEMBERS, NUM_VALUES, 7)
    check_sums(reduce_all(members, vectors), vectors)
    assert counts(members, "ungranted") == [count + 1 for count in ungranted]
    testbed.start_controller()
    wait_for_registrations(members)
    granted = counts(members, "granted")
    for seed in range(50):
        vectors = vectors_of(NUM_MEMBERS, NUM_VALUES, seed)
        check_sums(reduce_all(members, vectors), vectors)
        if counts(members, "granted") != granted:
            break
    assert counts(members, "granted") != granted
    assert counts(members, "failed") == [0] * NUM_MEMBERS
