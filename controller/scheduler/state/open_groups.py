# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Groups that are under way: who is at the aggregator, and when the sum leaves.

The paper's rule for members that are late was not available to us; this one is ours. A host sends
its sum when all members are there. After a slack, it sends what it has, and the others are given
up: their workers push them again, or drop them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import UnknownTransferError
from ..planning.sum_size import SumSize
from ..transfers import TransferGrant, TransferGroup
from .open_transfers import Carried, OpenTransfers

_EPSILON_S = 1e-9


@dataclass(kw_only=True)
class GroupUnderWay:
    """A group whose sum is not at the server."""

    group: TransferGroup
    under_way: set[int]
    """Transfer ids of members that the server does not have."""
    missing: set[int]
    """Of these, members that are not at the host that gathers them."""
    is_sent: bool = False
    """The host has been told to send the sum."""


class OpenGroups:
    """All groups of a job that are under way, by their number."""

    def __init__(self, open_transfers: OpenTransfers) -> None:
        self._open = open_transfers
        self._num_groups = 0
        self._groups: dict[int, GroupUnderWay] = {}

    def add(self, group: TransferGroup) -> TransferGroup:
        """Number a group whose sum is reserved, and keep its reservation."""
        numbered = replace(group, group_id=self._num_groups)
        self._num_groups += 1
        ids = {member.request.transfer_id for member in group.members}
        self._groups[numbered.group_id] = GroupUnderWay(
            group=numbered, under_way=ids, missing=set() if group.is_switch else set(ids)
        )
        self._open.hold((Carried.SUM, numbered.group_id), group.links, group.spans)
        return numbered

    def leave(self, group: TransferGroup, transfer_id: int, now_s: float) -> None:
        """Note that a member is at the server, or given up."""
        found = self._groups[group.group_id]
        found.under_way.discard(transfer_id)
        found.missing.discard(transfer_id)
        if not found.under_way:
            self._open.release((Carried.SUM, group.group_id), now_s)
            del self._groups[group.group_id]

    def gather(self, grant: TransferGrant, now_s: float) -> TransferGroup | None:
        """Note that a member is at its host; return the group if its sum can leave now."""
        transfer_id = grant.request.transfer_id
        found = self._groups.get(grant.group.group_id) if grant.group else None
        if found is None or transfer_id not in found.missing:
            raise UnknownTransferError(
                f"transfer {transfer_id} is not on its way to a host that gathers it: it goes to "
                "its server or through a switch, or is there already"
            )
        found.missing.discard(transfer_id)
        self._open.release((Carried.UPDATE, transfer_id), now_s)
        return None if found.missing else self.send(found, now_s)

    def send(self, found: GroupUnderWay, now_s: float) -> TransferGroup:
        """Return the group without those that are missing; plan its sum again if it is late."""
        group = found.group
        found.is_sent = True
        there = found.under_way - found.missing
        members = tuple(each for each in group.members if each.request.transfer_id in there)
        if now_s <= group.gathered_s + _EPSILON_S and len(members) == len(group.members):
            return group
        self._open.release((Carried.SUM, group.group_id), now_s)
        residual = self._open.residual
        size = SumSize()
        bits = [size.add(member.request) for member in members][-1]
        start_s = max(now_s, group.gathered_s)
        links = residual.network.route(group.aggregator, group.server)
        spans = residual.plan(links, bits, start_s)
        residual.reserve(links, spans)
        self._open.hold((Carried.SUM, group.group_id), links, spans)
        found.group = replace(
            group,
            members=members,
            gathered_s=start_s,
            links=links,
            spans=spans,
            end_s=spans[-1].end_s if spans else start_s,
        )
        return found.group

    def gathering(self, server: str) -> list[GroupUnderWay]:
        """Return the groups for a server whose hosts have not been told to send, oldest first."""
        return [
            each
            for each in self._groups.values()
            if not each.group.is_switch and not each.is_sent and each.group.server == server
        ]
