# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Control operations on the replication engine: multicast groups and clone sessions."""

from __future__ import annotations

from collections.abc import Sequence

from ..compilation.runtime_library import ReplicaT
from .native import NativeSwitch


class Replication:
    """The replication engine of a switch; atomicity and errors as in Tables."""

    def __init__(self, native: NativeSwitch) -> None:
        self._native = native

    def set_multicast_group(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Create or replace a multicast group of (egress port, replica id) pairs."""
        array = (ReplicaT * len(replicas))(*replicas)
        self._native.control(
            f"multicast group {group}", "switch_set_multicast_group", group, array, len(replicas)
        )

    def delete_multicast_group(self, group: int) -> None:
        """Remove a multicast group."""
        self._native.control(f"multicast group {group}", "switch_delete_multicast_group", group)

    def set_clone_session(
        self,
        session_id: int,
        replicas: Sequence[tuple[int, int]],
        *,
        packet_length_bytes: int = 0,
    ) -> None:
        """Create or replace a clone session of (egress port, instance) pairs; ids 0 to 32767.

        Copies are cut to `packet_length_bytes` when they leave; 0 leaves them whole.
        """
        array = (ReplicaT * len(replicas))(*replicas)
        self._native.control(
            f"clone session {session_id}",
            "switch_set_clone_session",
            session_id,
            array,
            len(replicas),
            packet_length_bytes,
        )

    def delete_clone_session(self, session_id: int) -> None:
        """Remove a clone session."""
        self._native.control(
            f"clone session {session_id}", "switch_delete_clone_session", session_id
        )
