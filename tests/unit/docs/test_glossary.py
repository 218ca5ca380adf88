# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""docs/glossary.md: terms in order, each with meaning and source; retired words stay retired."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GLOSSARY = ROOT / "docs" / "glossary.md"
PAGES = [
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("*/*.md"), *ROOT.glob("*/*/*.md"))
    if path.name not in ("CHANGELOG.md", "glossary.md") and ".venv" not in path.parts
]
"""Pages that use no retired word; the changelog tells of old names."""
PARTS = ("bmv2_topos", "controller", "hostlib", "p4src", "softswitch")
RETIRED_NAMES = frozenset(
    {"heir", "hello", "hush", "layout", "layouts", "office", "patience", "redeem", "seat", "seats"}
    | {"welcome", "welcomes", "wish", "wishes"}
)
"""Parts of identifiers that are retired, too."""
DATA_IN_MEMORY = re.compile(
    r"softswitch/|hostlib/(hot_rows|parameter_server|schemes|summation|torch)/"
    r"|hostlib/(engine/allreduce_task|peers/frames/hot)"
    r"|controller/(cli/demo/report|cli/(?:tolerance|traces)/plot|cli/latency/figures|fabric/trees/tree_picture)"
)
"""Where "layout" is that of data: of tensors, parameters and structures; or of a picture."""
HANDSHAKE = re.compile(r"hostlib/(factors|hosts|parameter_server|peers)/")
"""Where "welcome" is a frame between workers."""
MAX_MEANING_CHARACTERS = 160

HIDDEN = re.compile(
    r"^```.*?^```|`[^`\n]*`|<!--.*?-->|(?<=\])\([^)\s]*\)", re.DOTALL | re.MULTILINE
)
"""What is no prose: code, comments, targets of links."""


@dataclass(frozen=True)
class Allowed:
    """A retired word in an ordinary sense."""

    word: str
    phrase: str
    """Pattern in which the word may stand."""
    reason: str


ALLOWED = (
    Allowed("ask", r"\w+", "an ordinary verb; only what a deadline does has another word"),
    Allowed("configuration", r"\w+", "the settings of a controller or of a switch"),
    Allowed("layout", r"(?:parameter|lane|memory) layouts?", "data in memory or on shards"),
    Allowed("layout", r"dtypes or layouts", "PyTorch's word for how a tensor lies in memory"),
    Allowed("layout", r"answer have the same layout", "the order of fields in a packet"),
    Allowed("life", r"\w+", "an ordinary noun, as in the picture 'Life of a gradient'"),
    Allowed("round trip", r"round-trip time", "spells out RTT"),
    Allowed("tell", r"\w+", "an ordinary verb; only what a deadline does has another word"),
    Allowed("welcome", r"WELCOME \| server", "a frame between workers, not the join reply"),
    Allowed("way", r"(?:two|three)-way", "the names of the rules that choose a scheme"),
    Allowed("way", r"under way", "in progress; no path and no scheme"),
)


def identifier_parts(source: str) -> set[str]:
    """Return the words of which a module's identifiers are made, in lower case."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    names = {token.string for token in tokens if token.type == tokenize.NAME}
    camel = r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])"
    return {part.lower() for name in names for part in re.findall(camel, name)}


def retired_parts(path: str, source: str) -> set[str]:
    """Return the retired words in a module's identifiers."""
    found = identifier_parts(source) & RETIRED_NAMES
    if DATA_IN_MEMORY.match(path):
        found -= {"layout", "layouts"}
    if HANDSHAKE.match(path):
        found -= {"welcome"}
    return found


def read_rows(head: str) -> list[list[str]]:
    """Return the cells of the glossary's table with this head."""
    lines = GLOSSARY.read_text("utf-8").splitlines()
    start = lines.index(head) + 2
    rows: list[list[str]] = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def read_terms() -> list[list[str]]:
    return read_rows("| term | meaning | from |")


