# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The folders: small ones in the product, and tests where one looks for them."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PARTS = ("bmv2_topos", "controller", "hostlib", "p4src", "softswitch")
MOST_MODULES = 15


def modules(folder: Path) -> list[str]:
    """Return the modules of Python and of C; a header belongs to its module."""
    python = {p.name for p in folder.glob("*.py") if p.name != "__init__.py"}
    return sorted(python | {p.stem for suffix in ("c", "h") for p in folder.glob(f"*.{suffix}")})


@pytest.mark.parametrize("part", PARTS)
def test_no_folder_holds_too_many_modules(part: str) -> None:
    folders = [ROOT / part, *(path for path in (ROOT / part).rglob("*") if path.is_dir())]
    assert any(modules(folder) for folder in folders)
    for folder in folders:
        names = [name for name in modules(folder) if not name.endswith(("_pb2.py", "_pb2_grpc.py"))]
        assert len(names) <= MOST_MODULES, f"{folder.relative_to(ROOT)}: {len(names)} modules"


@pytest.mark.parametrize("part", PARTS)
def test_the_import_package_holds_every_part(part: str) -> None:
    link = ROOT / "src" / "switchfold" / part
    assert link.is_symlink()
    assert link.resolve() == ROOT / part


def test_unit_tests_mirror_the_parts() -> None:
    beside = {"benchmarks", "docs", "tests"}
    folders = {path.name for path in (ROOT / "tests" / "unit").iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == {*PARTS, *beside}
    assert not list((ROOT / "tests" / "unit").glob("*.py"))


def test_support_is_in_its_folder() -> None:
    for kind in ("unit", "integration", "packet"):
        for path in (ROOT / "tests" / kind).rglob("*.py"):
            if "p4runtime_clients" not in path.parts:
                assert path.name.startswith("test_") or path.name == "conftest.py", path
    assert [path.name for path in (ROOT / "tests").glob("*.py")] == ["conftest.py"]
