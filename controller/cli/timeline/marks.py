# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The marks of transfers in a chart, as SVG; each has its times as a tooltip."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import Final

from ...fabric.trees.tree_text import amount
from .records import RecordedTransfer, TransferEnd, TransferPath, TransferTimeline
from .window import TimelineWindow, last_of_sum_s

UPDATE_HEIGHT: Final = 12
MODEL_HEIGHT: Final = 9
_LEAST: Final = 1.5
"""Width of the shortest bar."""
_KINDS: Final = {
    TransferPath.DIRECT: "direct",
    TransferPath.HOST_GROUP: "host",
    TransferPath.SWITCH_GROUP: "switch",
    TransferPath.RELAY: "relay",
}
"""CSS classes of bars."""
PATTERNS: Final = (
    '<svg width="0" height="0" class="patterns" aria-hidden="true"><defs>'
    '<pattern id="host" width="6" height="6" patternUnits="userSpaceOnUse">'
    '<rect width="6" height="6" fill="#1f5fa8"/>'
    '<path d="M-1 7L7 -1" stroke="#fff" stroke-width="2"/></pattern>'
    '<pattern id="switch" width="5" height="4" patternUnits="userSpaceOnUse">'
    '<rect width="5" height="4" fill="#1f5fa8"/>'
    '<rect width="2" height="4" fill="#fff"/></pattern>'
    '<pattern id="relay" width="6" height="6" patternUnits="userSpaceOnUse">'
    '<rect width="6" height="6" fill="#12796b"/>'
    '<path d="M-1 -1L7 7" stroke="#fff" stroke-width="2"/></pattern>'
    '<pattern id="late" width="4" height="4" patternUnits="userSpaceOnUse">'
    '<rect width="4" height="4" fill="#fff"/>'
    '<path d="M-1 5L5 -1" stroke="#c2410c" stroke-width="2"/></pattern></defs></svg>'
)
"""How bars are filled that colours alone would not tell apart; the page has them once."""

Scale = Callable[[float], float]
"""From seconds to the horizontal place."""


def rect(sides: tuple[float, float], y: float, height: float, kind: str) -> str:
    """Return a bar between two horizontal places."""
    left, right = sides
    width = max(_LEAST, right - left)
    return (
        f'<rect class="{kind}" x="{left:.1f}" y="{y:g}" width="{width:.1f}" height="{height:g}"/>'
    )


def line(left: float, right: float, y: float, kind: str) -> str:
    """Return a horizontal line."""
    return f'<path class="{kind}" d="M{left:.1f} {y:g}H{right:.1f}"/>'


def end_mark(end: TransferEnd, x: float, y: float) -> str:
    """Return the mark of how a transfer ended, about a point; "" if it was delivered."""
    match end:
        case TransferEnd.DROPPED:
            d = f"M{x - 4:.1f} {y - 4:g}l8 8m-8 0l8 -8"
        case TransferEnd.WITHDRAWN:
            d = f"M{x - 4:.1f} {y - 4:g}h8v8h-8z"
        case TransferEnd.REFUSED:
            d = f"M{x - 4:.1f} {y:g}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0M{x - 3:.1f} {y + 3:g}l6 -6"
        case TransferEnd.UNGRANTED:
            d = f"M{x:.1f} {y - 5:g}l5 5l-5 5l-5 -5z"
        case TransferEnd.OPEN | TransferEnd.ASKED_AGAIN:
            d = f"M{x - 3:.1f} {y:g}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0"
        case TransferEnd.DONE:
            return ""
    kind = "endless" if end in (TransferEnd.OPEN, TransferEnd.ASKED_AGAIN) else end.value
    return f'<path class="{kind}" d="{d}"/>'


def transfer_marks(transfer: RecordedTransfer, y: float, x: Scale, window: TimelineWindow) -> str:
    """Return all that is drawn of a transfer in a lane whose top is at `y`."""
    height = MODEL_HEIGHT if transfer.is_model else UPDATE_HEIGHT
    marks = [*_waits(transfer, y + height / 2, x), *_bar(transfer, y, height, x)]
    end_s = transfer.over_s if transfer.over_s is not None else transfer.last_s
    if window.from_s <= end_s <= window.until_s:
        marks.append(end_mark(transfer.end, x(end_s), y + height / 2))
    return f"<g><title>{escape(told(transfer))}</title>{''.join(marks)}</g>"


def _waits(transfer: RecordedTransfer, y: float, x: Scale) -> Iterator[str]:
    """Yield thin lines: before the decision, before the first byte, and before the commit."""
    decided_s = transfer.granted_s if transfer.granted_s is not None else transfer.over_s
    begins_s, arrived_s = transfer.begins_s, transfer.arrived_s
    is_model = transfer.is_model
    spans = (
        (transfer.requested_s, decided_s, "wait"),
        (transfer.granted_s, begins_s, "wait-model" if is_model else "wait-update"),
        (arrived_s, transfer.delivered_s, "wait-update"),
        (transfer.delivered_s, transfer.committed_s, "wait-place"),
    )
    for begin_s, end_s, kind in spans:
        if begin_s is not None and end_s is not None and x(end_s) > x(begin_s):
            yield line(x(begin_s), x(end_s), y, kind)
    if transfer.committed_s is not None:
        at = x(transfer.committed_s)
        yield rect((at - 1, at + 1), y - 5, 10, "commit")


