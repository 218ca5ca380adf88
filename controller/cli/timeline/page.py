# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The report of a job's transfers as one HTML page that needs no network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from html import escape
from typing import Final

from ...transfers.rates.link_tracking import LATE, SLACK_S
from ..report_page import html_page, html_table
from .chart import chart
from .figures import (
    EndFigures,
    ModelFigures,
    UpdateFigures,
    counts_by_worker,
    group_counts,
    model_counts,
    update_counts,
)
from .legend import CHART_STYLE, legend
from .log_file import TransferRecording
from .marks import PATTERNS
from .records import RecordedTransfer, TransferEnd, TransferPath, TransferTimeline
from .window import MOST_TRANSFERS, MOST_WORKERS, TimelineWindow

_MOST_DROPS: Final = 100
_MOST_LATE: Final = 10
_MOST_TALLIES: Final = 256
_HINT: Final = "Point at a transfer for its numbers; scroll a wide chart sideways."
_NONE: Final = "\N{EN DASH}"
_KINDS_OF_GROUPS: Final = {
    TransferPath.HOST_GROUP: "Groups at hosts",
    TransferPath.SWITCH_GROUP: "Groups at switches",
}


def transfers_page(recording: TransferRecording, window: TimelineWindow) -> str:
    """Return the page of a recording, with a chart of a part of it."""
    timeline = recording.timeline
    title = f"Transfers of job {timeline.job}"
    body = [
        PATTERNS,
        f"<h1>{escape(title)}</h1>",
        *_summary(recording),
        *_notes(recording, window),
        "<h2>Over time</h2>",
        f'<p class="note">{_shown(timeline, window)} {_HINT}</p>',
        chart(timeline, window),
        legend(),
        *_workers(timeline),
        *_ends(timeline),
        *_drops(timeline),
        *_replicas(timeline),
    ]
    return html_page(title, body, CHART_STYLE)


def _summary(recording: TransferRecording) -> Iterator[str]:
    timeline = recording.timeline
    began = datetime.fromtimestamp(timeline.began_s, UTC)
    yield (
        f"<p>Recorded from {began:%Y-%m-%d %H:%M:%S} UTC on, for {timeline.length_s:.1f} s:"
        f" {timeline.num_events:,} events of {escape(recording.file)}.</p>"
    )
    counts = update_counts(timeline.updates)
    yield (
        f"<p>Updates: {counts.pushes:,} asked for, {counts.grants:,} granted, {counts.commits:,}"
        f" applied, {counts.drops:,} dropped ({_share(counts)}), {counts.ungranted:,} without a"
        f" grant, {counts.withdrawn:,} withdrawn, {counts.refused:,} refused.{_groups(timeline)}"
    )
    if timeline.models:
        models = model_counts(timeline.models)
        yield (
            f" Models: {models.requested:,} asked for, {models.granted:,} granted, of these"
            f" {models.relayed:,} from workers; {models.delivered:,} delivered,"
            f" {models.ungranted:,} without a grant, {models.withdrawn:,} withdrawn."
        )
    if timeline.allreduces or timeline.failed:
        yield f" Allreduces: {len(timeline.allreduces):,}, and {len(timeline.failed):,} failed."
    yield "</p>"


def _groups(timeline: TransferTimeline) -> str:
    found = [
        f" {_KINDS_OF_GROUPS[path]}: {number:,}, of {members:,} updates."
        for path, (number, members) in sorted(group_counts(timeline.updates).items())
    ]
    return "".join(found)


def _notes(recording: TransferRecording, window: TimelineWindow) -> Iterator[str]:
    """Yield what the page does not show, and what is odd in the recording."""
    found = [escape(note) for note in notes(recording, window)]
    if found:
        yield f'<ul class="notice">{"".join(f"<li>{note}</li>" for note in found)}</ul>'


