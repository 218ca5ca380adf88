# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Arbitration with a switch that never takes an election id above our own term.

finsy's arbitrator takes the highest id that the switch remembers as soon as there is no primary. A
controller that another one has replaced would take the other's id, and the switch its writes.
"""

from __future__ import annotations

from typing import Any, cast

from finsy import Switch
from finsy.grpcutil import GRPCStatusCode
from finsy.p4arbitrator import Arbitrator
from finsy.p4client import P4RpcStatus
from finsy.proto import U128, p4r


class TermArbitrator(Arbitrator):
    """finsy's, but with our election id or a lower one; lower where another client has ours."""

    highest: int | None = None
    """The election id that a switch without a primary remembers, and that ours is below."""

    async def handshake(self, switch: Switch, *, conflict: bool = False) -> None:
        """Perform the handshake; afterwards we are primary, or not."""
        self.highest = None
        if conflict:
            self.election_id -= 1
        response = await self._arbitration_request(switch)
        self.primary_id = U128.decode(response.election_id)
        code = P4RpcStatus.from_status(response.status).code
        if code == GRPCStatusCode.NOT_FOUND:
            self.highest = self.primary_id
        self.is_primary = code == GRPCStatusCode.OK

    async def update(self, switch: Switch, msg: p4r.MasterArbitrationUpdate) -> None:
        """Take a later message of the switch."""
        highest = U128.decode(msg.election_id)
        is_without = P4RpcStatus.from_status(msg.status).code == GRPCStatusCode.NOT_FOUND
        if is_without and highest > self.initial_election_id:
            self.is_primary = False
            self.primary_id = self.highest = highest
            cast("Any", switch)._become_backup()
        else:
            self.highest = None
            await super().update(switch, msg)

    async def _request_primary(self, switch: Switch) -> None:
        """Ask with our own id, which no remembered one exceeds."""
        self.election_id = self.initial_election_id
        await self._send(switch)


def arbitrate_by_term(switch: Switch) -> None:
    """Let a switch that is not connected yet arbitrate by our term: finsy offers no option."""
    cast("Any", switch)._arbitrator = TermArbitrator(switch.options.initial_election_id)


def highest_without_primary(switch: Switch) -> int | None:
    """Return the election id that we must exceed to become primary; None if there is a primary."""
    arbitrator: TermArbitrator = cast("Any", switch)._arbitrator
    return arbitrator.highest
