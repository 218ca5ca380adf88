# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A user's own v1model program: compiles it, and finds what was compiled.

Its folder holds NAME.json, NAME.p4info.txtpb and, if this module compiled it, manifest.json.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .artefacts import P4SRC, included_by, sha256
from .compile import COMPILER, compiler_version, find_compiler, format_json, run_compiler
from .errors import CompilationError, P4srcError, ProgramFilesError
from .freshness import MANIFEST, hashes

OWN_FLAGS: Final = ("--std", "p4-16")
"""Unlike the flags of our programs, these let warnings pass."""
_P4INFO_SUFFIX: Final = ".p4info.txtpb"


@dataclass(frozen=True, kw_only=True)
class ProgramFiles:
    """What p4c made of a program."""

    json: Path
    """BMv2 JSON."""
    p4info: Path
    """P4Info, protobuf text format."""

    @property
    def name(self) -> str:
        """Name of the program: that of the JSON without its suffix."""
        return self.json.stem

    @property
    def folder(self) -> Path:
        """Where the files and the manifest are."""
        return self.json.parent


def program_files_in(path: Path) -> ProgramFiles:
    """Return the program in a folder, or that of a JSON file; ProgramFilesError if there is none.

    The P4Info lies beside the JSON and has the same name, or is the only one there.
    """
    if path.is_dir():
        found = sorted(each for each in path.glob("*.json") if each.name != MANIFEST)
        if len(found) != 1:
            names = ", ".join(each.name for each in found) or "none"
            raise ProgramFilesError(
                f"{path} must hold one compiled program, a .json of p4c-bm2-ss; there is {names}:"
                " run 'switchfold p4 compile PROGRAM.p4', or name the .json itself"
            )
        path = found[0]
    if not path.is_file():
        raise ProgramFilesError(f"{path} is missing: run 'switchfold p4 compile PROGRAM.p4'")
    beside = path.with_name(f"{path.stem}{_P4INFO_SUFFIX}")
    infos = [beside] if beside.is_file() else sorted(path.parent.glob("*.p4info.txt*"))
    if len(infos) != 1:
        raise ProgramFilesError(
            f"{path} has no P4Info beside it: let p4c-bm2-ss write {beside.name} with"
            f" --p4runtime-files, or run 'switchfold p4 compile PROGRAM.p4'"
        )
    return ProgramFiles(json=path.resolve(), p4info=infos[0].resolve())


def compile_own(program: Path, folder: Path) -> tuple[ProgramFiles, str]:
    """Compile a program into a folder; return its files, and what p4c had to remark.

    Raises CompilerNotFoundError, CompilationError. The folder is untouched then.
    """
    if not program.is_file():
        raise CompilationError(f"{program} is no file: give a P4 program for v1model")
    compiler = find_compiler()
    program = program.resolve()
    made = ProgramFiles(
        json=folder.resolve() / f"{program.stem}.json",
        p4info=folder.resolve() / f"{program.stem}{_P4INFO_SUFFIX}",
    )
    with tempfile.TemporaryDirectory() as scratch:
        raw = ProgramFiles(
            json=Path(scratch) / made.json.name, p4info=Path(scratch) / made.p4info.name
        )
        command = [compiler, *OWN_FLAGS, "-o", raw.json, "--p4runtime-files", raw.p4info]
        remarks = run_compiler([*command, Path(program.name)], program.parent)
        if not raw.json.is_file() or not raw.p4info.is_file():
            raise CompilationError(f"{COMPILER} wrote nothing for {program}; is it for v1model?")
        folder.mkdir(parents=True, exist_ok=True)
        pipeline = json.loads(raw.json.read_text(encoding="utf-8"))
        made.json.write_text(format_json(pipeline) + "\n", encoding="utf-8")
        made.p4info.write_bytes(raw.p4info.read_bytes())
    _write_manifest(made, program, compiler)
    return made, remarks


def copy_sources(folder: Path) -> Path:
    """Copy the P4 sources of the aggregation program; return the folder with its root programs.

    Raises ProgramFilesError when the folder exists and is not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ProgramFilesError(f"{folder} is not empty: name a new folder for the P4 sources")
    for name in ("bmv2", "include"):
        shutil.copytree(P4SRC / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "bmv2"


def _write_manifest(made: ProgramFiles, program: Path, compiler: Path) -> None:
    root = made.folder
    manifest = {
        "program": Path(os.path.relpath(program, root)).as_posix(),
        "compiler": f"{COMPILER} {compiler_version(compiler)}",
        "flags": list(OWN_FLAGS),
        "sources": hashes(included_by(program), root),
        "artefacts": {path.name: sha256(path) for path in (made.json, made.p4info)},
    }
    (root / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Compile one program without anything of Switchfold but this folder: for p4c's container."""
    words = sys.argv[1:] if arguments is None else arguments
    if len(words) != 2:
        print("usage: python3 -m p4src.own_program PROGRAM.p4 FOLDER", file=sys.stderr)
        return 2
    try:
        made, remarks = compile_own(Path(words[0]), Path(words[1]))
    except P4srcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join([*filter(None, [remarks]), f"{made.json}: {made.json.stat().st_size} bytes"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