def notes(recording: TransferRecording, window: TimelineWindow) -> list[str]:
    """Return what the page does not show, and what is odd in the recording, in sentences."""
    timeline, found = recording.timeline, list[str]()
    if recording.truncated_line is not None:
        found.append(
            f"Line {recording.truncated_line}, the last one, was cut off: the controller was"
            " killed, or still writes. Its event is missing."
        )
    if window.is_cut:
        found.append(
            f"The chart ends at {window.until_s:.3f} s, since it has {MOST_TRANSFERS:,} transfers"
            f" at most. Later ones, which are not drawn: {window.after:,}. Choose a part with"
            " --from and --until."
        )
    if window.hidden_workers:
        found.append(
            f"The chart has {MOST_WORKERS} workers at most. Those that are not drawn:"
            f" {_listed(window.hidden_workers)}."
        )
    if window.num_crowded:
        found.append(
            f"Transfers that are drawn over others: {window.num_crowded:,}. More of one worker were"
            " under way at a time than its row has room for."
        )
    endless = update_counts(timeline.updates).endless
    if endless:
        found.append(
            f"Updates without an end in the recording: {endless:,}. Those that were not granted"
            " count as waiting until its end, unless they were asked for again."
        )
    if timeline.unknown:
        names = ", ".join(f"{count} {name}" for name, count in sorted(timeline.unknown.items()))
        found.append(f"Events that this release does not know are not shown: {names}.")
    if timeline.num_turned_back:
        found.append(
            "The controller's clock was set back, and times around that are wrong. Events that are"
            f" earlier than the one before: {timeline.num_turned_back:,}."
        )
    return found


def _shown(timeline: TransferTimeline, window: TimelineWindow) -> str:
    text = f"Shown: {window.from_s:.1f} to {window.until_s:.1f} s"
    if window.before or window.after or window.is_cut:
        return (
            f"{text} of {timeline.length_s:.1f} s. Transfers that ended before: {window.before:,};"
            f" that begin later: {window.after:,}. The tables are of the whole recording."
        )
    return f"{text}, all that was recorded."


def _workers(timeline: TransferTimeline) -> Iterator[str]:
    counts = counts_by_worker(timeline)
    heads = (
        "worker",
        "pushes",
        "grants",
        "commits",
        "drops",
        "drop ratio",
        "ungranted",
        "withdrawn",
        "refused",
        "no end",
        "mean delay",
        "mean wait, s",
        "late",
        "mean behind plan, s",
        "models",
        "models late",
    )
    shown = list(counts.items())[:_MOST_TALLIES]
    rows = [(str(number), *_tally(*both)) for number, both in shown]
    if len(counts) > 1:
        whole = update_counts(timeline.updates), model_counts(timeline.models)
        rows.append(("all", *_tally(*whole)))
    yield "<h2>Workers</h2>"
    yield (
        '<p class="note">Of the whole recording. Delay: versions of the model that the plan puts'
        " before an update. Wait: from request to grant. Late: see the next table.</p>"
    )
    yield _wide(html_table(heads, rows))
    if len(counts) > _MOST_TALLIES:
        yield f"<p>{len(counts) - _MOST_TALLIES:,} more workers have no row.</p>"


def _tally(updates: UpdateFigures, models: ModelFigures) -> Iterator[str]:
    yield from (f"{count:,}" for count in (updates.pushes, updates.grants, updates.commits))
    yield f"{updates.drops:,}"
    yield _share(updates)
    yield from (f"{count:,}" for count in (updates.ungranted, updates.withdrawn, updates.refused))
    yield f"{updates.endless:,}"
    yield _NONE if updates.mean_delay is None else f"{updates.mean_delay:.2f}"
    yield _NONE if updates.mean_wait_s is None else f"{updates.mean_wait_s:.3f}"
    yield f"{updates.ends.num_late:,}"
    yield f"{updates.ends.mean_s:+.3f}" if updates.ends.number else _NONE
    yield f"{models.requested:,}"
    yield f"{models.ends.num_late:,}"


def _share(counts: UpdateFigures) -> str:
    return f"{100 * counts.drop_ratio:.1f} %" if counts.pushes else _NONE


