# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""In-network aggregation for distributed training.

What trainers need is here: `from switchfold import Session`. The folders of the repository are
subpackages: `hostlib`, `controller`, `softswitch`, `bmv2_topos` and `p4src`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .hostlib import *  # noqa: F403


def __getattr__(name: str) -> object:
    # Imported when first used: commands need other parts only.
    hostlib = importlib.import_module(f"{__name__}.hostlib")
    if name not in hostlib.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(hostlib, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *importlib.import_module(f"{__name__}.hostlib").__all__})
