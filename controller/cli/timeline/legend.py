# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The legend of the chart, and how its marks look."""

from __future__ import annotations

from html import escape
from typing import Final

from .marks import end_mark, line, rect
from .records import TransferEnd

CHART_STYLE: Final = """
body { max-width: 78rem; font-variant-numeric: tabular-nums; }
p { overflow-wrap: anywhere; }
.wide { overflow-x: auto; } .wide:focus-visible { outline: 2px solid #1f5fa8; }
.patterns { position: absolute; }
.notice { padding: .6rem 1rem .6rem 2rem; border: 1px solid #c2410c; border-radius: 4px; }
td, th { white-space: nowrap; } th { vertical-align: bottom; font-size: .85rem; color: #444; }
.wide th { white-space: normal; } .wide table { margin: .2rem 0; }
.chart { display: flex; border-bottom: 1px solid #ccc; }
.chart .wide { flex: 1; min-width: 0; }
svg { display: block; } svg.labels { flex: none; }
svg text { font-size: 12px; fill: #222; } svg text.name { font-weight: 600; }
svg text.small { font-size: 11px; fill: #555; }
svg text.time { font-size: 11px; fill: #555; text-anchor: middle; }
.rule { stroke: #d5d9de; } .base { stroke: #8a929c; } .tick { stroke: #eceef1; }
.direct { fill: #1f5fa8; } .model { fill: #12796b; }
.host { fill: url(#host); stroke: #1f5fa8; } .switch { fill: url(#switch); stroke: #1f5fa8; }
.relay { fill: url(#relay); stroke: #12796b; } .late { fill: url(#late); stroke: #c2410c; }
.spare { fill: #fff; stroke-width: 1.2; stroke-dasharray: 2 1.5; }
.direct-edge, .host-edge, .switch-edge { stroke: #1f5fa8; }
.model-edge, .relay-edge { stroke: #12796b; }
.wait, .wait-update, .wait-model, .wait-place { fill: none; stroke-width: 2; }
.wait { stroke: #8a929c; } .wait-update { stroke: #1f5fa8; } .wait-model { stroke: #12796b; }
.wait-place { stroke: #7a4fa3; stroke-dasharray: 3 2; } .commit { fill: #7a4fa3; }
.dropped { fill: none; stroke: #b3261e; stroke-width: 2.2; }
.withdrawn { fill: #fff; stroke: #222; stroke-width: 1.5; }
.refused { fill: #fff; stroke: #b3261e; stroke-width: 1.5; }
.ungranted { fill: #f2b84b; stroke: #222; } .endless { fill: #fff; stroke: #555; }
.promoted { fill: #b3261e; }
.granted { fill: #dbe7f5; stroke: #1f5fa8; } .asked { fill: #dfe3e8; stroke: #5d6877; }
.placed { fill: #e8def2; stroke: #7a4fa3; } .copied { fill: #fbe3d4; stroke: #c2410c; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.2rem; list-style: none; padding: 0;
  font-size: .85rem; color: #444; }
.legend li { display: flex; align-items: center; gap: .4rem; }
@media (max-width: 40rem) { body { margin: 1rem auto; padding: 0 .6rem; } }
"""
_WIDTH: Final = 30
_HEIGHT: Final = 14
_MIDDLE: Final = _HEIGHT / 2


def legend() -> str:
    """Return what each mark means, as HTML."""
    full = 2.0, _WIDTH - 2.0
    bars = {
        "direct": "update, in its granted span",
        "host": "update for a group at a host",
        "switch": "update for a group at a switch",
        "model": "model",
        "relay": "model that a worker sends on",
        "late": "later than planned",
        "spare direct-edge": "granted span that was not used",
    }
    lines = {
        "wait": "waits for its grant",
        "wait-update": "granted, before the first byte, or at its group",
        "wait-place": "there, waits for its place",
    }
    found = [(rect(full, 1, _HEIGHT - 2, kind), text) for kind, text in bars.items()]
    found += [(line(*full, _MIDDLE, kind), text) for kind, text in lines.items()]
    found.append((rect((_WIDTH / 2 - 1, _WIDTH / 2 + 1), 2, 10, "commit"), "applied"))
    promoted = rect((_WIDTH / 2 - 1, _WIDTH / 2 + 1), 0, _HEIGHT, "promoted")
    found.append((promoted, "a replica takes its server's place"))
    found += [
        (end_mark(end, _WIDTH / 2, _MIDDLE), text)
        for end, text in (
            (TransferEnd.DROPPED, "dropped"),
            (TransferEnd.WITHDRAWN, "withdrawn"),
            (TransferEnd.REFUSED, "refused by its server"),
            (TransferEnd.UNGRANTED, "came without a grant"),
            (TransferEnd.OPEN, "no end recorded"),
        )
    ]
    items = "".join(
        f'<li><svg width="{_WIDTH}" height="{_HEIGHT}" aria-hidden="true">{mark}</svg>'
        f"{escape(text)}</li>"
        for mark, text in found
    )
    return f'<ul class="legend">{items}</ul>'
