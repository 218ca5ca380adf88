# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Build folders: those of running processes stay, those of killed processes are removed."""

import multiprocessing
import os
from pathlib import Path

from switchfold.softswitch.compilation.build_folder import PREFIX, build_folder

ROUNDS = 200
PROCESSES = 4


def build_often(parent: Path) -> None:
    """Use one folder after another, while compilers in other processes come and go."""
    for _ in range(ROUNDS):
        with build_folder(parent) as folder:
            (folder / "pipeline.c").write_text("text")
            (folder / "pipeline.c").rename(folder / "pipeline.so")
            assert (folder / "pipeline.so").read_text() == "text"


def die_while_building(parent: Path) -> None:
    with build_folder(parent) as folder:
        (folder / "pipeline.c").write_text("text")
        os._exit(0)


def run(count: int, target: object, parent: Path) -> list[int | None]:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=target, args=(parent,)) for _ in range(count)]  # pyright: ignore[reportArgumentType]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    return [process.exitcode for process in processes]


def test_processes_that_build_at_once_keep_their_folders(tmp_path: Path) -> None:
    with build_folder(tmp_path) as folder:
        (folder / "mine").write_text("text")
        assert run(PROCESSES, build_often, tmp_path) == [0] * PROCESSES
        assert (folder / "mine").read_text() == "text"
    assert list(tmp_path.iterdir()) == []


def test_folder_of_a_killed_process_goes_with_the_next_build(tmp_path: Path) -> None:
    assert run(1, die_while_building, tmp_path) == [0]
    left = [path.name for path in tmp_path.iterdir()]
    assert len(left) == 1
    assert left[0].startswith(PREFIX)
    with build_folder(tmp_path) as folder:
        assert list(tmp_path.iterdir()) == [folder]


def test_folders_of_older_versions_stay(tmp_path: Path) -> None:
    theirs = tmp_path / "building-abcdefgh"  # older versions lock nothing and may be compiling
    theirs.mkdir()
    with build_folder(tmp_path) as folder:
        assert sorted(tmp_path.iterdir()) == sorted([theirs, folder])
    assert list(tmp_path.iterdir()) == [theirs]