def read_retired_words() -> list[str]:
    """Return the retired words, without the notes in brackets that say in which sense."""
    return [row[0].partition(" (")[0] for row in read_rows("| word | write instead |")]


def blank(pattern: re.Pattern[str], text: str) -> str:
    """Replace matches by spaces; lines keep their numbers."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def find_retired_words(
    text: str, words: Iterable[str], allowed: Iterable[Allowed] = ALLOWED
) -> list[str]:
    """Return one message for each retired word in the prose of a page."""
    prose = blank(HIDDEN, text)
    messages: list[str] = []
    for word in words:
        searched = prose
        for each in allowed:
            if each.word == word:
                searched = blank(re.compile(rf"\b{each.phrase}\b", re.IGNORECASE), searched)
        pattern = r"[\s-]+".join(map(re.escape, word.split()))
        for found in re.finditer(rf"\b{pattern}(?:s|es)?\b", searched, re.IGNORECASE):
            line = searched.count("\n", 0, found.start()) + 1
            messages.append(f"line {line}: {found[0]!r} is retired")
    return messages


def test_terms_are_sorted_and_unique() -> None:
    terms = [row[0].strip("`").casefold() for row in read_terms()]
    assert len(terms) > 100
    assert terms == sorted(set(terms))


def test_every_row_has_three_filled_cells() -> None:
    for row in read_terms():
        assert len(row) == 3, row
        assert all(row), row


def test_meanings_are_short() -> None:
    for term, meaning, _ in read_terms():
        assert len(meaning) <= MAX_MEANING_CHARACTERS, term


def test_retired_words_are_sorted_unique_and_replaced() -> None:
    rows = read_rows("| word | write instead |")
    words = read_retired_words()
    assert len(words) > 15
    assert words == sorted(set(words))
    for row in rows:
        assert len(row) == 2, row
        assert all(row), row


def test_retired_word_is_no_term() -> None:
    terms = {row[0].strip("`").casefold() for row in read_terms()}
    senses = {term.partition(" (")[0] for term in terms}
    assert not (terms | senses) & set(read_retired_words())


def test_exceptions_are_retired_words_with_a_reason() -> None:
    assert {each.word for each in ALLOWED} <= set(read_retired_words())
    assert all(each.reason for each in ALLOWED)


def test_meanings_use_no_retired_word() -> None:
    words = read_retired_words()
    for term, meaning, _ in read_terms():
        assert not find_retired_words(meaning, words), term


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_uses_no_retired_word(page: Path) -> None:
    assert not find_retired_words(page.read_text("utf-8"), read_retired_words())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One\nway, two Ways.", ["line 2: 'way' is retired", "line 2: 'Ways' is retired"]),
        ("Always away.", []),
        ("A three-way rule, no one-way link.", ["line 1: 'way' is retired"]),
        ("`way`\n```sh\nway\n```\n<!-- way -->[a](way.md)\nway", ["line 6: 'way' is retired"]),
        ("[way](a.md) (way)", ["line 1: 'way' is retired"] * 2),
        ("Host\npaths", ["line 1: 'Host\\npaths' is retired"]),
    ],
)
def test_retired_words_are_found_in_prose_alone(text: str, found: list[str]) -> None:
    assert find_retired_words(text, ["way", "host path"]) == found


@pytest.mark.parametrize("part", PARTS)
def test_names_use_no_retired_word(part: str) -> None:
    paths = [p for p in (ROOT / part).rglob("*.py") if "_pb2" not in p.name]
    assert paths
    found = {
        str(path.relative_to(ROOT)): retired_parts(
            str(path.relative_to(ROOT)), path.read_text("utf-8")
        )
        for path in paths
    }
    assert not {path: words for path, words in found.items() if words}


def test_retired_names_are_found() -> None:
    source = "class LayoutPath:\n    def join_seat(self, HELLO_S: int): ...\n"
    assert retired_parts("controller/a.py", source) == {"layout", "seat", "hello"}
    assert retired_parts("softswitch/a.py", "tensor.layout") == set()
