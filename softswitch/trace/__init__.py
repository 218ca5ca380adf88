# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packet traces: what the program did to each packet, step by step, with P4 source lines."""

from softswitch.trace.narrator import Narrator
from softswitch.trace.recorder import Recorder
from softswitch.trace.step import Step
from softswitch.trace.writers import write_json, write_text

__all__ = ["Narrator", "Recorder", "Step", "write_json", "write_text"]
