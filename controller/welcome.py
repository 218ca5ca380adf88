# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker is told when its job runs, and what it must match before."""

from __future__ import annotations

from controller.errors import NoSwitchError, VersionMismatchError
from controller.job import Layout
from controller.switch_link import LinkState, SwitchLink
from hostlib import wire
from hostlib.session_api import session_pb2 as pb


def check_compatible(hello: pb.Hello, link: SwitchLink) -> None:
    """Raise unless the switch is ready and speaks the worker's wire format."""
    if link.state is not LinkState.READY:
        raise link.error or NoSwitchError(
            f"switch {link.config.name} is {link.state}; try again in a moment"
        )
    program = link.program
    if hello.wire_version != program.wire_version:
        raise VersionMismatchError(
            f"worker {hello.worker_id} speaks wire version {hello.wire_version}, switch "
            f"{link.config.name} {program.wire_version}; install the same release on both"
        )
    if hello.values_per_packet not in (0, program.values_per_packet):
        raise VersionMismatchError(
            f"worker {hello.worker_id} sends {hello.values_per_packet} values per packet, "
            f"switch {link.config.name} takes {program.values_per_packet}; let the worker "
            "take any, or start the controller with the other --variant"
        )


def welcome(layout: Layout, link: SwitchLink, lease_s: float) -> pb.ControllerMessage:
    """Return the message that lets a worker send."""
    return pb.ControllerMessage(
        welcome=pb.Welcome(
            job_id=layout.trees[0].tree_id,
            generation=layout.generation,
            slot_count=layout.slot_count,
            num_workers=layout.num_workers,
            values_per_packet=link.program.values_per_packet,
            wire_version=link.program.wire_version,
            switch_address=link.config.service_address,
            switch_mac=link.config.service_mac,
            switch_udp_port=wire.UDP_PORT,
            lease_s=lease_s,
            allow_partial=layout.straggler.allow_partial,
        )
    )
