# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What is given up because it is too late, and what goes on without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..transfers import TransferGrant, TransferGroup


@dataclass(frozen=True, kw_only=True)
class PartialSum:
    """A host must send the sum of what it has gathered."""

    group: TransferGroup
    """With the members that are there, and new times of the sum."""
    missing: Sequence[TransferGrant]
    """Those that are not, which are withdrawn."""


@dataclass(frozen=True, kw_only=True)
class Expiry:
    """What has become of late transfers."""

    withdrawn: Sequence[TransferGrant]
    """Their updates do not count if they come; workers may push them again, with new ids."""
    partial_sums: Sequence[PartialSum]
    ready: Sequence[TransferGrant]
    """What the servers can apply now, in commit order: they need not wait for the others."""


def lost_s(grant: TransferGrant, lost_after: float) -> float | None:
    """Return when an update counts as lost that is not at its server; None for never.

    `lost_after` is a multiple of the planned time from the first byte to the last, with the
    gathering of its group.
    """
    group = grant.group
    legs = [grant.planned.spans]
    if group:
        legs = [group.spans, *(member.spans for member in group.members)]
    starts = [spans[0].start_s for spans in legs if spans]
    if not starts:
        return None
    end_s = group.end_s if group else grant.planned.end_s
    return min(starts) + lost_after * (end_s - min(starts))
