# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Steps of the parser: states, their operations, transitions and the end."""

from typing import Any

from ..generator import TracePoint
from ..program.model import Json
from .state import PacketState
from .step import Step
from .values import field_name, format_value


class ParserSteps:
    """Turns the parser's trace points into steps; the next point shows a transition's target."""

    def __init__(self, state: PacketState) -> None:
        self._state = state
        self._select: Step | None = None
        self._is_chosen = False
        self._current: Json = {}
        self._done = 0
        errors: list[list[Any]] = state.program.json.get("errors", [])
        self._errors = {int(item[1]): str(item[0]) for item in errors}

    def enter(self, point: TracePoint) -> list[Step]:
        """Return the steps of a state that the parser enters, and of the transition to it."""
        state = self._state
        steps = self._finish_select(point.name)
        state.stage, state.depth = "parser", 1
        self._current, self._done = point.item, 0
        main = str(state.program.json.get("program", ""))
        source = state.source(point) or state.sources.of_state(main, point.name)
        steps.append(state.step("state", f"state {point.name}", source=source, name=point.name))
        return steps

    def operation(self, point: TracePoint, at: int) -> list[Step]:
        """Return the step of an operation that the state has executed."""
        state = self._state
        self._done += 1
        changes = state.changes()
        text = self._operation_text(point.item)
        return [
            state.step(
                "operation",
                text,
                details=state.describe(changes),
                source=state.source(point),
                extra_depth=1,
                operation=point.item["op"],
                taken_bits=at,
                changes=state.change_data(changes),
            )
        ]

    def _operation_text(self, item: Json) -> str:
        op, parameters = item["op"], item["parameters"]
        text = self._state.expressions.text
        match op:
            case "extract" | "extract_VL":
                return f"extract {parameters[0]['value']}"
            case "set":
                return f"{text(parameters[0])} = {text(parameters[1])}"
            case "verify":
                return f"verify {text(parameters[0])}"
            case "primitive":
                inner = parameters[0]
                return f"{inner['op']}({', '.join(text(part) for part in inner['parameters'])})"
            case _:
                return f"{op} {' '.join(text(part) for part in parameters)}"

    def select(self, point: TracePoint, at: int) -> list[Step]:
        """Note the select keys after the state's operations; the next point has the target."""
        state = self._state
        keys: dict[str, int] = {}
        shown: list[str] = []
        for part in point.item.get("transition_key", []):
            name, value, shown_value = self._key(part, at)
            if value is not None:
                keys[name] = value
            shown.append(f"{name}={shown_value}")
        self._is_chosen = bool(shown)
        text = f"select({', '.join(shown)})" if shown else "transition"
        self._select = state.step("transition", text, extra_depth=1, keys=keys)
        return []

    def _key(self, part: Json, at: int) -> tuple[str, int | None, str]:
        """Return a select key's name, its value and the value as text."""
        state = self._state
        value: Any = part["value"]
        if part["type"] == "field" and state.now is not None:
            name = (value[0], value[1])
            number = state.now.value(*name)
            return field_name(name), number, "?" if number is None else state.format(name, number)
        if part["type"] == "lookahead":
            offset, width = value
            spare = len(state.frame) * 8 - at - offset - width
            if spare < 0:
                return f"lookahead {width} bits", None, "?"
            bits = int.from_bytes(state.frame, "big") >> spare & ((1 << width) - 1)
            return f"lookahead {width} bits", bits, format_value(bits, width)
        return state.expressions.text(part), None, "?"

    def _finish_select(self, target: str) -> list[Step]:
        if self._select is None:
            return []
        step, self._select = self._select, None
        data = {**step.data, "next": target}
        return [
            Step(
                packet=step.packet,
                stage=step.stage,
                kind=step.kind,
                text=f"{step.text} -> {target}",
                depth=step.depth,
                data=data,
            )
        ]

    def end(self, at: int, error: int) -> list[Step]:
        """Return the steps of the parser's end."""
        state = self._state
        left = max(len(state.frame) - at // 8, 0)
        state.depth = 1
        if error == 0:
            steps = self._finish_select("accept")
            text = f"accept: {at // 8} bytes parsed, {left} left"
            return [*steps, state.step("accept", text, parsed_bytes=at // 8, left_bytes=left)]
        name = self._errors.get(error, str(error))
        steps = self._finish_select("no match" if self._is_chosen else "reject")
        operations = self._current.get("parser_ops", [])
        source = None
        text = f"parser error {name}"
        if not steps and self._done < len(operations):
            failed = operations[self._done]
            text += f" in {self._operation_text(failed)}"
            source = state.sources.of(failed.get("source_info"))
        return [*steps, state.step("parser_error", text, source=source, error=name)]
