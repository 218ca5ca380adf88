# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Choice of the primary: election ids, roles, loss of the primary, and how streams end."""

import threading

import grpc
import pytest
from finsy.proto import U128, p4r, rpc_code

from p4runtime_fixtures import BareClient, StreamEndedError, insert, serving, station
from switchfold.softswitch.p4runtime.service.arbitration import MAX_CLIENTS_PER_ROLE, MAX_ROLES
from time_bound import wait_until


def test_first_client_becomes_primary_and_hears_its_id() -> None:
    with serving() as (server, _), BareClient(server.port) as client:
        client.arbitrate((5 << 64) | 3)
        update = client.receive().arbitration
        assert update.status.code == rpc_code.OK
        assert U128.decode(update.election_id) == (5 << 64) | 3
        assert update.device_id == 7


def test_higher_id_takes_over_and_lower_one_is_backup() -> None:
    with (
        serving() as (server, _),
        BareClient(server.port) as one,
        BareClient(server.port) as two,
        BareClient(server.port) as three,
    ):
        one.become_primary(10)
        two.arbitrate(9)
        assert two.status() == rpc_code.ALREADY_EXISTS
        three.become_primary(11)
        for backup in (one, two):
            update = backup.receive().arbitration
            assert update.status.code == rpc_code.ALREADY_EXISTS
            assert U128.decode(update.election_id) == 11


def test_loss_of_primary_is_told_and_backup_takes_over() -> None:
    with serving() as (server, _), BareClient(server.port) as backup:
        with BareClient(server.port) as primary:
            primary.become_primary(10)
            primary.push()
            backup.arbitrate(9)
            assert backup.status() == rpc_code.ALREADY_EXISTS
        assert backup.status() == rpc_code.NOT_FOUND
        backup.arbitrate(9)  # below the highest id ever seen: there is no primary
        assert backup.status() == rpc_code.NOT_FOUND
        with pytest.raises(grpc.RpcError) as caught:
            backup.write(insert(station()))
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        backup.become_primary(10)
        backup.write(insert(station()))


def test_primary_that_lowers_its_id_resigns() -> None:
    with serving() as (server, _), BareClient(server.port) as one, BareClient(server.port) as two:
        one.become_primary(10)
        two.arbitrate(None)
        assert two.status() == rpc_code.ALREADY_EXISTS
        one.arbitrate(4)
        assert one.status() == rpc_code.NOT_FOUND
        assert two.status() == rpc_code.NOT_FOUND


def test_unset_election_id_is_never_primary() -> None:
    with serving() as (server, _), BareClient(server.port) as client:
        client.arbitrate(None)
        update = client.receive().arbitration
        assert update.status.code == rpc_code.NOT_FOUND
        assert not update.HasField("election_id")


def test_roles_have_their_own_primaries() -> None:
    with serving() as (server, _), BareClient(server.port) as one, BareClient(server.port) as two:
        one.become_primary(10)
        one.push()
        two.arbitrate(3, role="monitor")
        update = two.receive().arbitration
        assert update.status.code == rpc_code.OK
        assert update.role.name == "monitor"
        two.write(insert(station()), role="monitor")
        with pytest.raises(grpc.RpcError, match="not primary"):
            two.write(insert(station()))


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        (None, {"election_id": 1, "device_id": 8}, grpc.StatusCode.NOT_FOUND),
        ({"election_id": 1}, {"election_id": 1, "device_id": 8}, "FAILED_PRECONDITION"),
        ({"election_id": 1}, {"election_id": 1, "role": "other"}, "FAILED_PRECONDITION"),
    ],
)
def test_wrong_arbitration_ends_the_stream(
    first: dict[str, int] | None, second: dict[str, int], code: grpc.StatusCode | str
) -> None:
    with serving() as (server, _), BareClient(server.port) as client:
        if first is not None:
            client.arbitrate(**first)  # pyright: ignore[reportArgumentType]
            assert client.status() == rpc_code.OK
        client.arbitrate(**second)  # pyright: ignore[reportArgumentType]
        with pytest.raises(StreamEndedError) as caught:
            client.receive()
        assert caught.value.code in {code, getattr(grpc.StatusCode, str(code), None)}