def _ends(timeline: TransferTimeline) -> Iterator[str]:
    yield "<h2>Planned and real ends</h2>"
    yield (
        '<p class="note">How much later than planned the last byte was there, by when the'
        " controller heard of it; negative: earlier. Late: longer than planned by more than"
        f" {100 * LATE:g} % and {SLACK_S:g} s. An update of a group at a host ends there.</p>"
    )
    heads = ("", "arrived", "late", "mean, s", "50 %, s", "95 %, s", "most, s")
    kinds = {"updates": update_counts(timeline.updates).ends}
    if timeline.models:
        kinds["models"] = model_counts(timeline.models).ends
    yield _wide(html_table(heads, [(name, *_end_cells(ends)) for name, ends in kinds.items()]))
    late = sorted(
        (each for each in timeline.transfers if each.is_late),
        key=lambda each: each.behind_s or 0.0,
        reverse=True,
    )
    if late:
        yield f"<h3>The latest {min(len(late), _MOST_LATE)} of {len(late):,}</h3>"
        heads = ("what", "worker", "server", "planned end, s", "late by, s", "limited by")
        yield _wide(html_table(heads, [_late_row(each) for each in late[:_MOST_LATE]]))


def _end_cells(ends: EndFigures) -> Iterator[str]:
    yield f"{ends.number:,}"
    yield f"{ends.num_late:,}"
    for value_s in (ends.mean_s, ends.median_s, ends.high_s, ends.most_s):
        yield f"{value_s:+.3f}" if ends.number else _NONE


def _late_row(transfer: RecordedTransfer) -> tuple[str, ...]:
    return (
        f"{'model' if transfer.is_model else 'update'} {transfer.number}",
        str(transfer.worker),
        str(transfer.server),
        f"{transfer.ends_s or 0.0:.3f}",
        f"{transfer.behind_s or 0.0:.3f}",
        transfer.limit or _NONE,
    )


def _drops(timeline: TransferTimeline) -> Iterator[str]:
    dropped = [each for each in timeline.updates if each.end is TransferEnd.DROPPED]
    yield "<h2>Drops</h2>"
    if not dropped:
        yield "<p>No update was dropped.</p>"
        return
    reasons = Counter(each.reason or "no reason given" for each in dropped)
    told = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
    yield f"<p>{escape(told)}.</p>"
    heads = ("time, s", "worker", "server", "update", "reason", "least possible delay")
    rows = [
        (
            f"{each.over_s or 0.0:.3f}",
            str(each.worker),
            str(each.server),
            str(each.number),
            each.reason or _NONE,
            _NONE if each.delay is None else str(each.delay),
        )
        for each in dropped[:_MOST_DROPS]
    ]
    yield _wide(html_table(heads, rows))
    if len(dropped) > _MOST_DROPS:
        yield f"<p>{len(dropped) - _MOST_DROPS:,} later drops have no row.</p>"


def _replicas(timeline: TransferTimeline) -> Iterator[str]:
    servers = sorted({each.server for each in (*timeline.replicas, *timeline.promotions)})
    if not servers:
        return
    yield "<h2>Replicas</h2>"
    rows: list[tuple[str, ...]] = []
    for server in servers:
        states = [each for each in timeline.replicas if each.server == server]
        promotions = [each for each in timeline.promotions if each.server == server]
        at = ", ".join(f"{each.time_s:.3f} s ({each.lost} lost)" for each in promotions)
        most = max((each.missing for each in states), default=0)
        distance = max((each.distance for each in states), default=0.0)
        rows.append((str(server), f"{most:,}", f"{distance:.4g}", at or _NONE))
    heads = ("server", "most updates behind", "most distance", "replica took its place")
    yield _wide(html_table(heads, rows))


def _wide(table: str) -> str:
    return f'<div class="wide" tabindex="0">{table}</div>'


def _listed(numbers: Iterable[int]) -> str:
    found = [str(number) for number in numbers]
    more = ", and others" if len(found) > MOST_WORKERS else ""
    return ", ".join(found[:MOST_WORKERS]) + more
