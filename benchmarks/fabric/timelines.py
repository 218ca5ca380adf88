# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps the timeline of a run's transfers, and a page of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from switchfold.controller.cli.timeline.log_file import load_recording
from switchfold.controller.cli.timeline.page import transfers_page
from switchfold.controller.cli.timeline.window import window_of

FOLDER: Final = "timelines"
"""Of the results, for files and pages."""


def keep_timeline(log: Path, job: str, out: Path, name: str) -> str:
    """Copy a job's events from the controller's timeline, which ends with the testbed.

    Writes `name`.jsonl and `name`.html into a folder of the results `out`; returns the page's path
    below `out`. Raises TransferLogError if the timeline has nothing of the job.
    """
    folder = out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{name}.jsonl"
    with log.open(encoding="utf-8") as lines, kept.open("w", encoding="utf-8") as file:
        file.writelines(line for line in lines if json.loads(line)["job"] == job)
    recording = load_recording(kept)
    page = kept.with_suffix(".html")
    page.write_text(transfers_page(recording, window_of(recording.timeline)), "utf-8")
    return str(page.relative_to(out))
