# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Finds Mininet, which is not installed with Switchfold and has no types."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final

from .errors import TargetMissingError

DEBIAN_PACKAGES: Final = "/usr/lib/python3/dist-packages"


def load_mininet(name: str) -> Any:
    """Import a module of Mininet, also of Debian's package from a virtual environment.

    Raises TargetMissingError.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        sys.path.append(DEBIAN_PACKAGES)  # at the end, so that nothing else is taken from there
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        raise TargetMissingError(
            f"Mininet is not on this machine ({exc}): apt-get install mininet"
        ) from exc
    finally:
        sys.path.remove(DEBIAN_PACKAGES)
