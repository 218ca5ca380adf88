# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The replica of one server: what it has, what is on its path there, and which commits wait for it.

The replica applies what it has in the order of the server's commits, and nothing that the server
has not applied.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..divergence import DivergenceBound
from ..network import ResidualNetwork
from ..replication import LackedUpdate, plan_replica
from ..transfers import PlannedTransfer, TransferGrant, TransferRequest
from .open_transfers import Carried, OpenTransfers


@dataclass(frozen=True, kw_only=True)
class ReplicaOptions:
    """The replica of a server."""

    host: str
    bound: DivergenceBound
    earlier_step: float = 0.0
    """The most by which the momentum of both models can move them at once."""


@dataclass(frozen=True, kw_only=True)
class Promotion:
    """What has become of a server's transfers when its replica took its place."""

    server: str
    """Host of the replica, which is the server now."""
    version: int
    """Updates that its model contains. Workers with newer models get this one."""
    lost: Sequence[int]
    """Transfer ids of updates that the old server had applied and the replica lacks."""
    distance: float
    """Most by which the lost updates have moved the model."""
    withdrawn: Sequence[TransferGrant]
    """Those that were under way; workers may push their updates again, with new ids."""
    refused: Sequence[TransferRequest]
    """Waiting requests of updates on models that are newer than the replica's; withdrawn, too."""


@dataclass(frozen=True)
class _AppliedUpdate:
    request: TransferRequest
    step: float
    carried: float
    """See DivergenceBound."""
    commit_s: float


