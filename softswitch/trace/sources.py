# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""P4 source lines of steps: source_info of the JSON, with the line's text if the file is found."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..program.model import Json

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
_LEVELS = 4
"""Folders above the JSON's in which its sources may be."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A place in the P4 program."""

    file: str
    line: int
    text: str
    """The whole line if the file was found, otherwise the fragment that the JSON holds."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Sources:
    """Finds P4 files next to the JSON and in further folders or files."""

    def __init__(self, json_path: Path | None, places: Sequence[Path] = ()) -> None:
        self._places = [*places, *([json_path.parent] if json_path is not None else [])]
        self._beside = json_path.absolute().parent if json_path is not None else None
        self._files: dict[str, list[str] | None] = {}

    def of(self, info: Json | None) -> Source | None:
        """Return the place that a source_info names; None without one."""
        if not info:
            return None
        file, line = str(info.get("filename", "?")), int(info.get("line", 0))
        lines = self._lines(file)
        if lines is not None and 0 < line <= len(lines):
            text = lines[line - 1].strip()
        else:
            text = str(info.get("source_fragment", "")).split("\n")[0].strip()
        return Source(file=file, line=line, text=text)

    def of_state(self, main: str, state: str) -> Source | None:
        """Return the place of a parser state, which the JSON does not contain."""
        lines = self._lines(main)
        if lines is None:
            return None
        pattern = re.compile(rf"\bstate\s+{re.escape(state)}\b")
        for number, line in enumerate(lines, 1):
            if pattern.search(line):
                return Source(file=main, line=number, text=line.strip())
        return None

    def texts(self, main: str) -> list[str]:
        """Return the texts of a program's main file and of what it includes; missing ones not."""
        found: dict[Path, str] = {}
        pending = [self._find(main)]
        while pending:
            path = pending.pop()
            if path is None or path in found:
                continue
            found[path] = path.read_text(encoding="utf-8", errors="replace")
            pending += [
                included.resolve()
                for name in _INCLUDE.findall(found[path])
                if (included := path.parent / name).is_file()
            ]
        return list(found.values())

    def _lines(self, file: str) -> list[str] | None:
        if file not in self._files:
            self._files[file] = self._read(file)
        return self._files[file]

    def _read(self, file: str) -> list[str] | None:
        path = self._find(file)
        if path is None:
            return None
        return path.read_text(encoding="utf-8", errors="replace").splitlines()

    def _find(self, file: str) -> Path | None:
        candidates = [Path(file)]
        for place in self._places:
            if place.is_file() and place.name == Path(file).name:
                candidates.insert(0, place)
            folder = place if place.is_dir() else place.parent
            candidates += [folder / file, folder / Path(file).name]
        # A compiled program often lies in a folder below its sources.
        above = self._beside.parents[:_LEVELS] if self._beside is not None else ()
        candidates += [folder / file for folder in above]
        for path in candidates:
            if path.is_file():
                return path.resolve()
        return None
