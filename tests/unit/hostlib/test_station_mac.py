# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker tells a controller that does not list its host, and what it is told."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from fake_controller import FakeController
from switchfold.hostlib import errors
from switchfold.hostlib.config import join_from_environment, transport_from_environment
from switchfold.hostlib.control.session_api import session_pb2 as api
from switchfold.hostlib.control.view import UNKNOWN_MAC, Endpoint
from switchfold.hostlib.transports.packet_socket import SIOCGIFADDR
from switchfold.hostlib.transports.station_mac import stated_station, station_mac
from switchfold.hostlib.transports.udp import UdpTransport

MAC = "02:00:00:00:00:07"
PLACE = {"SWITCHFOLD_TRANSPORT": "udp", "SWITCHFOLD_ADDRESS": "127.0.0.1"}


def card() -> tuple[str, str]:
    """Return (address, MAC address) of an interface of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            request = struct.pack("40s", name.encode())
            with contextlib.suppress(OSError):  # it has no address, or is gone again
                mac = (Path("/sys/class/net") / name / "address").read_text().strip()
                address = fcntl.ioctl(sock.fileno(), SIOCGIFADDR, request)[20:24]
                if mac and mac != UNKNOWN_MAC:
                    return socket.inet_ntoa(address), mac
    pytest.skip("no interface has both an IPv4 and a MAC address")


def test_the_mac_address_is_that_of_the_interface() -> None:
    address, mac = card()
    assert station_mac(address) == mac
    assert station_mac("127.0.0.1") == station_mac("192.0.2.77") == UNKNOWN_MAC


def test_only_a_worker_that_names_its_port_states_a_mac_address() -> None:
    address, mac = card()
    local = Endpoint(address=address, udp_port=5000)
    assert stated_station(local, 0) == local
    assert stated_station(local, 3).mac == stated_station(local, "s1-eth3").mac == mac
    given = Endpoint(address=address, udp_port=5000, mac=MAC)
    assert stated_station(given, 3) == given


def test_the_mac_address_of_the_environment_counts_over_udp() -> None:
    for extra, mac in (({"SWITCHFOLD_MAC": MAC}, MAC), ({}, UNKNOWN_MAC)):
        with contextlib.closing(transport_from_environment(PLACE | extra)) as transport:
            assert transport.local.mac == mac


def test_a_worker_tells_the_controller_its_mac_address() -> None:
    def refuse(message: api.WorkerMessage, context: Any) -> Iterator[api.ControllerMessage]:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "seen")
        yield api.ControllerMessage()

    address, mac = card()
    controller = FakeController(refuse)
    try:
        variables = {
            "SWITCHFOLD_CONTROLLER": controller.address,
            "SWITCHFOLD_JOB": "train",
            "SWITCHFOLD_WORKER_ID": "0",
            "SWITCHFOLD_NUM_WORKERS": "2",
            "SWITCHFOLD_ADDRESS": address,
            "SWITCHFOLD_INGRESS_PORT": "s1-eth3",
            "SWITCHFOLD_INSECURE": "1",
        }
        with pytest.raises(errors.JobRefusedError, match="seen"):
            join_from_environment(variables=variables)
        assert controller.seen[0].join_request.mac == mac
    finally:
        controller.stop()


def test_a_switch_without_a_route_names_the_remedy() -> None:
    with contextlib.closing(UdpTransport("127.0.0.1")) as transport:
        remote = Endpoint(address="10.0.255.254", udp_port=21318)
        with pytest.raises(errors.AddressUnreachableError) as caught:
            transport.open(remote, 214)
    for words in ("no route to 10.0.255.254", "service_address in the", "--service-address"):
        assert words in str(caught.value)
