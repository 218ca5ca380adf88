# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether an update is of a model that is too old by now."""

from __future__ import annotations

from ....errors import StaleUpdateError
from ..update_port import IncomingUpdate


def staleness(update: IncomingUpdate, version: int, tau_max: int) -> StaleUpdateError | None:
    """Return why an update, or one in a sum, is too old; None if none is.

    `version`: of the model to which it would be applied. `tau_max`: the largest delay allowed.
    """
    for now, member in enumerate(update.members, version):
        delay = now - member.version
        if delay > tau_max:
            text = (
                f"update {member.number} of worker {member.worker_id} was computed on version"
                f" {member.version}, and the model has version {now}: the delay {delay}"
                f" exceeds tau_max {tau_max}. Get the model, and compute it again"
            )
            return StaleUpdateError(text, delay, tau_max)
    return None