def test_election_id_in_use_ends_the_stream() -> None:
    with serving() as (server, _), BareClient(server.port) as one, BareClient(server.port) as two:
        one.become_primary(10)
        two.arbitrate(10)
        with pytest.raises(StreamEndedError, match="already used") as caught:
            two.receive()
        assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT


def test_role_config_is_refused() -> None:
    with serving() as (server, _), BareClient(server.port) as client:
        request = p4r.StreamMessageRequest()
        request.arbitration.device_id = 7
        request.arbitration.role.name = "x"
        request.arbitration.role.config.type_url = "type.googleapis.com/x"
        client.send(request)
        with pytest.raises(StreamEndedError, match=r"role\.config") as caught:
            client.receive()
        assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT


def test_many_streams_leave_room_for_unary_calls() -> None:
    with serving() as (server, _):
        clients = [BareClient(server.port) for _ in range(MAX_CLIENTS_PER_ROLE + 1)]
        for number, client in enumerate(clients[:-1], 1):
            client.become_primary(number)
        assert (
            clients[0]
            .stub.Capabilities(p4r.CapabilitiesRequest(), timeout=60)
            .p4runtime_api_version.startswith("1.4")
        )
        clients[-1].arbitrate(100)
        with pytest.raises(StreamEndedError) as caught:
            clients[-1].receive()
        assert caught.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        for client in clients:
            client.close()


def test_stop_ends_streams_and_threads() -> None:
    before = set(threading.enumerate())  # threads of switches that other tests keep
    with serving() as (server, _):
        client = BareClient(server.port)
        client.become_primary()
        server.stop()
        with pytest.raises(StreamEndedError):
            client.receive()
        client.close()

    def left() -> list[str]:
        names = [thread.name for thread in set(threading.enumerate()) - before]
        return [name for name in names if name.startswith("p4runtime")]

    # The server waits 5 s for the thread of a stream.
    wait_until(lambda: not left(), lambda: f"these go on: {left()}")


def test_roles_have_primaries_of_their_own() -> None:
    with serving() as (server, dataplane), BareClient(server.port) as one:
        one.become_primary(10)
        one.push()
        with pytest.raises(grpc.RpcError, match="no client has it") as caught:
            one.write(insert(station()), role="operator")
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        with BareClient(server.port) as two:
            two.arbitrate(10, role="operator")  # the same id as that of the default role
            update = two.receive().arbitration
            assert (update.status.code, update.role.name) == (rpc_code.OK, "operator")
            two.write(insert(station()), role="operator")
            two.election_id = 9
            with pytest.raises(grpc.RpcError) as caught:
                two.write(insert(station()), role="operator")
            assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
            dataplane.punt(b"\0\0" + bytes(60))
            assert one.receive().HasField("packet")
            assert two.receive().HasField("packet")
        primaries = server.device._arbitration.primaries  # pyright: ignore[reportPrivateUsage]
        wait_until(lambda: len(primaries()) == 1, "the end of the other's stream")
        with pytest.raises(grpc.RpcError, match="no primary") as caught:
            one.write(insert(station()), role="operator")  # a known role whose client has left
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


def test_an_election_id_of_zero_is_one() -> None:
    with serving() as (server, _), BareClient(server.port) as client:
        client.arbitrate(None)
        update = client.receive().arbitration
        assert update.status.code == rpc_code.NOT_FOUND
        assert not update.HasField("election_id")
        client.arbitrate(0)
        update = client.receive().arbitration
        assert update.status.code == rpc_code.OK
        assert update.HasField("election_id")
        client.push()
        client.write(insert(station()))


def test_only_so_many_roles_are_remembered() -> None:
    with serving() as (server, _):
        for number in range(MAX_ROLES - 1):
            with BareClient(server.port) as client:
                client.arbitrate(1, role=f"role {number}")
                assert client.status() == rpc_code.OK
        with BareClient(server.port) as client:
            client.arbitrate(1, role="one more")
            with pytest.raises(StreamEndedError, match="no more than 256 roles") as caught:
                client.receive()
            assert caught.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