class ServerReplica:
    """Plans transfers to a replica, and bounds how far the server may be ahead of it."""

    def __init__(
        self,
        options: ReplicaOptions,
        open_transfers: OpenTransfers,
        version: int,
        open_grants: Iterable[int] | None = None,
    ) -> None:
        """`open_grants`: ids of updates under way to the server, which the replica gets otherwise.

        It is catching up then, and no commit waits for it until `caught_up`. None: it has all that
        the server has, and nothing is under way.
        """
        self.host = options.host
        self.is_catching_up = open_grants is not None
        """It lacks some of the server's updates, and the scheduler does not know which."""
        self.version = version
        """Updates that the replica's model contains; while it catches up, will contain."""
        self.lacked: deque[_AppliedUpdate] = deque()
        """Updates that the server has applied, from the first that the replica does not have."""
        self._bound = options.bound
        self._open = open_transfers
        self._planned: dict[int, PlannedTransfer] = {}
        """By id of each transfer that is granted or lacked."""
        self._received: set[int] = set()
        """Ids of updates that the replica holds and has not applied."""
        self._elsewhere = set(open_grants or ())
        """Ids of updates that are not sent to it."""
        self._carried_at_replica = options.earlier_step
        """By the last update that it has applied."""

    @property
    def distance(self) -> float:
        """Return the most by which the server's model differs from the replica's."""
        return sum(each.step for each in self.lacked)

    def plan(
        self,
        residual: ResidualNetwork,
        open_grants: Iterable[TransferGrant],
        new_grants: Sequence[TransferGrant],
        now_s: float,
    ) -> list[TransferGrant]:
        """Return new grants with transfers to the replica, and with the commits that it allows.

        `residual` has the server's plan, and gets the replica's.
        """
        updates = [(each.request, min(each.commit_s, now_s)) for each in self.lacked]
        sent = [each for each in open_grants if each.request.transfer_id not in self._elsewhere]
        updates += [(_as_sent(grant), grant.commit_s) for grant in (*sent, *new_grants)]
        bound = replace(self._bound, div_max=math.inf) if self.is_catching_up else self._bound
        lacked: list[LackedUpdate] = []
        commit_s = 0.0
        for request, time_s in updates:
            commit_s = max(commit_s, time_s)
            planned = self._planned.get(request.transfer_id)
            lacked.append(LackedUpdate(request=request, commit_s=commit_s, planned=planned))
        plan = plan_replica(
            residual, lacked, self.host, now_s, bound, earlier_step=self._carried_at_replica
        )
        found: list[TransferGrant] = []
        first = len(lacked) - len(new_grants)
        for place, grant in enumerate(new_grants, first):
            transfer = replace(plan.transfers[place], request=grant.request)
            self._planned[grant.request.transfer_id] = transfer
            self._open.hold(
                self._key(grant.request),
                transfer.links,
                transfer.spans,
                may_be_late=not self.is_catching_up,  # workers keep it until it has caught up
            )
            found.append(replace(grant, commit_s=plan.commits_s[place], replica_transfer=transfer))
        return found

    def may_apply(self, grant: TransferGrant) -> bool:
        """Return whether the server may apply an update, the next in the sequence."""
        if self.is_catching_up:
            return True
        if not self.lacked and grant.request.transfer_id in self._received:
            return True
        return self.distance + self._next_step(grant) <= self._bound.div_max

    def applied(self, grant: TransferGrant, now_s: float) -> None:
        """Note that the server has applied an update, the next in the sequence."""
        if grant.request.transfer_id in self._elsewhere:
            self._elsewhere.remove(grant.request.transfer_id)
            self.version += 1
            return
        self._lack(_as_sent(grant), now_s)
        self._catch_up()

    def is_expected(self, transfer_id: int) -> bool:
        """Return whether an update is on its path to the replica."""
        return transfer_id in self._planned and transfer_id not in self._received

    def receive(self, transfer_id: int, now_s: float) -> None:
        """Note that the replica has an update."""
        self._open.release((Carried.REPLICA, transfer_id), now_s)
        self._received.add(transfer_id)
        self._catch_up()

    def caught_up(self, earlier_step: float) -> None:
        """Note that it has all updates which are not sent to it: the bound counts from now on.

        `earlier_step`: the most by which the momentum of its model can move that at once.
        """
        self.is_catching_up = False
        self._carried_at_replica = earlier_step
        lacked, self.lacked = self.lacked, deque()
        for each in lacked:
            self._lack(each.request, each.commit_s)

    def give_up(self, request: TransferRequest, now_s: float) -> None:
        """Forget an update that the server will not apply."""
        self._elsewhere.discard(request.transfer_id)
        self._open.release(self._key(request), now_s)
        self._planned.pop(request.transfer_id, None)
        self._received.discard(request.transfer_id)

    def release_all(self, now_s: float) -> None:
        """Give back all reservations."""
        for transfer_id in self._planned:
            self._open.release((Carried.REPLICA, transfer_id), now_s)

    def _next_step(self, grant: TransferGrant) -> float:
        return self._bound.step(self._carried, _as_sent(grant).norm)

    @property
    def _carried(self) -> float:
        """What the updates that the server has applied have carried."""
        return self.lacked[-1].carried if self.lacked else self._carried_at_replica

    def _lack(self, request: TransferRequest, commit_s: float) -> None:
        """Note the next update that the server has and the replica lacks."""
        norm, earlier = request.norm, self._carried
        step = self._bound.step(earlier, norm)
        carried = self._bound.carried(earlier, norm, is_sparse=request.is_sparse)
        self.lacked.append(_AppliedUpdate(request, step, carried, commit_s))

    def _catch_up(self) -> None:
        while self.lacked and self.lacked[0].request.transfer_id in self._received:
            done = self.lacked.popleft()
            self._received.remove(done.request.transfer_id)
            del self._planned[done.request.transfer_id]
            self._carried_at_replica = done.carried
            self.version += 1

    @staticmethod
    def _key(request: TransferRequest) -> tuple[Carried, int]:
        return Carried.REPLICA, request.transfer_id


def _as_sent(grant: TransferGrant) -> TransferRequest:
    """Return a request with the norm that the update has after the grant's factor."""
    return replace(grant.request, norm=grant.request.norm * grant.learning_rate_factor)
