# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A manual page in the language of man(7): titles, paragraphs, lists, text as it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import final


def escaped(text: str) -> str:
    """Return text that roff prints as it stands: no request, no escape, no hyphen for a minus."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.MULTILINE)


@final
class RoffPage:
    """Collects a page; `text` returns it."""

    def __init__(self, name: str, *, version: str) -> None:
        self._lines = [f'.TH "{escaped(name.upper())}" "1" "" "Switchfold {escaped(version)}"']

    @property
    def text(self) -> str:
        """The page."""
        return "\n".join(self._lines) + "\n"

    def section(self, title: str) -> None:
        """Begin a section."""
        self._lines.append(f'.SH "{escaped(title.upper())}"')

    def line(self, *, bold: str = "", plain: str = "") -> None:
        """Add a line of the current paragraph, of which the first part may be bold."""
        words = f"\\fB{escaped(bold)}\\fR" if bold else ""
        self._lines.append(" ".join(part for part in (words, escaped(plain)) if part))

    def paragraph(self, text: str) -> None:
        """Add a paragraph, whose lines are filled."""
        self._lines += [".PP", escaped(text)]

    def verbatim(self, lines: Iterable[str]) -> None:
        """Add lines that are not filled."""
        self._lines += [".PP", ".nf", *map(escaped, lines), ".fi"]

    def entry(self, term: str, text: str) -> None:
        """Add an entry of a list: a term, and what it means."""
        self._lines += [".TP", f"\\fB{escaped(term)}\\fR", escaped(text) or "\\&"]
