# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Views as the database stores them: one JSON text each."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from ...hostlib.straggler import StragglerPolicy
from ..jobs.job import (
    Child,
    Parent,
    Tree,
    TreeNode,
    View,
    ViewState,
    Worker,
    WorkerState,
)


def dump_view(view: View) -> str:
    """Return the view as JSON."""
    return json.dumps(dataclasses.asdict(view), separators=(",", ":"))


def load_view(text: str) -> View:
    """Return the view of a JSON text that `dump_view` wrote."""
    raw: dict[str, Any] = json.loads(text)
    return View(
        generation=raw["generation"],
        job_number=raw["job_number"],
        members=tuple(_worker(member) for member in raw["members"]),
        trees=tuple(_tree(tree) for tree in raw["trees"]),
        straggler=StragglerPolicy(**raw["straggler"]),
        state=ViewState(raw["state"]),
        reason=raw["reason"],
    )


def _worker(raw: dict[str, Any]) -> Worker:
    raw["state"] = WorkerState(raw["state"])
    return Worker(**raw)


def _tree(raw: dict[str, Any]) -> Tree:
    nodes = tuple(
        TreeNode(
            switch=node["switch"],
            slot_base=node["slot_base"],
            children=tuple(Child(**child) for child in node["children"]),
            parent=Parent(**node["parent"]) if node["parent"] else None,
        )
        for node in raw["nodes"]
    )
    return Tree(
        tree_id=raw["tree_id"], slot_count=raw["slot_count"], share=raw["share"], nodes=nodes
    )
