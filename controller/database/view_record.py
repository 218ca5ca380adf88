# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Layouts as the database stores them: one JSON text each."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from ...hostlib.straggler import StragglerPolicy
from ..jobs.job import (
    Child,
    Layout,
    LayoutState,
    Parent,
    Tree,
    TreeNode,
    Worker,
    WorkerState,
)


def dump_layout(layout: Layout) -> str:
    """Return the layout as JSON."""
    return json.dumps(dataclasses.asdict(layout), separators=(",", ":"))


def load_layout(text: str) -> Layout:
    """Return the layout of a JSON text that `dump_layout` wrote."""
    raw: dict[str, Any] = json.loads(text)
    return Layout(
        generation=raw["generation"],
        job_number=raw["job_number"],
        members=tuple(_worker(member) for member in raw["members"]),
        trees=tuple(_tree(tree) for tree in raw["trees"]),
        straggler=StragglerPolicy(**raw["straggler"]),
        state=LayoutState(raw["state"]),
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
