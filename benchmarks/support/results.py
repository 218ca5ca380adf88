# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Files in which benchmarks leave what they measured."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def parameters_of(options: argparse.Namespace) -> dict[str, str]:
    """Return the options of a benchmark as text."""
    return {key: str(value) for key, value in vars(options).items()}


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write what was measured, and make the folder if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
