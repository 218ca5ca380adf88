# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""gRPC, loaded so that it logs errors only.

A process that forks while its session is open, as PyTorch's DataLoader does for its workers, gets a
line of gRPC's on stderr each time: "Other threads are currently calling into gRPC, skipping fork()
handlers". It is right, and of level INFO: a forked process does not use its parent's session.
"""

from __future__ import annotations

import importlib
import os
from typing import Any


def load_grpc() -> Any:
    """Return the module; of type Any, as grpcio ships no type information."""
    # Its C core reads the variable when it is loaded, and never again.
    if "GRPC_VERBOSITY" in os.environ:
        return importlib.import_module("grpc")
    os.environ["GRPC_VERBOSITY"] = "ERROR"
    try:
        return importlib.import_module("grpc")
    finally:
        del os.environ["GRPC_VERBOSITY"]
