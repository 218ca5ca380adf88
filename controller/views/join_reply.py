# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a worker is told when its job runs, and what it must match before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...hostlib.control.session_api import session_pb2 as pb
from ...hostlib.slots import wire
from ..errors import NoSwitchError, VersionMismatchError
from ..jobs.attachment import Applicant, applicant_name
from ..jobs.job import Tree, TreeNode, View, Worker, WorkerId
from ..switches.switch_session import SwitchSession

QUORUM_DEADLINE_S: Final = 1.0
"""For jobs with a quorum and no deadline on more than one switch.

A quorum is counted at the root. What waits for a late worker below gets there when it is flushed.
"""


def check_compatible(request: Applicant, link: SwitchSession) -> None:
    """Raise unless the switch is ready and speaks the applicant's wire format."""
    if not link.is_ready:
        raise link.error or NoSwitchError(
            f"switch {link.config.name} is {link.state}; try again in a moment"
        )
    check_wire(request, link)


def check_wire(request: Applicant, link: SwitchSession) -> None:
    """Raise VersionMismatchError unless the switch's program speaks the applicant's wire format."""
    program = link.program
    if request.wire_version != program.wire_version:
        raise VersionMismatchError(
            f"{applicant_name(request)} speaks wire version {request.wire_version}, "
            f"switch {link.config.name} {program.wire_version}; install the same release on both"
        )
    if request.values_per_packet not in (0, program.values_per_packet):
        raise VersionMismatchError(
            f"{applicant_name(request)} sends {request.values_per_packet} values per packet, "
            f"switch {link.config.name} takes {program.values_per_packet}; let it take any, or "
            "start the controller with the other --variant"
        )


def encode_view(view: View, worker: Worker, links: Mapping[str, SwitchSession]) -> pb.View:
    """Return a view as one of its members sees it; `links`: to all switches."""
    roots = {tree.root.switch: links[tree.root.switch] for tree in view.trees}
    link = next(iter(roots.values())) if view.is_transposed else links[worker.switch]
    message = pb.View(
        generation=view.generation,
        num_workers=view.num_workers,
        members=[
            pb.Member(
                worker_id=member.worker_id,
                address=member.address,
                peer_address=member.peer_address,
                peer_port=member.peer_port,
            )
            for member in view.members
        ],
        trees=[
            _own_tree(tree, roots[tree.root.switch])
            if view.is_transposed
            else _tree(tree, tree.node(worker.switch))
            for tree in view.trees
        ],
        switch_address=link.config.service_address,
        switch_mac=link.config.service_mac,
        switch_udp_port=wire.UDP_PORT,
        quorum=view.quorum if view.straggler.quorum is not None else 0,
        deadline_s=_deadline_s(view),
        reason=view.reason,
        max_priority=view.max_priority,
        is_on_host=_is_on_host(view, link),
    )
    if (tolerance := view.straggler.tolerance) is not None:
        message.tolerance.loss = tolerance.loss
        message.tolerance.worker_floor = tolerance.least_of_worker
        message.tolerance.stale = tolerance.stale
    if view.is_on_switch:
        attachment = view.attachment(worker.worker_id)
        message.child_id = attachment.child_id
        message.neighbours.extend(
            member.worker_id
            for member in view.members
            if view.is_transposed or member.switch == worker.switch
        )
        message.worker_bitmap = attachment.worker_bitmap
    return message


def _is_on_host(view: View, link: SwitchSession) -> bool:
    """Return whether a view has one switch, and this is a process on a host."""
    switches = {node.switch for tree in view.trees for node in tree.nodes}
    return len(switches) == 1 and bool(link.config.on_host)


def _own_tree(tree: Tree, root: SwitchSession) -> pb.Tree:
    """Return a tree whose only switch workers send to."""
    message = _tree(tree, tree.root)
    message.switch_address = root.config.service_address
    message.switch_udp_port = wire.UDP_PORT
    return message


def _tree(tree: Tree, node: TreeNode | None) -> pb.Tree:
    """Return a tree as a worker sees it whose switch is a node of it."""
    message = pb.Tree(tree_id=tree.tree_id, slot_count=tree.slot_count)
    if node is not None and all(child.contributor_mask for child in node.children):
        message.level = tree.level(node)
        masks = [child.contributor_mask for child in node.children]
        if sum(mask.bit_count() for mask in masks) == node.num_workers:
            message.members = sum(masks)
    return message


def _deadline_s(view: View) -> float:
    """Return after how many seconds workers end rounds; 0: never."""
    straggler = view.straggler
    has_quorum_alone = straggler.quorum is not None and straggler.deadline_s is None
    if has_quorum_alone and any(len(tree.nodes) > 1 for tree in view.trees):
        return QUORUM_DEADLINE_S
    return straggler.deadline_s or 0.0


def join_reply(
    view: View,
    worker: Worker,
    links: Mapping[str, SwitchSession],
    *,
    boundary: int,
    lease_s: float,
    secret: bytes,
) -> pb.ControllerMessage:
    """Return the message that lets a worker send; `secret`: for coming back, the worker's own."""
    program = links[worker.switch].program
    return pb.ControllerMessage(
        join_reply=pb.JoinReply(
            job_number=view.job_number,
            view=encode_view(view, worker, links),
            boundary=boundary,
            values_per_packet=program.values_per_packet,
            wire_version=program.wire_version,
            lease_s=lease_s,
            resume_secret=secret,
        )
    )


def commit(
    view: View,
    worker: Worker,
    links: Mapping[str, SwitchSession],
    *,
    boundary: int,
    source_worker: WorkerId,
) -> pb.ControllerMessage:
    """Return the message that sends a worker over to another view."""
    return pb.ControllerMessage(
        view_commit=pb.ViewCommit(
            view=encode_view(view, worker, links),
            boundary=boundary,
            source_worker=source_worker,
        )
    )
