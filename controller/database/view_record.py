# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Views as the database stores them: one JSON text each."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

from ...hostlib.loss_tolerance import LossTolerance
from ...hostlib.straggler import StragglerPolicy
from ..jobs.job import (
    Child,
    Parent,
    RowServer,
    Tree,
    TreeNode,
    View,
    ViewState,
    Worker,
    WorkerState,
)


def dump_view(view: View) -> str:
    """Return the view as JSON."""
    raw = dataclasses.asdict(view)
    if view.straggler.tolerance is None:
        del raw["straggler"]["tolerance"]  # earlier releases know none
    elif not view.straggler.tolerance.stale:
        del raw["straggler"]["tolerance"]["stale"]  # likewise
    return json.dumps(raw, separators=(",", ":"))


def load_view(text: str) -> View:
    """Return the view of a JSON text that `dump_view` wrote."""
    raw: dict[str, Any] = json.loads(text)
    return View(
        generation=raw["generation"],
        job_number=raw["job_number"],
        members=tuple(_worker(member) for member in raw["members"]),
        trees=tuple(_tree(tree) for tree in raw["trees"]),
        straggler=_straggler(raw["straggler"]),
        state=ViewState(raw["state"]),
        reason=raw["reason"],
        unplaced_servers=_row_servers(raw.get("unplaced_servers", ())),
        max_priority=raw.get("max_priority", 0),
        is_transposed=raw.get("is_transposed", False),
    )


def _straggler(raw: dict[str, Any]) -> StragglerPolicy:
    if (tolerance := raw.get("tolerance")) is not None:
        raw["tolerance"] = LossTolerance(**tolerance)
    return StragglerPolicy(**raw)


def _worker(raw: dict[str, Any]) -> Worker:
    raw["state"] = WorkerState(raw["state"])
    return Worker(**raw)


def _tree(raw: dict[str, Any]) -> Tree:
    nodes = tuple(
        TreeNode(
            switch=node["switch"],
            slot_base=node["slot_base"],
            row_base=node.get("row_base", 0),
            children=tuple(Child(**child) for child in node["children"]),
            parent=Parent(**node["parent"]) if node["parent"] else None,
        )
        for node in raw["nodes"]
    )
    return Tree(
        tree_id=raw["tree_id"],
        slot_count=raw["slot_count"],
        share=raw["share"],
        nodes=nodes,
        row_servers=_row_servers(raw.get("row_servers", ())),
    )


def _row_servers(raw: Iterable[dict[str, Any]]) -> tuple[RowServer, ...]:
    """Return row servers; views that earlier releases stored have none."""
    return tuple(RowServer(**server) for server in raw)
