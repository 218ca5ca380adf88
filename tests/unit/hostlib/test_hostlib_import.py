# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import hostlib
from hostlib import errors

ROOT = Path(hostlib.__file__).parent


def test_import_needs_numpy_alone() -> None:
    code = (
        "import sys, hostlib\n"
        "foreign = {'grpc', 'google', 'scapy', 'torch', 'finsy', 'controller', 'softswitch'}\n"
        "print(sorted(foreign & {name.split('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent
    )
    assert done.stdout.strip() == "[]"


def test_public_names_are_sorted_and_there() -> None:
    assert hostlib.__all__ == sorted(hostlib.__all__)
    for name in hostlib.__all__:
        assert hasattr(hostlib, name)


def test_every_error_is_public_and_in_the_tree() -> None:
    names = {n for n, v in vars(errors).items() if isinstance(v, type)}
    assert names == {n for n in hostlib.__all__ if n.endswith("Error")}
    for name in names:
        assert issubclass(getattr(errors, name), errors.HostlibError)
        assert name in (errors.__doc__ or "")


def test_hostlib_never_imports_upper_layers() -> None:
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules: list[str] = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            for module in modules:
                assert module.split(".")[0] not in {"controller", "softswitch", "bmv2_topos"}, path


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
