# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker says of its tensors: the controller takes it whatever the user has named them."""

from __future__ import annotations

import numpy as np
import pytest

from switchfold.controller.api.request_check import check_request
from switchfold.hostlib.allgather import AllgatherTask
from switchfold.hostlib.control.session_api import session_pb2 as api
from switchfold.hostlib.control.submitted_message import encode_submitted
from switchfold.hostlib.control.submitted_tensor import SubmittedTensor, SubmittedTensors
from switchfold.hostlib.engine.allreduce_task import AllreduceTask
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.options import Summation

LABELS = (
    "",
    "layer 1",
    "a" * 300,
    "a" * 299 + "b",
    "line\nbreak",
    "line\nbreak2",
    "ж" * 300,
    "\ud800",
)


@pytest.mark.parametrize("label", LABELS)
def test_controller_takes_any_label(label: str) -> None:
    tensors = SubmittedTensors.of([], [SubmittedTensor(3, 10, "int32", "int32 sum", label)])
    check_request(api.WorkerMessage(stalled=api.Stalled(submitted=encode_submitted(tensors))))


def test_labels_stay_different() -> None:
    shown = {SubmittedTensor(0, 1, "int32", "sum", label).printable_label for label in LABELS}
    assert len(shown) == len(LABELS)


def test_task_says_what_it_was_submitted_with() -> None:
    tolerance = LossTolerance(loss=0.1)
    summation = Summation(operation="mean", precision="block", label="w", tolerance=tolerance)
    array = np.ones((3, 5), np.float32)
    task = AllreduceTask(6, array, summation, deadline_s=1.0, timeout_s=1.0)
    assert task.submitted == SubmittedTensor(6, 15, "float32", "block mean", "w", tolerance)
    gather = AllgatherTask(7, np.ones((2, 2), np.uint8), deadline_s=1.0, timeout_s=1.0)
    assert gather.submitted == SubmittedTensor(7, 4, "uint8", "allgather")
    complete, awaited = encode_submitted(SubmittedTensors.of([gather.submitted], [task.submitted]))
    assert (complete.number, complete.is_awaited, complete.HasField("tolerance")) == (
        7,
        False,
        False,
    )
    assert (awaited.number, awaited.is_awaited) == (6, True)
    assert (awaited.tolerance.loss, awaited.tolerance.worker_floor) == (0.1, 0.8)
