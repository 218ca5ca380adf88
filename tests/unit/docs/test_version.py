# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The version of pyproject.toml is the newest one in the changelog, and that of the image."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def test_changelog_begins_with_what_is_not_released_and_then_this_version() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(VERSION)} - \d{{4}}-\d\d-\d\d", headings[1])


def test_kubernetes_takes_the_image_of_this_version() -> None:
    text = (ROOT / "examples/clusters/kubernetes/kustomization.yaml").read_text("utf-8")
    assert re.findall(r"newTag: (.+)$", text, re.MULTILINE) == [VERSION]


def test_upgrade_notes_lead_to_this_version() -> None:
    first = (ROOT / "docs" / "upgrade.md").read_text("utf-8").partition("\n## ")[0]
    assert f"with {VERSION}." in first


def test_no_module_states_a_version_of_its_own() -> None:
    parts = ("bmv2_topos", "controller", "hostlib", "p4src", "softswitch", "src")
    stated = re.compile(rf"[\"']{re.escape(VERSION)}[\"' ]")
    for part in parts:
        for path in (ROOT / part).rglob("*.py"):
            assert not stated.search(path.read_text("utf-8")), path
