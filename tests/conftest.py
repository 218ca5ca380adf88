# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Golden files, distribution of tests with -n, garbage collection, examples, delays of threads."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Generator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import settings

from long_tests import deselect_long
from own_process import run_apart
from side_by_side import make_scheduler, put_early, shorten_folder
from thread_delays import Trace, make_trace, new_threads_delayed, this_thread_delayed
from torch_ranks import torch_testbed

__all__ = ["torch_testbed"]

# Most tests have no certificates, and this is their choice to do without. Tests of the refusal, and
# of what must be secured by itself, take it back: fixture `no_choice`.
os.environ["SWITCHFOLD_INSECURE"] = "1"

# No test bounds the time of an example.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


class PartsOfThePackage:
    """Refuses `import hostlib`: a second copy of the part, on which patches have no effect."""

    NAMES = frozenset({"bmv2_topos", "controller", "hostlib", "p4src", "softswitch"})

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in cls.NAMES:
            raise ImportError(f"{fullname} is a part of a package: import switchfold.{fullname}")
        return None


sys.meta_path.insert(0, PartsOfThePackage)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden", action="store_true", help="write golden files instead of comparing them"
    )
    parser.addoption(
        "--quick", action="store_true", help="leave out what tests/long_tests.txt lists"
    )
    parser.addoption(
        "--thread-delays",
        metavar="SEED",
        help="delay threads at random lines, to find what tests assert and do not wait for",
    )


DELAYS = pytest.StashKey[Trace]()


# A test has the same delays alone and among others.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    seed = item.config.getoption("--thread-delays")
    if seed is None:
        return (yield)
    trace = item.stash[DELAYS] = make_trace(f"{seed} {item.nodeid}")
    with new_threads_delayed(trace):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    if DELAYS not in item.stash:
        return (yield)
    with this_thread_delayed(item.stash[DELAYS]):
        return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return make_scheduler(config, log)


# Before pytest makes that folder.
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    shorten_folder(config)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    return run_apart(pyfuncitem) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exempt what the tests import from garbage collection.

    It stays till the end, and a search through torch alone takes 0.1 s, many times over.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    put_early(items)
    if config.getoption("--quick"):
        deselect_long(config, items)


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a new folder whose path is short enough for sockets, however long the test's name is.

    pytest's own has the test's name, and so room for a process id of four digits but not of five.
    """
    return tmp_path_factory.mktemp("t")


@pytest.fixture
def no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave this test, and the processes that it starts, to refuse what has no credentials."""
    monkeypatch.delenv("SWITCHFOLD_INSECURE")


@pytest.fixture
def check_golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Return a function that compares a text with a golden file, or renews it with --golden."""

    def check(path: Path, text: str) -> None:
        if request.config.getoption("--golden"):
            path.write_text(text, encoding="utf-8")
        expected = path.read_text(encoding="utf-8")
        assert text == expected, f"{path.name} differs; if that is meant: make golden"

    return check
