# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Reading a controller's timeline of transfers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

from ...errors import (
    TransferLogDamagedError,
    TransferLogEmptyError,
    TransferLogJobError,
    TransferLogMissingError,
)
from .events import Fields, TimelineBuilder, problem_of
from .records import TransferTimeline

_RECORD: Final = "record one with `--transfer-log FILE` of `switchfold controller run`"
_MOST_NAMES: Final = 8
"""Jobs that an error names."""


@dataclass(frozen=True, kw_only=True)
class TransferRecording:
    """A job's timeline, and what its file lacks."""

    file: str
    timeline: TransferTimeline
    truncated_line: int | None
    """Number of the last line if that was cut off; its event is missing."""


def load_recording(path: Path, job: str | None = None) -> TransferRecording:
    """Read the timeline of a job; `job` may be left out if the file has one job alone.

    A last line that was cut off, as by a controller that was killed, is left out and told. Raises
    TransferLogError for all else that cannot be read.
    """
    lines = _Lines(path)
    builder: TimelineBuilder | None = None
    jobs: set[str] = set()
    try:
        with path.open("rb") as file:
            for fields in lines.events(file):
                jobs.add(fields["job"])
                if builder is None and job in (None, fields["job"]):
                    builder = TimelineBuilder(fields["job"])
                if builder is not None and builder.job == fields["job"]:
                    builder.add(fields)
    except OSError as exc:
        raise TransferLogMissingError(
            f"cannot read the timeline {path}: {exc.strerror}; give the file of `--transfer-log`,"
            " or of `log` in the table [transfers]"
        ) from exc
    if not jobs:
        cut = " but a line that was cut off" if lines.truncated else ""
        raise TransferLogEmptyError(f"there is nothing in the timeline {path}{cut}: {_RECORD}")
    if job is None and len(jobs) > 1:
        raise TransferLogJobError(f"{path} has the jobs {_names(jobs)}: name one with --job")
    if builder is None:
        raise TransferLogJobError(
            f"{path} has no job {job!r}, but {_names(jobs)}: give one of these to --job"
        )
    return TransferRecording(
        file=path.name, timeline=builder.timeline(), truncated_line=lines.truncated
    )


class _Lines:
    """The lines of a file as events."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.truncated: int | None = None
        """Number of a last line that was cut off."""

    def events(self, file: BinaryIO) -> Iterator[Fields]:
        """Yield each line's event; TransferLogDamagedError names the first line without one."""
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                fields: object = json.loads(line)
            except (ValueError, RecursionError) as exc:
                if not line.endswith(b"\n"):
                    self.truncated = number
                    return
                raise self._damage(number, f"it is no JSON ({exc})") from exc
            if problem := problem_of(fields):
                raise self._damage(number, problem)
            yield cast("Fields", fields)

    def _damage(self, number: int, problem: str) -> TransferLogDamagedError:
        return TransferLogDamagedError(
            f"{self._path}, line {number} is no event of transfers: {problem}. Is the file a"
            " controller's timeline? If a controller was killed while it wrote this line, delete"
            " the line"
        )


def _names(jobs: set[str]) -> str:
    shown = sorted(jobs)[:_MOST_NAMES]
    more = len(jobs) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
