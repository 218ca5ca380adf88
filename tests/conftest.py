# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden files, compared or with --golden written anew; how tests are shared out with -n."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from side_by_side import make_scheduler, shorten_folder
from torch_ranks import torch_testbed

__all__ = ["torch_testbed"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden", action="store_true", help="write golden files anew instead of comparing"
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return make_scheduler(config, log)


# Before pytest makes that folder.
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    shorten_folder(config)


@pytest.fixture
def check_golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Return a function that compares a text with a golden file, or renews it with --golden."""

    def check(path: Path, text: str) -> None:
        if request.config.getoption("--golden"):
            path.write_text(text, encoding="utf-8")
        expected = path.read_text(encoding="utf-8")
        assert text == expected, f"{path.name} differs; if that is meant: make golden"

    return check
