# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Targets of the packet tests, and jobs that clean up after themselves."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import bmv2_target
from packet_frames import Job
from packet_target import Target, job_entries
from packet_tree import Node
from switchfold import p4src

OpenJob = Callable[..., Job]
OpenNode = Callable[..., Node]
FIRST_SERIAL = 1000
FIRST_SLOT = 64
_serial = itertools.count(FIRST_SERIAL)


@pytest.fixture(scope="session", autouse=True)
def _patient_client() -> Iterator[None]:
    """Let finsy wait longer than a busy machine stands still."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("finsy.p4client._DEFAULT_RPC_TIMEOUT", 120.0)
        yield


def _open_bmv2(variant: p4src.Variant) -> Target:
    reason = bmv2_target.missing_reason()
    if reason is not None:
        pytest.skip(reason)
    return bmv2_target.Bmv2Target(variant)


def _open_softswitch(variant: p4src.Variant) -> Target:
    from softswitch_target import SoftswitchTarget  # noqa: PLC0415 (needs the server's packages)

    return SoftswitchTarget(variant)


@pytest.fixture(
    scope="session",
    params=[
        "softswitch-narrow",
        "softswitch-wide",
        pytest.param("bmv2-narrow", marks=[pytest.mark.bmv2, pytest.mark.root]),
        pytest.param("bmv2-wide", marks=[pytest.mark.bmv2, pytest.mark.root]),
    ],
)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """Each switch with each variant's program."""
    kind, _, variant = request.param.partition("-")
    opened = {"bmv2": _open_bmv2, "softswitch": _open_softswitch}[kind](
        "wide" if variant == "wide" else "narrow"
    )
    yield opened
    opened.close()


@pytest.fixture
def open_job(target: Target) -> Iterator[OpenJob]:
    """Admit jobs with ids and generations of their own; end them with the test.

    Slots keep what earlier tests left. It is stale because each job has a newer generation.
    """
    opened: list[Job] = []

    def open_one(**options: Any) -> Job:
        serial = next(_serial)
        fields: dict[str, Any] = {"slot_base": FIRST_SLOT, **options}
        fields["values_per_packet"] = target.values_per_packet
        job = Job(job_id=serial, generation=serial, **fields)
        opened.append(job)
        target.insert(*job_entries(job))
        members = [(job.port(worker), worker + 1) for worker in range(job.num_workers)]
        target.set_multicast_group(job.multicast_group_id, members)
        return job

    yield open_one
    for job in opened:
        target.delete(*job_entries(job))
        target.set_multicast_group(job.multicast_group_id, [])


@pytest.fixture
def open_node(target: Target) -> Iterator[OpenNode]:
    """Make the target a switch of a tree, with an id and generation of its own, for one test."""
    with contextlib.ExitStack() as opened:

        def open_one(**options: Any) -> Node:
            serial = next(_serial)
            fields: dict[str, Any] = {"slot_base": FIRST_SLOT, **options}
            fields["values_per_packet"] = target.values_per_packet
            node = Node(job_id=serial, generation=serial, **fields)
            opened.enter_context(node.installed(target))
            return node

        yield open_one


@pytest.fixture
def job(open_job: OpenJob) -> Job:
    """A job of two workers."""
    return open_job()
