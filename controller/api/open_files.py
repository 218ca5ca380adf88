# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The limit of open files, of which the connection of each worker is one.

At the limit the kernel would keep further workers waiting without an answer, and the controller
could not reach its switches. So some files stay free: workers are refused before.
"""

from __future__ import annotations

import os
import resource
from typing import Final

from ..errors import NoRoomError

RESERVED: Final = 64
"""Files that are kept for switches, operators and workers that resume or are refused."""
_WANTED: Final = 1 << 17
"""Above twice the workers of the largest job."""


def raise_limit() -> int:
    """Let this process open as many files as it may and can need; return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = max(soft, min(hard, _WANTED))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return limit


def check_room() -> None:
    """Raise NoRoomError unless this process can open RESERVED files more."""
    if not _can_open(RESERVED):
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        raise NoRoomError(
            f"the controller may open {limit} files, one for each worker, and fewer than "
            f"{RESERVED} are left; raise its limit of open files (ulimit -Hn, or LimitNOFILE of "
            "systemd) and start it again, or end jobs with 'switchfold job stop'"
        )


def _can_open(count: int) -> bool:
    numbers: list[int] = []
    try:
        for _ in range(count):
            numbers.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    finally:
        for number in numbers:
            os.close(number)
    return True
