# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""No text tells users to install this package from an index, as long as none has it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from deployed_lan import install_command

ROOT = Path(__file__).parents[3]
FROM_INDEX = re.compile(r"pip3? install\b[^\n`]*?[ '\"]switchfold(\[[\w,]+\])?(?=['\" `]|$)", re.M)
"""A bare name; paths and wheels (dist/switchfold-0.2.0-...whl) come from somewhere else."""


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.md", "*.yml",
         "Makefile"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a checkout of the repository")
    own, log = Path(__file__).relative_to(ROOT), Path("CHANGELOG.md")
    found = [
        f"{name}: {match.group()}"
        for name in listed.stdout.split()
        if Path(name) not in (own, log) and (ROOT / name).is_file()
        for match in FROM_INDEX.finditer((ROOT / name).read_text("utf-8"))
    ]
    assert not found


@pytest.mark.parametrize(
    ("text", "is_index"),
    [
        ("pip install 'switchfold[torch]'", True),
        ("pip install switchfold", True),
        ("`pip install --upgrade switchfold`", True),
        ("pip install '.[torch]'", False),
        ("pip install dist/switchfold-0.2.0-cp311-abi3-linux_x86_64.whl", False),
        ("pip install './switchfold-0.2.0-cp311-abi3-linux_x86_64.whl[torch]'", False),
    ],
)
def test_what_counts_as_an_index(text: str, is_index: bool) -> None:
    assert (FROM_INDEX.search(text) is not None) is is_index


def test_environment_of_a_deployment_is_made_by_a_user_who_is_not_root() -> None:
    """Root makes the folder, and gives it to the user; `deploy init` says the same."""
    made = 'sudo install -d -o "$(id -un)" /opt/switchfold && python3 -m venv /opt/switchfold'
    assert install_command().startswith(f"{made} && ")
    assert "sudo" not in install_command().removeprefix("sudo install ")
    source = (ROOT / "controller" / "cli" / "deploy" / "checks.py").read_text("utf-8")
    assert made in re.sub(r"['\"]\n +['\"]", "", source)


@pytest.mark.parametrize(
    "name", ["docker-compose.yml", "examples/clusters/kubernetes/softswitch.yaml"]
)
def test_network_cards_are_named_as_on_the_page_of_deployment(name: str) -> None:
    form = re.search(r"--port\s+1=(\w+):eno1", (ROOT / "docs" / "deployment.md").read_text("utf-8"))
    assert form is not None
    text = (ROOT / name).read_text("utf-8")
    assert re.findall(r'--port, "1=(\w+):eth\d"', text) == [form[1]]
