# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Which tests pytest-xdist (`pytest -n 2`) gives to one process, so that fixtures are made once."""

from __future__ import annotations

import re
from typing import Any

import pytest

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
    """Return a scheduler that deals out units in the order of collection.

    So the small files of tests/unit come last, and all processes end at about the same time.
    """
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 (only where it is installed)

    class UnitScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of(nodeid)

    config.option.loadscopereorder = False
    return UnitScheduling(config, log)
