# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""From the model of a P4 program to C: one module per construct."""

from .emit import generate, generate_traced
from .tracing import TracePoint, traced_fields

__all__ = ["TracePoint", "generate", "generate_traced", "traced_fields"]
