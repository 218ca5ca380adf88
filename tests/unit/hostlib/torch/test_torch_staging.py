# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors to arrays and back: memory shared or copied, and the order of work on a side stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from fake_side_stream import FakeStream  # noqa: E402
from switchfold.hostlib.torch.staging.device_staging import (  # noqa: E402
    CudaSideStream,
    DeviceStaging,
    SideStreams,
)
from switchfold.hostlib.torch.staging.staging import BitStaging, SumStaging  # noqa: E402
from switchfold.hostlib.torch.staging.streams import host_tensor  # noqa: E402


def test_contiguous_tensor_is_lent_and_written_in_place() -> None:
    tensor = torch.arange(6.0).reshape(2, 3).requires_grad_()
    staging = SumStaging([tensor])
    assert staging.is_immediate
    array = staging.gather()
    assert array.ctypes.data == tensor.data_ptr()
    version = tensor._version
    staging.scatter(array * 2)
    assert tensor.detach().tolist() == [[0, 2, 4], [6, 8, 10]]
    assert tensor._version == version


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32"])
def test_strided_tensors_go_through_one_flat_copy(dtype: str) -> None:
    base = torch.zeros(3, 4, dtype=getattr(torch, dtype))
    tensors = [base.t()[1:3], base[:, 0]]
    tensors[0].copy_(torch.arange(6).reshape(2, 3))
    staging = SumStaging(tensors)
    assert not staging.is_immediate
    array = staging.gather()
    assert array.tolist() == [0, 1, 2, 3, 4, 5, 0, 0, 0]
    assert array.dtype == np.dtype("float32" if dtype == "bfloat16" else dtype)
    staging.scatter(array + array.dtype.type(1))
    assert base.tolist() == [[1, 1, 4, 0], [1, 2, 5, 0], [1, 3, 6, 0]]


def test_reduce_leaves_the_tensors_of_other_ranks_alone() -> None:
    tensor = torch.ones(3)
    staging = SumStaging([tensor], is_kept=False)
    staging.scatter(staging.gather() * 5)
    assert tensor.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "bfloat16", "float32", "complex64", "int64"])
def test_bits_of_the_root_reach_the_others(dtype: str) -> None:
    root = torch.tensor([0.0, -0.0, 1.0, 3.0, 7.0]).to(getattr(torch, dtype))
    other = torch.ones(10, dtype=root.dtype)[::2]
    sender, receiver = BitStaging(root, is_root=True), BitStaging(other, is_root=False)
    values = sender.gather() + receiver.gather()
    assert values.dtype == np.int32
    sender.scatter(values)
    receiver.scatter(values)
    octets = [bytes(t.contiguous().view(torch.uint8).numpy()) for t in (root, other)]
    assert octets[0] == octets[1]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_device_copies_wait_for_the_caller_and_the_caller_for_them(dtype: str) -> None:
    stream = FakeStream()
    tensors = [
        torch.ones(2, 3, dtype=getattr(torch, dtype)),
        torch.arange(2).to(getattr(torch, dtype)),
    ]
    staging = DeviceStaging(tensors, stream)
    copied = [
        "buffer of 8",
        "after caller",
        "enter",
        "hold (2, 3)",
        "hold (2,)",
        "record 1",
        "exit",
    ]
    assert stream.log == copied
    array = staging.gather()
    assert stream.log[len(copied) :] == ["synchronize 1"]
    assert (array.dtype, array.tolist()) == (np.float32, [1, 1, 1, 1, 1, 1, 0, 1])
    staging.make_visible()
    assert staging.visibility() is None
    assert stream.log[-1] == "synchronize 1"
    versions = [tensor._version for tensor in tensors]
    staging.scatter(array * 3)
    assert stream.log[-3:] == ["enter", "record 2", "exit"]
    assert [tensor._version for tensor in tensors] == versions  # as with CPU tensors
    assert [tensor.tolist() for tensor in tensors] == [[[3, 3, 3], [3, 3, 3]], [0, 3]]
    with staging.after_scatter():
        assert stream.log[-1] == "enter"
    staging.make_visible()
    assert stream.log[-1] == "caller waits for 2"
    caller_waits = staging.visibility()
    assert caller_waits is not None
    caller_waits()
    assert stream.log[-2:] == ["caller waits for 2"] * 2


def test_each_device_has_a_side_stream_of_its_own() -> None:
    made: list[str] = []

    def make(device: Any) -> FakeStream:
        made.append(str(device))
        return FakeStream()

    streams = SideStreams(make)
    first, second, again = (streams.of(torch.device(d)) for d in ("cuda:0", "cuda:1", "cuda:0"))
    assert first is again
    assert first is not second
    assert made == ["cuda:0", "cuda:1"]


def test_host_memory_of_copies_ignores_the_default_device() -> None:
    with torch.device("meta"):
        assert host_tensor(3, torch.float32, torch.device("cpu")).device.type == "cpu"


def test_tensors_of_inference_mode_are_written_by_a_thread_outside_of_it() -> None:
    normal = torch.ones(2)
    with torch.inference_mode():
        strided, plain = torch.zeros(4)[::2], torch.ones(2)
        stagings = [
            BitStaging(strided, is_root=False),
            SumStaging([plain]),
            DeviceStaging([plain], FakeStream()),
            DeviceStaging([normal], FakeStream()),
        ]
    stagings[0].scatter(np.array([3.0, 5.0], np.float32).view(np.int32))
    for staging in stagings[1:]:
        staging.scatter(staging.gather() * 2)
    assert strided.tolist() == [3, 5]
    assert normal.tolist() == [2, 2]
    assert plain.tolist() == [2, 2]  # the device's copy was made before the sum came


def test_cuda_tensors_go_through_pinned_memory() -> None:
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device; the fake stream above shows the order of the copies")
    device = torch.device("cuda", torch.cuda.current_device())
    stream = CudaSideStream(device)
    tensor = torch.arange(1_000_000, device=device, dtype=torch.bfloat16)
    staging = DeviceStaging([tensor], stream)
    array = staging.gather()
    expected = tensor.float().cpu() * 2
    staging.scatter(array * 2)
    staging.make_visible()
    assert torch.equal(tensor.float().cpu(), expected.bfloat16().float())
