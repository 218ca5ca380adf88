# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The host path: allreduce of integer lanes among workers over TCP, for jobs without a switch."""

from .allreduce import HostAllreduce, Standing
from .cost import Algorithm, LinkCosts
from .reduction import Reduction

__all__ = ["Algorithm", "HostAllreduce", "LinkCosts", "Reduction", "Standing"]
