# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What reaches Gloo of tensors on devices: nothing that would crash it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from torch_ranks import load_torch, require_torch

require_torch()
torch, dist = load_torch()

from switchfold.hostlib.torch.errors import CollectiveInputError  # noqa: E402
from switchfold.hostlib.torch.process_group import placement  # noqa: E402
from switchfold.hostlib.torch.process_group.gloo_collectives import GlooCollectives  # noqa: E402
from switchfold.hostlib.torch.process_group.rendezvous import RankPlace  # noqa: E402


class RecordedGloo:
    """Writes down which method ran with how many tensors, and which work was waited for."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(outputs: Any, inputs: Any, *_: Any) -> Any:
            where = f"{name} of {list(inputs.shape)}" if name == "_allgather_base" else name
            self.log.append(where)
            return SimpleNamespace(wait=lambda _limit: self.log.append(f"wait for {where}"))

        return call


@pytest.fixture
def group() -> GlooCollectives:
    store = dist.HashStore()
    gloo = dist.ProcessGroupGloo(store, 0, 1)
    return GlooCollectives(RankPlace(store, 0, 1), name="test", gloo=gloo)


def test_device_tensors_that_gloo_cannot_move_are_refused(group: GlooCollectives) -> None:
    tensor = torch.ones(2, device="meta")
    for call in (
        lambda: group.send([tensor], 0, 0),
        lambda: group.recv([tensor], 0, 0),
        lambda: group.recv_anysource([tensor], 0),
        lambda: group.allgather_coalesced([[tensor]], [tensor]),
    ):
        with pytest.raises(CollectiveInputError, match=r"rank 0, .*'meta'.*move them to the CPU"):
            call()


@pytest.mark.parametrize(
    "method", ["all_gather_single_coalesced", "allgather_into_tensor_coalesced"]
)
def test_device_tensors_are_gathered_one_by_one(
    group: GlooCollectives, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(placement, "SWITCH_DEVICES", ("cpu", "meta"))
    gloo = RecordedGloo()
    monkeypatch.setattr(group, "_gloo", gloo)
    for device in ("cpu", "meta"):
        inputs = [torch.ones(n, device=device) for n in (1, 2)]
        getattr(group, method)([torch.ones(n, device=device) for n in (1, 2)], inputs).wait()
    singles = ["_allgather_base of [1]", "_allgather_base of [2]"]
    assert gloo.log == [
        *(method, f"wait for {method}"),
        *singles,
        *(f"wait for {single}" for single in singles),
    ]


@pytest.mark.parametrize("method", ["alltoall_base", "reduce_scatter_tensor_coalesced"])
def test_methods_of_older_releases_of_pytorch_reach_gloo(
    group: GlooCollectives, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    gloo = RecordedGloo()
    monkeypatch.setattr(group, "_gloo", gloo)
    getattr(group, method)(torch.ones(2), torch.ones(2)).wait()
    assert gloo.log == [method, f"wait for {method}"]
