# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes per link and direction: the controller's prediction and the testbed's counters."""

from __future__ import annotations

from collections.abc import Mapping

from switchfold.bmv2_topos import Testbed
from switchfold.controller.api.operator_client import OperatorClient

AGREEMENT = 0.02
"""Largest difference between measured and predicted bytes of a link, as a share."""


def carried_bytes(testbed: Testbed) -> dict[str, int]:
    """Return the bytes that have crossed each direction, by names such as "h1 > s1"."""
    switch_of = {link.host: link.switch for link in testbed.topology.links}
    carried: dict[str, int] = {}
    for link in testbed.link_bytes():
        carried[f"{link.host} > {switch_of[link.host]}"] = link.from_host_bytes
        carried[f"{switch_of[link.host]} > {link.host}"] = link.to_host_bytes
    for between in testbed.switch_link_bytes():
        carried[f"{between.a} > {between.b}"] = between.from_a_bytes
        carried[f"{between.b} > {between.a}"] = between.from_b_bytes
    return carried


def predicted_bytes(controller: str, job: str, tensor_bytes: int) -> dict[str, float]:
    """Return the predicted bytes of one allreduce of a running job, by the same names.

    Idle links are left out. Raises ControllerError if the controller does not answer or does not
    know the job.
    """
    report = OperatorClient(controller).show_tree(job, tensor_bytes)
    return {f"{load.sender} > {load.receiver}": load.predicted_bytes for load in report.loads}


def differences(carried: Mapping[str, float], predicted: Mapping[str, float]) -> dict[str, float]:
    """Return the excess of each direction's bytes over the prediction, as a share of it.

    Directions without a prediction are left out.
    """
    return {
        link: carried[link] / expected - 1.0 for link, expected in predicted.items() if expected
    }
