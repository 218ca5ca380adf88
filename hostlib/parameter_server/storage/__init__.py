# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a parameter server keeps on disk: a log of pushes, and snapshots of its state."""

from .log import LogEvents, LogOptions, WriteAheadLog
from .new_storage import NewStorage, check_free
from .server_storage import ServerStorage
from .snapshot import SnapshotStore, StoredSnapshot

__all__ = [
    "LogEvents",
    "LogOptions",
    "NewStorage",
    "ServerStorage",
    "SnapshotStore",
    "StoredSnapshot",
    "WriteAheadLog",
    "check_free",
]
