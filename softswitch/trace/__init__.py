# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packet traces: what the program did to each packet, step by step, with P4 source lines."""

from .narrator import Narrator
from .recorder import Recorder
from .step import Step
from .writers import write_json, write_text

__all__ = ["Narrator", "Recorder", "Step", "write_json", "write_text"]
