# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tests in several processes by pytest-xdist (`pytest -n 2`): which process gets which test."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

BEGIN_EARLY = (
    "tests/unit/controller/test_controller_mutations.py",
    "tests/unit/softswitch/p4runtime/test_p4runtime_mutations.py",
)
"""Files that take minutes where the environment asks for more mutations, as CI does.

In their place near the end, all other processes would wait for them.
"""
_TARGET = re.compile(r"\[(?P<target>(?:softswitch|bmv2)-(?:narrow|wide))\b")


def unit_of(nodeid: str) -> str:
    """Return the name of the unit that a test belongs to: its file, or its switch.

    The packet tests share each switch over all their files: one process has it, for all of them.
    """
    file, _, test = nodeid.partition("::")
    folder, _, _ = file.rpartition("/")
    target = _TARGET.search(test)
    if folder == "tests/packet" and target:
        return f"{folder} on {target['target']}"
    return file


def make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return a scheduler that distributes units in the order of collection.

    So the small files of tests/unit come last, and all processes end at about the same time.
    """
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 (only where it is installed)

    class UnitScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    config.option.loadscopereorder = False
    return UnitScheduling(config, log)


def put_early(items: list[pytest.Item]) -> None:
    """Move the tests of BEGIN_EARLY to the front."""
    items.sort(key=lambda item: item.nodeid.partition("::")[0] not in BEGIN_EARLY)


def shorten_folder(config: pytest.Config) -> None:
    """Keep the paths of this process's temporary files short enough for sockets.

    pytest-xdist puts them below .../popen-gw0, where without it they are below .../ itself.
    """
    if _is_one_of_many():
        base = Path(config.option.basetemp)
        config.option.basetemp = str(base.with_name(base.name.removeprefix("popen-gw")))


def run_folder(factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the temporary files of all processes of this run."""
    own = factory.getbasetemp()
    return own.parent if _is_one_of_many() else own


def _is_one_of_many() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ
