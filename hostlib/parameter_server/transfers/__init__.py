# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Updates of dense tensors whose transfers a scheduler plans, after MLfabric."""

from ..transfer_options import TransferOptions
from .fabric_worker import FabricWorker, PushOutcome
from .outgoing import PartOutcome
from .update_service import CommittedUpdate

__all__ = [
    "CommittedUpdate",
    "FabricWorker",
    "PartOutcome",
    "PushOutcome",
    "TransferOptions",
]
