# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Updates of dense tensors whose transfers a scheduler plans, after MLfabric."""

from ..transfer_options import TransferOptions
from .allreduces.fabric_member import FabricMember
from .committed_update import CommittedUpdate
from .fabric_worker import FabricWorker, PushOutcome
from .outgoing import PartOutcome

__all__ = [
    "CommittedUpdate",
    "FabricMember",
    "FabricWorker",
    "PartOutcome",
    "PushOutcome",
    "TransferOptions",
]
