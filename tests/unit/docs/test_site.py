# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`make docs`: all pages are in the navigation, and a warning of mkdocs fails it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
CONFIG: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))


def pages_below(nav: list[Any]) -> Iterator[str]:
    for each in nav:
        if isinstance(each, str):
            yield each
        else:
            (target,) = each.values()
            yield from [target] if isinstance(target, str) else pages_below(target)


def test_every_page_is_in_the_navigation_once() -> None:
    docs = ROOT / "docs"
    pages = {str(path.relative_to(docs)) for path in docs.rglob("*.md")}
    named = list(pages_below(CONFIG["nav"]))
    made = {name for name in named if name == "index.md" or name.startswith("reference/")}
    assert len(named) == len(set(named))
    assert set(named) - made == pages


def options_of_make() -> list[str]:
    """Return the words after `mkdocs` in the Makefile's recipe of docs."""
    found = re.search(r"^docs:.*\n\t.*/mkdocs (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert found is not None
    return shlex.split(found[1])


def build(folder: Path, page: str) -> subprocess.CompletedProcess[str]:
    """Build a site of one page as `make docs` does, with the checks of our mkdocs.yml."""
    (folder / "docs").mkdir(exist_ok=True)
    (folder / "docs" / "index.md").write_text(page, "utf-8")
    checks = {name: CONFIG[name] for name in ("strict", "validation")}
    site = {"site_name": "One page", "nav": [{"Start": "index.md"}], "plugins": [], **checks}
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(site), "utf-8")
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *options_of_make()],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_broken_site_fails_and_is_told(tmp_path: Path) -> None:
    whole = build(tmp_path, "# One\n\n[Here](#one)\n")
    assert whole.returncode == 0, whole.stderr
    for page, told in (
        ("# One\n\n[There](two.md)\n", "two.md"),
        ("# One\n\n[There](#two)\n", "#two"),
    ):
        broken = build(tmp_path, page)
        assert broken.returncode == 1
        assert told in broken.stderr
    (tmp_path / "docs" / "three.md").write_text("# Three\n", "utf-8")
    left_out = build(tmp_path, "# One\n")
    assert left_out.returncode == 1
    assert "three.md" in left_out.stderr
