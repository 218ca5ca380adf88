# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Batches of insertions make one call to the data plane, with the results of single updates."""

import pytest
from finsy.proto import p4r, rpc_code

from p4runtime_control_plane import IDS as CONTROL_IDS
from p4runtime_control_plane import codes, host
from p4runtime_fixtures import (
    CONTROL_PLANE,
    IDS,
    BareClient,
    delete,
    insert,
    loaded,
    modify,
    policy,
    station,
)

MODES = [
    p4r.WriteRequest.CONTINUE_ON_ERROR,
    p4r.WriteRequest.ROLLBACK_ON_ERROR,
    p4r.WriteRequest.DATAPLANE_ATOMIC,
]
STATIONS = p4r.TableEntry(table_id=IDS["station"])


def _numbers(client: BareClient) -> list[int]:
    return [
        int.from_bytes(entry.match[0].exact.value, "big") for entry in client.read_tables(STATIONS)
    ]


@pytest.mark.parametrize("mode", MODES)
def test_a_run_between_other_updates_keeps_the_order(mode: int) -> None:
    with loaded() as (client, dataplane):
        client.write(
            insert(station(b"\x01")),
            insert(station(b"\x02", out=b"\x00\x00\x03")),  # leading zeros: a single update
            insert(station(b"\x03")),
            delete(station(b"\x01")),
            insert(station(b"\x01", out=b"\x05")),
            insert(policy(3)),
            modify(station(b"\x03", out=b"\x06")),
            insert(station(b"\x04")),
            atomicity=mode,
        )
        assert sorted(_numbers(client)) == [1, 2, 3, 4]
        (found,) = client.read_tables(station(b"\x03"))
        assert found == station(b"\x03", out=b"\x06")
        (found,) = client.read_tables(station(b"\x01"))
        assert found == station(b"\x01", out=b"\x05")
        assert len(dataplane.entries) == 5


def test_errors_stay_with_their_updates() -> None:
    with loaded() as (client, _):
        client.write(insert(station(b"\x07")))
        batch = [insert(station(bytes([number]))) for number in (1, 7, 2, 2, 3)]
        found = codes(client, *batch, insert(policy(3)), insert(station(b"\x01")))
        exists = rpc_code.ALREADY_EXISTS
        assert found == [0, exists, 0, exists, 0, 0, exists]
        more = [insert(station(bytes([number]))) for number in range(10, 16)]
        assert codes(client, *more) == [0] * 4 + [rpc_code.RESOURCE_EXHAUSTED] * 2
        assert sorted(_numbers(client)) == [1, 2, 3, 7, 10, 11, 12, 13]


def test_a_failed_batch_takes_its_runs_back() -> None:
    with loaded(CONTROL_PLANE) as (client, dataplane):
        client.write(insert(host(9)))
        before = dataplane.state
        for last in (host(9), host(1), host(4, metadata=b"tag", priority=1)):
            with pytest.raises(Exception, match="UNKNOWN"):
                client.write(
                    *(insert(host(number)) for number in (1, 2, 3)),
                    insert(last),
                    insert(host(5)),
                    atomicity=p4r.WriteRequest.ROLLBACK_ON_ERROR,
                )
            assert dataplane.state == before
        client.write(insert(host(1)), insert(host(2)))
        query = p4r.TableEntry(table_id=CONTROL_IDS["host"])
        assert len(client.read_tables(query)) == 3
