# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The host path: allreduce of integer lanes among workers over TCP, for jobs without a switch."""

from hostlib.host_path.cost import Algorithm, LinkCosts
from hostlib.host_path.path import HostPath, Standing
from hostlib.host_path.reduction import LaneParts, Reduction

__all__ = ["Algorithm", "HostPath", "LaneParts", "LinkCosts", "Reduction", "Standing"]
