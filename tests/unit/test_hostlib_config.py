# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from hostlib.config import join_from_environment, transport_from_environment
from hostlib.errors import ConfigurationError, ControllerUnreachableError
from hostlib.transports.tunnel import TunnelTransport
from hostlib.transports.udp import UdpTransport

WORKER = {
    "SWITCHFOLD_CONTROLLER": "127.0.0.1:1",
    "SWITCHFOLD_JOB": "train",
    "SWITCHFOLD_WORKER_ID": "0",
    "SWITCHFOLD_NUM_WORKERS": "2",
    "SWITCHFOLD_ADDRESS": "127.0.0.1",
}


def test_udp_is_the_default_transport() -> None:
    transport = transport_from_environment(WORKER)
    assert isinstance(transport, UdpTransport)
    assert transport.local.address == "127.0.0.1"
    transport.close()


def test_tunnel_transport() -> None:
    variables = {
        **WORKER,
        "SWITCHFOLD_TRANSPORT": "tunnel",
        "SWITCHFOLD_MAC": "02:00:00:00:00:01",
        "SWITCHFOLD_TUNNEL_LOCAL": "127.0.0.1:0",
        "SWITCHFOLD_TUNNEL_SWITCH": "127.0.0.1:9",
    }
    transport = transport_from_environment(variables)
    assert isinstance(transport, TunnelTransport)
    assert transport.local.mac == "02:00:00:00:00:01"
    transport.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SWITCHFOLD_CONTROLLER", ""),
        ("SWITCHFOLD_JOB", ""),
        ("SWITCHFOLD_WORKER_ID", "first"),
        ("SWITCHFOLD_NUM_WORKERS", "-1"),
        ("SWITCHFOLD_TRANSPORT", "rdma"),
        ("SWITCHFOLD_ADDRESS", ""),
        ("SWITCHFOLD_WEIGHT", "0"),
        ("SWITCHFOLD_WEIGHT", "much"),
        ("SWITCHFOLD_PATH", "air"),
        ("SWITCHFOLD_SLOTS", "-1"),
        ("SWITCHFOLD_JOINING", "yes"),
    ],
)
def test_wrong_variable_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        join_from_environment(variables={**WORKER, name: value})


def test_join_reaches_for_the_controller() -> None:
    with pytest.raises(ControllerUnreachableError, match=r"127\.0\.0\.1:1"):
        join_from_environment(variables=WORKER)
