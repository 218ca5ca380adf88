# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles generated C to shared libraries, with any C compiler, and keeps them in a cache.

A library's file name holds the hash of all inputs: the program, the sources of the generator and of
the runtime, compiler and flags. So a program in the cache needs no generator. The library appears
in the cache by an atomic rename, so that processes may compile the same program at the same time.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CompileError, CompilerNotFoundError
from ..program.bmv2_json import read_program
from ..program.model import Program
from .build_folder import FULL_TEXTS, build_folder, cache_error, cache_errors
from .hardening import HARDENING, LINKING

if TYPE_CHECKING:
    from ..generator import TracePoint

RUNTIME = Path(__file__).parents[1] / "runtime"
GENERATOR = tuple(Path(__file__).parents[1] / folder for folder in ("generator", "program"))
"""Folders of the modules that decide the C text of a program."""
_FOLDERS = (RUNTIME, *(RUNTIME / part for part in ("program", "tables", "ports", "switch")))
INCLUDES = tuple(f"-I{folder}" for folder in _FOLDERS)
SOURCES = tuple(sorted([*RUNTIME.glob("program/*.c"), *RUNTIME.glob("tables/*.c")]))
"""What every program is compiled with; the rest of the runtime is compiled once."""
HEADERS = tuple(
    sorted(p for folder in ("", "program/", "tables/") for p in RUNTIME.glob(f"{folder}*.h"))
)
FLAGS = (
    "-std=c11",
    "-O3",
    "-march=native",
    "-fPIC",
    "-shared",
    "-fvisibility=default",
    "-fno-math-errno",
    "-Wall",
    "-Wextra",
    *HARDENING,
    *LINKING,
)
"""Only our tests treat warnings as errors: those of a newer compiler must not stop a program."""
CFLAGS_VARIABLE = "SWITCHFOLD_CFLAGS"
"""Environment variable with further flags for programs and runtime, sanitizers for instance."""
logger = logging.getLogger(__name__)
TIMEOUT_S = 300
_NAME_MAX = 50
"""Most characters of the program's name in the library's file name, which may have 255 bytes."""


@dataclass(frozen=True, kw_only=True)
class CompiledProgram:
    """A program as native code, for a switch to load."""

    program_name: str
    library: Path
    """Shared library behind the pipeline seam."""
    model: Program
    """Tables, actions, counters, registers: names, widths and positions."""


@dataclass(frozen=True, kw_only=True)
class TracedProgram(CompiledProgram):
    """A program whose library records the steps of packets."""

    points: tuple[TracePoint, ...]


