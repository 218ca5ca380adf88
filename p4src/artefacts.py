# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Where the compiled programs lie, and which sources they were made from."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

Variant = Literal["narrow", "wide"]
VARIANTS: Final[tuple[Variant, ...]] = get_args(Variant)
"""narrow: 32 values per packet; wide: 352."""

P4SRC: Final = Path(__file__).resolve().parent
BUILD_DIR: Final = P4SRC / "build"

_INCLUDE: Final = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Artefacts:
    """Files that p4c made of one program."""

    json: Path
    """BMv2 JSON: what BMv2 and softswitch load."""
    p4info: Path
    """P4Info, protobuf text format."""
    manifest: Path
    """Hashes of sources and artefacts, compiler version and flags."""


def program_name(variant: Variant) -> str:
    """Return the name of a variant's root program, without suffix."""
    return f"switchfold_{variant}"


def artefact_dir(variant: Variant, build_dir: Path = BUILD_DIR) -> Path:
    """Return the folder of a variant's compiled artefacts."""
    return build_dir / program_name(variant)


def artefacts(variant: Variant, build_dir: Path = BUILD_DIR) -> Artefacts:
    """Return the paths of a variant's compiled artefacts."""
    folder, name = artefact_dir(variant, build_dir), program_name(variant)
    return Artefacts(
        json=folder / f"{name}.json",
        p4info=folder / f"{name}.p4info.txtpb",
        manifest=folder / "manifest.json",
    )


def sources(variant: Variant, p4src: Path = P4SRC) -> list[Path]:
    """Return the root program and every file of ours that it includes, sorted."""
    return included_by(p4src / "bmv2" / f"{program_name(variant)}.p4")


def included_by(program: Path) -> list[Path]:
    """Return a program and the files that it includes by `#include "..."`, resolved and sorted.

    Files that are missing are named, too, so that whoever compares finds them gone.
    """
    found: set[Path] = set()
    pending = [program]
    while pending:
        path = pending.pop().resolve()
        if path not in found:
            found.add(path)
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            names: list[str] = _INCLUDE.findall(text)
            pending += [path.parent / name for name in names]
    return sorted(found)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def source_hashes(variant: Variant, p4src: Path = P4SRC) -> dict[str, str]:
    """Return the SHA-256 of each source of a variant, by its path from the repository root."""
    root = p4src.resolve().parent
    return {path.relative_to(root).as_posix(): sha256(path) for path in sources(variant, p4src)}
