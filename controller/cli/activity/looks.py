# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Looks at jobs through a controller, at intervals."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import count
from typing import Final, Protocol

from ...api.operator_api import activity_pb2 as pb
from ...errors import OperatorRefusedError
from .window import ActivityWindow

INTERVAL_S: Final = 0.2
LEAST_LOOKS: Final = 4


class ActivityReader(Protocol):
    """Reads a job's activity; `controller.api.operator_client.OperatorClient` is one."""

    def show_activity(self, name: str) -> pb.JobActivity:
        """Return the activity now; OperatorRefusedError if the job does not live."""
        ...


def look_at(
    reader: ActivityReader,
    windows: dict[str, ActivityWindow],
    names: Iterable[str],
    *,
    most: int,
) -> None:
    """Add a look at each of these jobs, of which `most` are kept, and drop jobs that are gone."""
    wanted = set(names)
    for name in [*windows]:
        if name not in wanted:
            del windows[name]
    for name in sorted(wanted):
        try:
            activity = reader.show_activity(name)
        except OperatorRefusedError:  # it has ended, or begins only now
            windows.pop(name, None)
            continue
        windows.setdefault(name, ActivityWindow(most)).add(activity)


def watch_job(reader: ActivityReader, name: str, seconds: float) -> ActivityWindow:
    """Look at a job for a time, and often enough for a verdict, however long a look takes.

    Raises OperatorRefusedError if it does not live, or ends meanwhile.
    """
    window = ActivityWindow()
    until_s = time.monotonic() + seconds
    for number in count(1):
        began_s = time.monotonic()
        window.add(reader.show_activity(name))
        if began_s >= until_s and number >= LEAST_LOOKS:
            break
        time.sleep(max(0.0, began_s + INTERVAL_S - time.monotonic()))
    return window
