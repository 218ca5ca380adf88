# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from switchfold import hostlib
from switchfold.hostlib import errors

ROOT = Path(hostlib.__file__).parent


def test_import_needs_numpy_alone() -> None:
    code = (
        "import sys, switchfold\n"
        "switchfold.Session\n"
        "foreign = {'grpc', 'google', 'scapy', 'torch', 'finsy'}\n"
        "found = foreign & {name.split('.')[0] for name in sys.modules}\n"
        "ours = {'switchfold.controller', 'switchfold.softswitch'} & {*sys.modules}\n"
        "print(sorted(found | ours))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent
    )
    assert done.stdout.strip() == "[]"


def test_public_names_are_sorted_and_there() -> None:
    assert hostlib.__all__ == sorted(hostlib.__all__)
    for name in hostlib.__all__:
        assert hasattr(hostlib, name)


def test_session_shows_what_users_call() -> None:
    assert [name for name in dir(hostlib.Session) if not name.startswith("_")] == [
        "allgather",
        "allreduce",
        "allreduce_group",
        "barrier",
        "can_multicast",
        "close",
        "direct",
        "first_tensor",
        "join",
        "statistics",
        "view",
    ]


def test_every_error_is_public_and_in_the_tree() -> None:
    names = {n for n, v in vars(errors).items() if isinstance(v, type)}
    assert names == {n for n in hostlib.__all__ if n.endswith("Error")}
    for name in names:
        assert issubclass(getattr(errors, name), errors.HostlibError)
        assert name in (errors.__doc__ or "")


def test_hostlib_never_imports_upper_layers() -> None:
    for path in ROOT.rglob("*.py"):
        depth = len(path.relative_to(ROOT.parent).parts) - 1
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level:
                assert node.level <= depth, f"{path}:{node.lineno} imports from outside hostlib"
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names]
                modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else names
                ours = {"switchfold", "controller", "softswitch", "bmv2_topos", "hostlib"}
                assert not ours & {module.split(".")[0] for module in modules}, path


def serialized_line(path: Path) -> str:
    """The line of a generated file that holds the whole schema."""
    return next(line for line in path.read_text().splitlines() if "AddSerializedFile" in line)


def test_generated_session_api_matches_proto(tmp_path: Path) -> None:
    protoc = [sys.executable, "-m", "grpc_tools.protoc", "-I", "."]
    generated = "hostlib/control/session_api/session"
    subprocess.run(
        [*protoc, f"--python_out={tmp_path}", f"{generated}.proto"], check=True, cwd=ROOT.parent
    )
    committed = serialized_line(ROOT.parent / f"{generated}_pb2.py")
    assert committed == serialized_line(tmp_path / f"{generated}_pb2.py")
