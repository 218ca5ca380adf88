# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A program with statements that no switch of this repository knows: those of a vendor's extern."""

from __future__ import annotations

import json
from pathlib import Path

PROGRAMS = Path(__file__).parents[1] / "pipeline" / "programs"
BASE = PROGRAMS / "replication.json"
_RENAMED = (
    "clone_ingress_pkt_to_egress",
    "generate_digest",
    "truncate",
)


def refused_text() -> str:
    """JSON of a program whose requests to the replication engine have become unknown."""
    data = json.loads(BASE.read_text())
    for action in data["actions"]:
        for primitive in action["primitives"]:
            if primitive["op"] in _RENAMED:
                primitive["op"] = f"_vendor_{primitive['op']}"
    return json.dumps(data)


def refused_problems() -> set[tuple[str, int]]:
    """What is refused: names of statements and their lines in replication.p4."""
    data = json.loads(refused_text())
    return {
        (primitive["op"], primitive["source_info"]["line"])
        for action in data["actions"]
        for primitive in action["primitives"]
        if primitive["op"].startswith("_vendor_")
    }


def write_refused(folder: Path) -> Path:
    """Write the program into a folder, as refused.json."""
    path = folder / "refused.json"
    path.write_text(refused_text())
    return path
