# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tells whether a compiled program belongs to its P4 sources, by the digests kept beside it.

The manifest of a program names the SHA-256 of each source and of each artefact. To compare needs
no p4c. Installations without P4 sources compare the artefacts alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .artefacts import BUILD_DIR, P4SRC, Variant, artefacts, included_by, sha256
from .errors import StaleArtefactError

MANIFEST: Final = "manifest.json"
"""Name of the file beside a program's artefacts."""
HOW_TO_COMPILE: Final = (
    "run 'make p4' with p4c-bm2-ss on the PATH, or 'docker compose run --rm p4c'"
)
HOW_TO_COMPILE_OWN: Final = "run 'switchfold p4 compile' again"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a manifest says; paths are relative."""

    root: Path
    """Folder that the sources' paths begin at."""
    folder: Path
    """Folder of the artefacts."""
    program: str
    """Path of the root program."""
    compiler: str
    """Name, version and commit of the compiler."""
    sources: Mapping[str, str]
    """SHA-256 of each source by its path."""
    artefacts: Mapping[str, str]
    """SHA-256 of each artefact by its name."""

    def changed(self) -> list[str]:
        """Return the sources and artefacts that are not those of the compilation, sorted."""
        expected = dict(self.artefacts)
        paths = {name: self.folder / name for name in self.artefacts}
        actual = {name: sha256(path) for name, path in paths.items() if path.is_file()}
        program = self.root / self.program
        if program.is_file():
            expected |= self.sources
            actual |= hashes(included_by(program), self.root)
        names = expected | actual
        return sorted(name for name in names if expected.get(name) != actual.get(name))


def hashes(paths: list[Path], root: Path) -> dict[str, str]:
    """Return the SHA-256 of each file by its path from `root`; missing files are left out."""
    start = root.resolve()
    return {
        Path(os.path.relpath(path, start)).as_posix(): sha256(path)
        for path in paths
        if path.is_file()
    }


def read_manifest(path: Path, root: Path) -> Manifest:
    """Read a manifest; StaleArtefactError when it is missing or no manifest."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return Manifest(
            root=root,
            folder=path.parent,
            **{name: content[name] for name in ("program", "compiler", "sources", "artefacts")},
        )
    except FileNotFoundError as exc:
        raise StaleArtefactError(f"{path} is missing; {HOW_TO_COMPILE}") from exc
    except (json.JSONDecodeError, KeyError, TypeError) as exc:
        raise StaleArtefactError(f"{path} is no manifest ({exc}); {HOW_TO_COMPILE}") from exc


def check_manifest(variant: Variant, build_dir: Path = BUILD_DIR, p4src: Path = P4SRC) -> None:
    """Raise StaleArtefactError unless the artefacts belong to the sources; needs no p4c."""
    path = artefacts(variant, build_dir).manifest
    changed = read_manifest(path, p4src.resolve().parent).changed()
    if changed:
        raise StaleArtefactError(_differs(path, changed, HOW_TO_COMPILE))


def stale_variant(variant: Variant) -> str:
    """Return why the compiled program of a variant is not that of its sources, "" if it is."""
    try:
        check_manifest(variant)
    except StaleArtefactError as exc:
        return str(exc)
    return ""


def stale_program(folder: Path) -> str:
    """Return why the program compiled into a folder is not that of its sources, "" if it is.

    Also "" for a folder without manifest: what another compilation made cannot be compared.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return ""
    try:
        changed = read_manifest(path, folder.resolve()).changed()
    except StaleArtefactError as exc:
        return str(exc)
    return _differs(path, changed, HOW_TO_COMPILE_OWN) if changed else ""


def _differs(manifest: Path, changed: list[str], remedy: str) -> str:
    return (
        f"{manifest.parent} holds an old program: it was not compiled from what is now in"
        f" {', '.join(changed)}; {remedy}"
    )
