# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Updates of one server from their decision to their commit."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..commit_sequence import CommitSequence
from ..errors import InvalidTransferError
from ..grouping import AggregationPlaces
from ..server_queue import ServerQueue
from ..tally import WorkerTally
from ..training.commit_order import ArrivalCommits, CommitOrder
from ..training.options import SchedulerOptions
from ..transfers import TransferDecision, TransferGrant, TransferGroup
from .batch_planning import plan_batch
from .expiry import Expiry, PartialSum, lost_s
from .open_groups import OpenGroups
from .open_transfers import Carried, OpenTransfers
from .server_replica import ReplicaOptions, ServerReplica


class ServerTransfers:
    """Decides on batches, and counts what arrives, is applied, or is given up."""

    def __init__(
        self,
        queue: ServerQueue,
        options: SchedulerOptions,
        open_transfers: OpenTransfers,
        groups: OpenGroups,
        tallies: Mapping[str, WorkerTally],
    ) -> None:
        """`tallies` makes the tally of a worker that it does not have."""
        self.queue = queue
        self._options = options
        self._open = open_transfers
        self._groups = groups
        self._tallies = tallies
        replica = options.replicas.get(queue.server)
        self.replica = replica and ServerReplica(replica, open_transfers, queue.version)
        self._ready: deque[TransferGrant] = deque()
        """Arrived and next in the sequence; they wait for the replica."""
        self._arrived: set[int] = set()
        """Transfers that are at the server, which has not applied them yet."""
        self._commits: CommitSequence[TransferGrant] | ArrivalCommits[TransferGrant]
        if options.commit_order is CommitOrder.SEQUENCE:
            self._commits = CommitSequence()
        else:
            tau_max = options.bound and options.bound.tau_max
            self._commits = ArrivalCommits(tau_max, queue.version)

    def under_way(self, transfer_id: int) -> TransferGrant | None:
        """Return the grant of a transfer that is not at the server, None if there is none."""
        return None if transfer_id in self._arrived else self.queue.granted.get(transfer_id)

    def decide(self, now_s: float, places: AggregationPlaces | None) -> list[TransferDecision]:
        """Close the batch; return grants in commit order, then drops.

        A server with a replica, which needs each update, gets no groups.
        """
        places = None if self.replica else places
        queue = self.queue
        batch = plan_batch(self._open.residual, queue, self._options, now_s, places)
        grants = batch.grants
        if self.replica:
            grants = self.replica.plan(batch.residual, queue.granted.values(), grants, now_s)
        self._open.residual.adopt(batch.residual)
        for request in list(queue.waiting.values()):
            queue.remove(request.transfer_id)
            self._tallies[request.worker].waiting -= 1
        grants = self._number(grants)
        for grant in grants:
            self._hold(grant)
            self._tallies[grant.request.worker].granted += 1
        for drop in batch.drops:
            self._tallies[drop.request.worker].drops += 1
        return [*grants, *batch.drops]

    def arrive(self, transfer_id: int, now_s: float) -> list[TransferGrant]:
        """Note that an update is at the server; return what the server can apply now."""
        grant = self.queue.granted[transfer_id]
        self._release(grant, now_s)
        self._arrived.add(transfer_id)
        return self._commit(self._commits.arrive(grant.sequence, grant), now_s)

    def withdraw(self, transfer_id: int, now_s: float) -> list[TransferGrant]:
        """Give up an update that waits or is under way; return what can be applied now."""
        if transfer_id in self.queue:
            tally = self._tallies[self.queue.remove(transfer_id).worker]
            tally.waiting -= 1
            tally.withdrawn += 1
            return []
        grant = self.queue.granted.pop(transfer_id)
        tally = self._tallies[grant.request.worker]
        tally.granted -= 1
        tally.withdrawn += 1
        self._release(grant, now_s)
        if self.replica:
            self.replica.give_up(grant.request, now_s)
        return self._commit(self._commits.skip(grant.sequence), now_s)

    def replica_received(self, transfer_id: int, now_s: float) -> list[TransferGrant]:
        """Note that the replica has an update; return what the server can apply now."""
        assert self.replica, "the caller has looked it up"
        self.replica.receive(transfer_id, now_s)
        return self._commit([], now_s)

    def add_replica(self, options: ReplicaOptions, *, catches_up: bool) -> None:
        """Replicate from now on; InvalidTransferError with a replica.

        The same while a grant is open, unless the replica catches up.
        """
        open_grants = self.queue.granted
        if self.replica or (open_grants and not catches_up):
            raise InvalidTransferError(
                f"{self.queue.server} has {'a replica' if self.replica else 'open grants'}: a"
                " replica joins a server without one, when all that is granted is applied"
            )
        elsewhere = open_grants if catches_up else None
        self.replica = ServerReplica(options, self._open, self.queue.version, elsewhere)

    def remove_replica(self, now_s: float) -> list[TransferGrant]:
        """Go on without the replica; return what the server can apply now."""
        if self.replica:
            self.replica.release_all(now_s)
            self.replica = None
        return self._commit([], now_s)

    def abandon(self, now_s: float) -> list[TransferGrant]:
        """Give up all that is granted and not applied; return it, in commit order."""
        grants = list(self.queue.granted.values())
        for grant in grants:
            if grant.request.transfer_id not in self._arrived:
                self._release(grant, now_s)
            tally = self._tallies[grant.request.worker]
            tally.granted -= 1
            tally.withdrawn += 1
        self.queue.granted.clear()
        return grants

    def gather(self, grant: TransferGrant, now_s: float) -> TransferGroup | None:
        """Note that an update is at its host; return the group if its sum can leave."""
        group = self._groups.gather(grant, now_s)
        if group:
            self._replace_group(group)
        return group

    def next_expiry_s(self) -> float | None:
        """Return when `expire` has something to do, None for never."""
        times = [lost_s(grant, self._options.lost_after) for grant in self._late_ones()]
        slack_s = self._options.gather_slack_s
        if slack_s is not None:
            gathering = self._groups.gathering(self.queue.server)
            times += [each.group.gathered_s + slack_s for each in gathering]
        return min((each for each in times if each is not None), default=None)

    def expire(self, now_s: float) -> Expiry:
        """Give up what is too late; the network is up to date."""
        withdrawn: list[TransferGrant] = []
        partial_sums: list[PartialSum] = []
        ready: list[TransferGrant] = []

        def give_up(grant: TransferGrant) -> TransferGrant:
            withdrawn.append(grant)
            ready.extend(self.withdraw(grant.request.transfer_id, now_s))
            return grant

        slack_s = self._options.gather_slack_s
        for each in self._groups.gathering(self.queue.server) if slack_s is not None else ():
            assert slack_s is not None
            if each.group.gathered_s + slack_s > now_s:
                continue
            missing = [give_up(self.queue.granted[number]) for number in sorted(each.missing)]
            if each.under_way:
                group = self._groups.send(each, now_s)
                self._replace_group(group)
                partial_sums.append(PartialSum(group=group, missing=missing))
        for grant in list(self._late_ones()):
            time_s = lost_s(grant, self._options.lost_after)
            if time_s is not None and time_s <= now_s:
                give_up(grant)
        return Expiry(withdrawn=withdrawn, partial_sums=partial_sums, ready=ready)

    def _late_ones(self) -> Iterable[TransferGrant]:
        """Return the grants that are not at the server and may be lost."""
        if self._options.lost_after == math.inf:
            return []
        granted = self.queue.granted.items()
        return [grant for number, grant in granted if number not in self._arrived]

    def _number(self, grants: Iterable[TransferGrant]) -> list[TransferGrant]:
        """Return grants whose groups have numbers of the job."""
        numbered: dict[int, TransferGroup] = {}
        found: list[TransferGrant] = []
        for grant in grants:
            group = grant.group
            if group:
                if group.group_id not in numbered:
                    numbered[group.group_id] = self._groups.add(group)
                group = numbered[group.group_id]
            found.append(replace(grant, group=group) if group else grant)
        return found

    def _hold(self, grant: TransferGrant) -> None:
        queue, planned = self.queue, grant.planned
        queue.granted[grant.request.transfer_id] = grant
        queue.next_sequence = grant.sequence + 1
        if isinstance(self._commits, ArrivalCommits):
            self._commits.expect(grant.sequence, grant.request.version)
        self._open.hold(
            (Carried.UPDATE, grant.request.transfer_id),
            planned.links,
            planned.spans,
            may_be_late=grant.group is None or self._options.gather_slack_s is not None,
        )

    def _replace_group(self, group: TransferGroup) -> None:
        for member in group.members:
            number = member.request.transfer_id
            self.queue.granted[number] = replace(self.queue.granted[number], group=group)

    def _release(self, grant: TransferGrant, now_s: float) -> None:
        """Give back what is left of the reservations for an update, and for its group's sum."""
        transfer_id = grant.request.transfer_id
        self._open.release((Carried.UPDATE, transfer_id), now_s)
        if grant.group:
            self._groups.leave(grant.group, transfer_id, now_s)

    def _commit(self, arrived: list[TransferGrant], now_s: float) -> list[TransferGrant]:
        """Count what the server applies now, as far as its replica allows; return it."""
        self._ready += arrived
        grants: list[TransferGrant] = []
        while self._ready and (not self.replica or self.replica.may_apply(self._ready[0])):
            grant = self._ready.popleft()
            grants.append(grant)
            if self.replica:
                self.replica.applied(grant, now_s)
            transfer_id = grant.request.transfer_id
            self.queue.version += 1
            del self.queue.granted[transfer_id]
            self._arrived.discard(transfer_id)
            tally = self._tallies[grant.request.worker]
            tally.granted -= 1
            tally.commits += 1
        return grants
