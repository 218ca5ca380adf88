# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The pictures of screens in docs/images: each is small, and some page shows it, with words."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[3] / "docs"
MOST_BYTES = 200_000
SHOWN = re.compile(r"!\[([^\]]+)\]\(images/(screen_\w+\.png)\)")


def test_each_screen_is_shown_with_a_description() -> None:
    found = [each for page in DOCS.glob("*.md") for each in SHOWN.findall(page.read_text("utf-8"))]
    pictures = {path.name for path in (DOCS / "images").glob("screen_*.png")}
    assert {name for _, name in found} == pictures
    assert len(pictures) >= 4
    for description, name in found:
        assert len(description.split()) > 5, name


def test_screens_are_small() -> None:
    for path in (DOCS / "images").glob("screen_*.png"):
        assert path.stat().st_size < MOST_BYTES, path.name
