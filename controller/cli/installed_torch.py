# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Whether PyTorch is installed; it is not loaded to find out."""

from __future__ import annotations

import importlib.util


def has_torch() -> bool:
    """Return whether PyTorch is installed.

    A folder that is called torch, in one where Python looks for modules, passes for a package
    without files: it is none.
    """
    found = importlib.util.find_spec("torch")
    return found is not None and found.origin is not None