def find_compiler() -> tuple[str, ...]:
    """Return the command of a C compiler: cc, gcc, clang, or zig's from the ziglang wheel.

    Raises CompilerNotFoundError when there is none.
    """
    for name in ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found is not None:
            return (found,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise CompilerNotFoundError(
        "no C compiler: looked for cc, gcc and clang on the PATH and for the Python package "
        "ziglang. Install one of them, e.g. 'apt install gcc' or 'pip install ziglang'"
    )


def environment_flags() -> tuple[str, ...]:
    """Return the compiler flags of SWITCHFOLD_CFLAGS; none if it is not set."""
    return tuple(shlex.split(os.environ.get(CFLAGS_VARIABLE, "")))


def default_cache_dir() -> Path:
    """Return the directory of compiled programs: softswitch below XDG_CACHE_HOME or ~/.cache.

    Raises CacheError for a user without a home directory.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "softswitch"
    try:
        return Path.home() / ".cache" / "softswitch"
    except RuntimeError as exc:
        raise cache_error(Path("~/.cache/softswitch"), str(exc), is_full=False) from exc


def compile_program(
    json_path: Path,
    *,
    cache_dir: Path | None = None,
    cflags: Sequence[str] = (),
    has_counts: bool = False,
) -> CompiledProgram:
    """Compile a BMv2 JSON file to a native library, or take it from the cache.

    cflags follow the switch's own flags. has_counts makes the code count each table's hits and
    misses (softswitch.live reads them). Raises ProgramError or UnsupportedError with all
    problems of the program, CompilerNotFoundError, CompileError, CacheError, and OSError for a
    JSON file that cannot be read.
    """
    program = read_program(json_path)
    return compile_model(program, cache_dir=cache_dir, cflags=cflags, has_counts=has_counts)


def compile_model(
    program: Program,
    *,
    cache_dir: Path | None = None,
    cflags: Sequence[str] = (),
    has_counts: bool = False,
) -> CompiledProgram:
    """Compile a program that has been read; see compile_program."""

    def text() -> str:
        from ..generator import generate  # noqa: PLC0415 - a cached program needs no generator

        return generate(program, has_counts=has_counts)

    inputs = [program.name, json.dumps(program.json), f"has_counts={has_counts}"]
    library = _library(program, inputs, text, cache_dir, cflags)
    return CompiledProgram(program_name=program.name, library=library, model=program)


def compile_traced(
    json_path: Path, *, cache_dir: Path | None = None, cflags: Sequence[str] = ()
) -> TracedProgram:
    """Compile a traced build of a BMv2 JSON file; raises the errors of compile_program."""
    from ..generator import generate_traced  # noqa: PLC0415

    program = read_program(json_path)
    text, points = generate_traced(program)
    # A traced build carries few packets, so a short compilation matters more than fast code.
    library = _library(program, [text], lambda: text, cache_dir, ("-O1", *cflags))
    return TracedProgram(program_name=program.name, library=library, model=program, points=points)


def _library(
    program: Program,
    inputs: Sequence[str],
    text: Callable[[], str],
    cache_dir: Path | None,
    cflags: Sequence[str],
) -> Path:
    """Return a program's library; `text` is called if it is not cached, and depends on `inputs`."""
    command = [*find_compiler(), *FLAGS, *environment_flags(), *cflags]
    directory = default_cache_dir() if cache_dir is None else cache_dir
    library = directory / f"{program.name[:_NAME_MAX]}-{_digest(inputs, command)}.so"
    with cache_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
        if not library.exists():
            generated = text()
            logger.info("compiling %s; the cache %s keeps the library", program.name, directory)
            _build(generated, command, library)
    return library


def _digest(inputs: Sequence[str], command: list[str]) -> str:
    digest = hashlib.sha256()
    pieces = [*inputs, *command, platform.machine(), platform.processor(), processor_features()]
    for piece in pieces:
        digest.update(piece.encode() + b"\0")
    modules = sorted(path for folder in GENERATOR for path in folder.rglob("*.py"))
    for path in (*modules, *SOURCES, *HEADERS):
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:24]


def processor_features() -> str:
    """Return what -march=native makes a library depend on."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return ""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _build(text: str, command: list[str], library: Path) -> None:
    with build_folder(library.parent) as directory:
        source = directory / "pipeline.c"
        source.write_text(text, encoding="utf-8")
        built = directory / library.name
        sources = [str(source), *map(str, SOURCES)]
        arguments = [*command, *INCLUDES, "-o", str(built), *sources]
        result = run_compiler(arguments, directory)
        if result.returncode != 0:
            raise CompileError(
                f"{command[0]} failed with status {result.returncode} on {library.stem}; please "
                f"report this with the program. The compiler said:\n{result.stderr[-4000:]}"
            )
        built.replace(library)


def run_compiler(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a compiler with its temporary files in a build folder and with English messages.

    Raises CompileError if it cannot run or does not end in time, CacheError if the folder's disk
    is full.
    """
    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)}
    try:
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise CompileError(f"{command[0]} could not be run: {exc}") from exc
    if result.returncode:
        full = next((text for text in FULL_TEXTS if text in result.stderr), None)
        if full is not None:
            raise cache_error(folder.parent, full, is_full=True)
    return result
