# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The report of a job's transfers as a document for programs."""

from __future__ import annotations

import dataclasses
from typing import Any

from .figures import (
    ModelFigures,
    UpdateFigures,
    counts_by_worker,
    group_counts,
    model_counts,
    update_counts,
)
from .log_file import TransferRecording
from .page import notes
from .records import TransferEnd
from .window import TimelineWindow


def transfers_document(recording: TransferRecording, window: TimelineWindow) -> dict[str, Any]:
    """Return the figures of the whole recording, and what a chart of the window leaves out."""
    timeline = recording.timeline
    return {
        "job": timeline.job,
        "began_s": timeline.began_s,
        "length_s": timeline.length_s,
        "events": timeline.num_events,
        "window": {
            "from_s": window.from_s,
            "until_s": window.until_s,
            "is_cut": window.is_cut,
            "before": window.before,
            "after": window.after,
        },
        "notes": notes(recording, window),
        "updates": _updates(update_counts(timeline.updates)),
        "models": _models(model_counts(timeline.models)),
        "allreduces": {"granted": len(timeline.allreduces), "failed": len(timeline.failed)},
        "groups": {
            path.value: {"number": number, "updates": members}
            for path, (number, members) in group_counts(timeline.updates).items()
        },
        "workers": [
            {"worker": number, "updates": _updates(updates), "models": _models(models)}
            for number, (updates, models) in counts_by_worker(timeline).items()
        ],
        "drops": [
            {
                "time_s": each.over_s,
                "worker": each.worker,
                "server": each.server,
                "transfer": each.number,
                "reason": each.reason,
                "delay": each.delay,
            }
            for each in timeline.updates
            if each.end is TransferEnd.DROPPED
        ],
        "promotions": [dataclasses.asdict(each) for each in timeline.promotions],
    }


def _updates(counts: UpdateFigures) -> dict[str, Any]:
    return dataclasses.asdict(counts) | {"drop_ratio": counts.drop_ratio}


def _models(counts: ModelFigures) -> dict[str, Any]:
    return dataclasses.asdict(counts)
