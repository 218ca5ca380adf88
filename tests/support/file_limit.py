# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The limit of open files of this process, lowered for a while."""

from __future__ import annotations

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager

FILES = resource.RLIMIT_NOFILE


def leave_free(count: int) -> None:
    """Let this process open at most so many files more.

    Other threads must not close or open files: mark the test `own_process`.
    """
    _, most = resource.getrlimit(FILES)
    resource.setrlimit(FILES, (most, most))
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(count + 1)]  # the lowest free numbers
    resource.setrlimit(FILES, (taken[-1], most))
    for each in taken:
        os.close(each)


@contextmanager
def same_limit_after() -> Generator[None]:
    """Restore the limit in the end."""
    before = resource.getrlimit(FILES)
    try:
        yield
    finally:
        resource.setrlimit(FILES, before)
