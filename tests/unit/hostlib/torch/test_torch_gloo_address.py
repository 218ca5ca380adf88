# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which address Gloo's connections have: torchrun sets none, and a host's name may be loopback."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from torch_ranks import require_torch

require_torch()


def test_gloo_connects_from_the_address_that_faces_the_master(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from switchfold.hostlib.torch.process_group.environment import gloo_address  # noqa: PLC0415

    for name in ("GLOO_SOCKET_IFNAME", "SWITCHFOLD_PEER_ADDRESS", "SWITCHFOLD_PLACES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    assert gloo_address(0) == ""
    monkeypatch.setenv("SWITCHFOLD_PEER_ADDRESS", "10.0.0.7")
    assert gloo_address(0) == "10.0.0.7"
    monkeypatch.setenv("SWITCHFOLD_PEER_ADDRESS", "localhost")
    assert gloo_address(0) == ""
    monkeypatch.setenv("SWITCHFOLD_PEER_ADDRESS", "10.0.0.7")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth0")
    assert gloo_address(0) == ""


def test_a_gloo_group_at_a_given_address_sums() -> None:
    import torch  # noqa: PLC0415
    import torch.distributed as dist  # noqa: PLC0415

    from switchfold.hostlib.torch.torch_seam import make_gloo  # noqa: PLC0415

    timeout = timedelta(seconds=20)
    options: Any = SimpleNamespace(
        store=dist.HashStore(),
        group_rank=0,
        group_size=1,
        timeout=timeout,
        global_ranks_in_group=[],
        group_id="alone",
    )
    gloo = make_gloo(options, address="127.0.0.1")
    tensor = torch.ones(3)
    gloo.allreduce([tensor]).wait()
    assert tensor.tolist() == [1, 1, 1]
    assert gloo.options._timeout == timeout
    assert len(gloo.options._devices) == 1
