# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Compile the P4 programs.

`python -m switchfold.p4src.compile` writes p4src/build, `--check` compares.

p4c runs at the repository root with relative paths, so that neither the JSON's source_info nor the
manifest names a path of this machine.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from .artefacts import (
    BUILD_DIR,
    P4SRC,
    VARIANTS,
    Artefacts,
    Variant,
    artefacts,
    program_name,
    sha256,
    source_hashes,
)
from .errors import CompilationError, CompilerNotFoundError, P4srcError, StaleArtefactError
from .freshness import check_manifest
from .generate_lanes import generated_files, write_lanes

COMPILER: Final = "p4c-bm2-ss"
FLAGS: Final = ("--std", "p4-16", "--Werror")
"""Every warning is an error."""
COMPILE_TIMEOUT_S: Final = 300
_LINE_CHARACTERS: Final = 160


def find_compiler() -> Path:
    """Return p4c's BMv2 back end, or raise CompilerNotFoundError."""
    found = shutil.which(COMPILER)
    if found is None:
        raise CompilerNotFoundError(
            f"{COMPILER} is not on the PATH; install p4c, or run it in its container: "
            "docker compose run --rm p4c (this project's programs), or "
            "docker compose run --rm p4c python3 -m p4src.own_program PROGRAM.p4 FOLDER"
        )
    return Path(found)


def compiler_version(compiler: Path) -> str:
    """Return p4c's version and commit as it prints them."""
    done = subprocess.run(
        [compiler, "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    found = re.search(r"Version (\S+ \(SHA: \w+)", done.stdout + done.stderr)
    if found is None:
        raise CompilationError(f"{compiler} --version names no version")
    return found.group(1).replace("(SHA: ", "")


def format_json(value: Any, width: int = _LINE_CHARACTERS) -> str:
    """Return JSON text that breaks only what is longer than a line.

    A third of p4c's size, and still a diff per element.
    """
    text = json.dumps(value, separators=(",", ":"))
    if len(text) <= width or not isinstance(value, dict | list):
        return text
    if isinstance(value, dict):
        members = [
            f"{json.dumps(key)}:{format_json(member, width)}"
            for key, member in value.items()  # pyright: ignore[reportUnknownVariableType]
        ]
        return "{\n" + ",\n".join(members) + "\n}"
    return "[\n" + ",\n".join(format_json(member, width) for member in value) + "\n]"  # pyright: ignore[reportUnknownVariableType]


def run_compiler(command: Sequence[str | Path], folder: Path) -> str:
    """Run p4c in a folder; return what it remarks. CompilationError when it refuses a program."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMPILE_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as exc:
        raise CompilationError(
            f"{COMPILER} on {command[-1]} has not ended after {COMPILE_TIMEOUT_S} s"
        ) from exc
    said = (done.stderr + done.stdout).strip()
    if done.returncode != 0:
        raise CompilationError(f"{COMPILER} on {command[-1]} exits {done.returncode}:\n{said}")
    return said


def compile_program(
    variant: Variant, build_dir: Path = BUILD_DIR, p4src: Path = P4SRC
) -> Artefacts:
    """Compile one variant into build_dir; return its artefacts."""
    compiler = find_compiler()
    target = artefacts(variant, build_dir)
    target.json.parent.mkdir(parents=True, exist_ok=True)
    root = p4src.resolve().parent
    program = Path(p4src.name) / "bmv2" / f"{program_name(variant)}.p4"
    with tempfile.TemporaryDirectory() as folder:
        raw_json = Path(folder) / target.json.name
        raw_p4info = Path(folder) / target.p4info.name
        command = [compiler, *FLAGS, "-o", raw_json, "--p4runtime-files", raw_p4info, program]
        if said := run_compiler(command, root):
            raise CompilationError(f"{COMPILER} remarks on {program}:\n{said}")
        pipeline = json.loads(raw_json.read_text(encoding="utf-8"))
        target.json.write_text(format_json(pipeline) + "\n", encoding="utf-8")
        target.p4info.write_bytes(raw_p4info.read_bytes())
    manifest = {
        "program": program.as_posix(),
        "compiler": f"{COMPILER} {compiler_version(compiler)}",
        "flags": list(FLAGS),
        "sources": source_hashes(variant, p4src),
        "artefacts": {path.name: sha256(path) for path in (target.json, target.p4info)},
    }
    target.manifest.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return target


def check_recompiled(variant: Variant, build_dir: Path = BUILD_DIR) -> None:
    """Compile again and raise StaleArtefactError where the result differs from the committed one.

    Another version of p4c may write other JSON for the same sources, so that only the version
    which the manifest names is compared.
    """
    committed = artefacts(variant, build_dir)
    compiler = f"{COMPILER} {compiler_version(find_compiler())}"
    if json.loads(committed.manifest.read_text(encoding="utf-8"))["compiler"] != compiler:
        return
    with tempfile.TemporaryDirectory() as folder:
        fresh = compile_program(variant, Path(folder))
        for name in ("json", "p4info", "manifest"):
            if getattr(fresh, name).read_bytes() != getattr(committed, name).read_bytes():
                raise StaleArtefactError(
                    f"{getattr(committed, name)} is not what {compiler} makes of the sources; "
                    "run: make p4"
                )


def check_all() -> None:
    """Check the generated lanes, every manifest and, where p4c is present, every artefact."""
    for path, text in generated_files().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            raise StaleArtefactError(f"{path} is out of date; run: make p4")
    for variant in VARIANTS:
        check_manifest(variant)
        if shutil.which(COMPILER) is not None:
            check_recompiled(variant)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m switchfold.p4src.compile", description=main.__doc__
    )
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args(arguments)
    try:
        if options.check:
            check_all()
            return 0
        write_lanes()
        for variant in VARIANTS:
            made = compile_program(variant)
            print(f"{made.json.relative_to(P4SRC.parent)}: {made.json.stat().st_size} bytes")
    except P4srcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
