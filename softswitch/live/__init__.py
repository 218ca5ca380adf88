# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The live view of a running switch: rates of ports, tables and entries in the terminal."""

from .sampler import Sample, Sampler
from .view import LiveFile, LiveView

__all__ = ["LiveFile", "LiveView", "Sample", "Sampler"]