def _bar(transfer: RecordedTransfer, y: float, height: float, x: Scale) -> Iterator[str]:
    """Yield the planned span: what of it was used, and how much longer it took."""
    kind = _KINDS[transfer.path]
    if transfer.is_model and transfer.path is TransferPath.DIRECT:
        kind = "model"
    arrived_s = transfer.arrived_s
    if transfer.begins_s is None or transfer.ends_s is None:
        if transfer.granted_s is not None and arrived_s is not None:  # both are on one host
            yield rect((x(transfer.granted_s), x(arrived_s)), y, height, f"spare {kind}-edge")
        return
    begins_s, ends_s = transfer.begins_s, transfer.ends_s
    if arrived_s is None:
        yield rect((x(begins_s), x(ends_s)), y, height, f"spare {kind}-edge")
        return
    if arrived_s < ends_s:
        yield rect((x(max(begins_s, arrived_s)), x(ends_s)), y, height, f"spare {kind}-edge")
    sent_s = min(arrived_s, ends_s) if transfer.is_late or arrived_s < ends_s else arrived_s
    if sent_s > begins_s:
        yield rect((x(begins_s), x(sent_s)), y, height, kind)
    if transfer.is_late:
        yield rect((x(ends_s), x(arrived_s)), y, height, "late")


def told(transfer: RecordedTransfer) -> str:
    """Return what is recorded of a transfer, in one line."""
    what, which = ("model", "from") if transfer.is_model else ("update", "to")
    ends = f"worker {transfer.worker} {which} server {transfer.server}"
    parts = [f"{what} {transfer.number} of {ends}"]
    if transfer.size_bytes is not None:
        parts.append(amount(transfer.size_bytes, "B"))
    if transfer.requested_s is not None:
        parts.append(f"asked for at {transfer.requested_s:.3f} s")
    if transfer.granted_s is not None:
        parts.append(f"granted at {transfer.granted_s:.3f} s")
    if transfer.begins_s is not None and transfer.ends_s is not None:
        parts.append(f"planned from {transfer.begins_s:.3f} to {transfer.ends_s:.3f} s")
    if transfer.arrived_s is not None:
        behind = f" ({transfer.behind_s:+.3f} s)" if transfer.behind_s is not None else ""
        parts.append(f"there at {transfer.arrived_s:.3f} s{behind}")
    if transfer.committed_s is not None:
        parts.append(f"applied at {transfer.committed_s:.3f} s")
    parts += _more_told(transfer)
    return ", ".join(parts)


def _more_told(transfer: RecordedTransfer) -> Iterator[str]:
    if transfer.end is not TransferEnd.DONE:
        at = f" at {transfer.over_s:.3f} s" if transfer.over_s is not None else ""
        reason = f": {transfer.reason}" if transfer.reason else ""
        yield f"{transfer.end.value}{at}{reason}"
    if transfer.delay is not None:
        yield f"delay {transfer.delay}"
    if transfer.path is TransferPath.RELAY:
        yield f"sent on by worker {transfer.relayed_by}"
    elif transfer.path is TransferPath.HOST_GROUP:
        left = ", which it has left" if transfer.has_left else ""
        yield f"in group {transfer.group} at worker {transfer.aggregator}{left}"
    elif transfer.path is TransferPath.SWITCH_GROUP:
        yield f"in group {transfer.group} at a switch"
    if transfer.limit:
        yield f"limited by: {transfer.limit}"


def allreduce_marks(timeline: TransferTimeline, y: float, x: Scale, window: TimelineWindow) -> str:
    """Return the sums of all members in a row whose top is at `y`."""
    found: list[str] = []
    for each in timeline.allreduces:
        end_s = each.ended_s
        planned_s = None if each.planned_s is None else each.granted_s + each.planned_s
        last = last_of_sum_s(each)
        if each.granted_s > window.until_s or last < window.from_s:
            continue
        text = (
            f"allreduce {each.number} of {each.members} workers, {amount(each.size_bytes, 'B')},"
            f" granted at {each.granted_s:.3f} s"
        )
        text += "" if planned_s is None else f", planned until {planned_s:.3f} s"
        text += ", no end recorded" if end_s is None else f", ended at {end_s:.3f} s"
        kind = "spare direct-edge" if end_s is None else "direct"
        ends_s = last if end_s is None else end_s
        if each.is_late and planned_s is not None:
            ends_s = planned_s
        bars = rect((x(each.granted_s), x(ends_s)), y, UPDATE_HEIGHT, kind)
        if each.is_late:
            bars += rect((x(ends_s), x(last)), y, UPDATE_HEIGHT, "late")
        found.append(f"<g><title>{escape(text)}</title>{bars}</g>")
    for time_s, reason in timeline.failed:
        if window.from_s <= time_s <= window.until_s:
            mark = end_mark(TransferEnd.DROPPED, x(time_s), y + UPDATE_HEIGHT / 2)
            text = f"{time_s:.3f} s: an allreduce has failed: {reason}"
            found.append(f"<g><title>{escape(text)}</title>{mark}</g>")
    return "".join(found)
