# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a session needs of the control plane; the real one speaks gRPC and is imported lazily."""

from __future__ import annotations

from typing import Protocol


class ControllerLink(Protocol):
    """A worker's membership in a job."""

    def barrier(self, name: str, timeout_s: float) -> None:
        """Wait until all workers have reached the barrier of this name."""
        ...

    def close(self) -> None:
        """Leave the job."""
        ...
