# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Names of threads for the tools of the system, which Python gives them from 3.14 on."""

import threading
from contextlib import suppress
from pathlib import Path


def name_this_thread(name: str) -> None:
    """Show the calling thread by a name of 15 bytes at most, as in `top -H`."""
    with suppress(OSError):  # a system without /proc, or one that lets nobody write there
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
