# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The locks hold what is asked for, with hashes; every run-time package may be used."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs import build_licences
from docs.build_licences import LOCKS, PAGE, ROOT, licence, locked, project, run_time_names

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
PYTHONS = ("3.11", "3.12", "3.13")


def declared() -> list[str]:
    data = project()
    extras = data["project"]["optional-dependencies"]
    asked = [*data["project"]["dependencies"], *data["build-system"]["requires"]]
    return [*asked, *(text for names in extras.values() for text in names)]


def torch_build() -> dict[str, object]:
    (build,) = project()["tool"]["uv"]["dependency-metadata"]
    return build


def entries() -> list[str]:
    """Return the entries of both locks, each with its hashes on the lines that it continues on."""
    text = "\n".join(lock.read_text("utf-8") for lock in LOCKS)
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    whole = "\n".join(line for line in lines if not line.strip().startswith("#"))
    return [entry for entry in whole.replace("\\\n", " ").splitlines() if entry]


@pytest.mark.parametrize("text", sorted(set(declared())))
def test_the_lock_satisfies_pyproject(text: str) -> None:
    asked = Requirement(text)
    name = canonicalize_name(asked.name)
    if name == project()["project"]["name"]:
        return
    versions = locked().get(name)
    assert versions, f"requirements-dev.txt has no {name}: run make lock"
    outside = [pin for pin in versions if pin not in asked.specifier]
    assert not outside, f"requirements-dev.txt has {name} {outside}: run make lock"


@pytest.mark.parametrize("python", PYTHONS)
def test_the_locks_have_one_version_of_each_package_for_each_python(python: str) -> None:
    machine = {"python_version": python, "python_full_version": f"{python}.99"}
    taken: set[tuple[str, str]] = set()
    for entry in entries():
        requirement = Requirement(entry.split(" --hash")[0])
        marker = requirement.marker
        if marker is None or marker.evaluate({**machine, "sys_platform": "linux"}):
            taken.add((canonicalize_name(requirement.name), str(requirement.specifier)))
    assert sorted(name for name, _ in taken) == sorted(locked().keys() - {"torch"})


def test_every_entry_is_one_version_with_hashes() -> None:
    form = r"[a-z0-9-]+==[^ ]+( ; [^-]+)?( +--hash=sha256:[0-9a-f]{64})+ *"
    assert len(entries()) > 50
    assert [entry[:60] for entry in entries() if not re.fullmatch(form, entry)] == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_the_locks_name_no_index(lock: Path) -> None:
    text = lock.read_text("utf-8")
    assert "://" not in text
    assert not re.search(r"^-", text, re.MULTILINE)


def test_what_torch_needs_is_what_its_metadata_says() -> None:
    build = torch_build()
    assert f"TORCH ?= torch=={build['version']}\n" in MAKEFILE
    try:
        is_the_same = version("torch").partition("+")[0] == build["version"]
    except PackageNotFoundError:
        pytest.skip("PyTorch is not installed: make deps-torch")
    if not is_the_same or "+cpu" not in version("torch"):
        pytest.skip(f"torch {version('torch')} is not the build that the lock is for")
    said = [Requirement(text) for text in requires("torch") or []]
    needed = {str(each) for each in said if each.marker is None}
    assert isinstance(build["requires-dist"], list)
    assert {str(Requirement(text)) for text in build["requires-dist"]} == needed


def test_the_locked_ray_is_the_makefiles() -> None:
    (version_of_ray,) = locked()["ray"]
    assert f"RAY ?= ray[train]=={version_of_ray}\n" in MAKEFILE, "make lock"


def test_the_page_lists_the_locks() -> None:
    listed = {name: versions for name, (versions, _) in build_licences.read_page().items()}
    assert listed == {name: ", ".join(pins) for name, pins in locked().items()}, "make licences"


def run_time_section() -> str:
    text = PAGE.read_text("utf-8")
    return text[text.index("## At run time") : text.index("## For development")]


@pytest.mark.parametrize("name", sorted(run_time_names()))
def test_every_run_time_package_is_listed_and_permissive(name: str) -> None:
    page = build_licences.read_page()
    assert f"| {name} |" in run_time_section(), f"{PAGE.name} lacks {name}: run make licences"
    assert build_licences.is_allowed(page[name][1]), f"{name} is under {page[name][1]!r}"
    try:
        installed = version(name).partition("+")[0]
    except PackageNotFoundError:
        return  # the page has what its metadata said
    if installed in locked()[name]:
        assert licence(name) == page[name][1], "run make licences"


@pytest.mark.parametrize(
    ("text", "is_allowed"),
    [
        ("MIT", True),
        ("BSD License", True),
        ("unknown", False),
        ("", False),
        ("GPL-2.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-2.0-or-later OR Apache-2.0", True),
        ("Apache-2.0 WITH LLVM-exception AND MIT", True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("GPL-2.0-only OR (MIT AND BSD-3-Clause)", True),
        ("(GPL-2.0-only OR MIT) AND LGPL-2.1-only", False),
        ("MIT OR GPL-2.0-only AND LGPL-2.1-only", True),
        ("(MIT", False),
        ("MIT MIT", False),
        ("MIT AND", False),
    ],
)
def test_expressions_of_licences(text: str, is_allowed: bool) -> None:
    assert build_licences.is_allowed(text) == is_allowed
