# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Host allreduce: workers sum integers among themselves over TCP, without a switch."""

from .allreduce import HostAllreduce, Standing
from .cost import Algorithm, LinkCosts
from .reduction import Reduction

__all__ = ["Algorithm", "HostAllreduce", "LinkCosts", "Reduction", "Standing"]
