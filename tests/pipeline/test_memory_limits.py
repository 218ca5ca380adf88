# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Without memory there is an error, and the old state still works; too large sizes are refused."""

import json
import multiprocessing
import resource
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pipeline_driver import PROGRAMS
from switchfold.softswitch import Switch, compile_program
from switchfold.softswitch.errors import (
    InUseError,
    SoftswitchError,
    TableFullError,
    UnsupportedError,
)
from switchfold.softswitch.switch.table_entries import Match, ProfileMember

STATION = bytes.fromhex("020000000001")
FRAME = STATION + bytes(50)


def changed(folder: Path, name: str, change: Callable[[dict[str, Any]], None]) -> Path:
    """Write a changed copy of a program."""
    data = json.loads((PROGRAMS / f"{name}.json").read_text())
    change(data)
    path = folder / f"changed_{name}.json"
    path.write_text(json.dumps(data))
    return path


@contextmanager
def no_more_memory() -> Generator[None]:
    """Let the process map 64 MiB more at most, in the block."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (64 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def in_a_process(target: Callable[[Path], None], path: Path) -> int | None:
    """Run target in a process of its own, because it limits its memory; return the exit status."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=(path,))
    process.start()
    process.join()
    return process.exitcode


def clear_without_memory(path: Path) -> None:
    program = compile_program(path)
    table = program.model.tables[0]
    with Switch(program) as switch:
        for port in (1, 2):
            switch.ports.add(port, "mem")
        switch.tables.insert(0, Match(STATION), table.actions[0].position, b"\0\2")
        with no_more_memory(), pytest.raises(TableFullError):
            switch.tables.clear(0)
        assert switch.tables.size(0) == 1
        assert switch.process(1, FRAME) == [(2, FRAME)]
        switch.tables.clear(0)
        assert switch.tables.size(0) == 0
        assert switch.process(1, FRAME) == []
        switch.tables.insert(0, Match(STATION), table.actions[0].position, b"\0\2")
        assert switch.process(1, FRAME) == [(2, FRAME)]


def clear_members_without_memory(path: Path) -> None:
    program = compile_program(path)
    table = next(item for item in program.model.tables if item.action_profile == 0)
    action = next(item for item in table.actions if item.name.endswith("set_value"))
    key = Match(b"\1", b"\xff")
    with Switch(program) as switch:
        switch.profiles.add_member(0, 7, action.position, b"\0\5")
        switch.tables.insert(table.position, key, 0, indirect=ProfileMember(7))
        with no_more_memory(), pytest.raises(TableFullError):
            switch.tables.clear(table.position)
        with pytest.raises(InUseError):
            switch.profiles.delete_member(0, 7)
        switch.tables.clear(table.position)
        switch.profiles.delete_member(0, 7)


def load_without_memory(path: Path) -> None:
    small, large = compile_program(PROGRAMS / "forward.json"), compile_program(path)
    with Switch(small) as switch:
        for port in (1, 2):
            switch.ports.add(port, "mem")
        action = small.model.tables[0].actions[0].position
        switch.tables.insert(0, Match(STATION), action, b"\0\2")
        with no_more_memory(), pytest.raises(SoftswitchError, match="no memory for its tables"):
            switch.load(large)
        assert switch.process(1, FRAME) == [(2, FRAME)]


def many_entries(data: dict[str, Any]) -> None:
    for pipeline in data["pipelines"]:
        for table in pipeline["tables"]:
            table["max_size"] = 1 << 24


def long_register(data: dict[str, Any]) -> None:
    data["register_arrays"][0]["size"] = 1 << 28


@pytest.mark.parametrize(
    ("target", "name", "change"),
    [
        (clear_without_memory, "forward", many_entries),
        (clear_members_without_memory, "action_profiles", many_entries),
        (load_without_memory, "forward", many_entries),
        (load_without_memory, "forward", long_register),
    ],
)
def test_without_memory_there_is_an_error_and_all_goes_on(
    tmp_path: Path,
    target: Callable[[Path], None],
    name: str,
    change: Callable[[dict[str, Any]], None],
) -> None:
    path = changed(tmp_path, name, change)
    compile_program(path)  # here, because the output of the process is lost
    assert in_a_process(target, path) == 0


def test_every_size_beyond_the_limits_is_refused_with_its_line(tmp_path: Path) -> None:
    def change(data: dict[str, Any]) -> None:
        data["register_arrays"][0]["size"] = 1 << 40
        data["pipelines"][0]["tables"][0]["max_size"] = 1 << 40

    path = changed(tmp_path, "forward", change)
    with pytest.raises(UnsupportedError) as caught:
        compile_program(path, cache_dir=tmp_path)
    found = {problem.what: problem for problem in caught.value.problems}
    assert found.keys() == {"size of ForwardIngress.forwarded", "size of ForwardIngress.station"}
    for problem in found.values():
        assert problem.where.startswith("forward.p4(")
        assert str(1 << 40) in problem.why
        assert "smaller" in problem.remedy
        assert "p4c" not in problem.remedy


@pytest.mark.parametrize("size", [-1, "many", None, True])
def test_sizes_that_are_none_are_a_broken_json(tmp_path: Path, size: object) -> None:
    def change(data: dict[str, Any]) -> None:
        data["register_arrays"][0]["size"] = size

    with pytest.raises(Exception, match="p4c-bm2-ss") as caught:
        compile_program(changed(tmp_path, "forward", change), cache_dir=tmp_path)
    assert not isinstance(caught.value, UnsupportedError)
