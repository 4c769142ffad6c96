"""Arithmetic on metrics, written as text: its value with its error, its SQL, and the text with the numbers put in."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable

from explorer.analysis.summary_terms import Number, Value

#: What rounding in a few operations of double arithmetic can do, relative to the result.
_ROUNDING = 8 * math.ulp(1.0)


def names(formula: str) -> tuple[str, ...]:
    """The metrics that a formula uses, in order of appearance."""
    found = [n for n in ast.walk(_parse(formula)) if isinstance(n, ast.Name) and n.id != "min"]
    return tuple(dict.fromkeys(n.id for n in sorted(found, key=lambda n: n.col_offset)))


def evaluate(formula: str, value: Callable[[str], Value | None]) -> Value | None:
    """The formula's value with the error that those of its terms amount to; None if a term is, or if it divides by zero."""
    return _evaluate(_parse(formula), value)


def sql(formula: str, term: Callable[[str], str]) -> str:
    """The formula in SQL, each metric replaced by `term(name)`."""
    return _render(_parse(formula), term, minimum="least")


def with_numbers(formula: str, term: Callable[[str], str]) -> str:
    """The formula as text, each metric replaced by `term(name)`."""
    return _render(_parse(formula), term, minimum="min")


def _parse(formula: str) -> ast.expr:
    return ast.parse(formula, mode="eval").body


def _evaluate(node: ast.expr, value: Callable[[str], Value | None]) -> Value | None:
    if isinstance(node, ast.Constant):
        return Value(_number(node))
    if isinstance(node, ast.Name):
        return value(node.id)
    if isinstance(node, ast.Call):
        parts = [_evaluate(a, value) for a in node.args]
        known = [p for p in parts if p is not None]
        return Value(min(p.value for p in known), max(p.error for p in known)) if len(known) == len(parts) else None
    if not isinstance(node, ast.BinOp):
        raise ValueError(f"{ast.unparse(node)}: not arithmetic")
    a, b = _evaluate(node.left, value), _evaluate(node.right, value)
    return None if a is None or b is None else _combine(node.op, a, b)


def _combine(op: ast.operator, a: Value, b: Value) -> Value | None:
    if isinstance(op, (ast.Add, ast.Sub)):
        total = a.value + b.value if isinstance(op, ast.Add) else a.value - b.value
        return _rounded(total, a.error + b.error)
    if isinstance(op, ast.Mult):
        return _rounded(a.value * b.value, abs(a.value) * b.error + abs(b.value) * a.error + a.error * b.error)
    if not isinstance(op, ast.Div):
        raise ValueError(f"{type(op).__name__}: not an operation of a formula")
    if b.value == 0 or abs(b.value) <= b.error:
        return None
    # |a/b - a'/b'| <= (|a| eb + |b| ea) / (|b| |b'|), with |b'| >= |b| - eb.
    return _rounded(
        a.value / b.value, (abs(a.value) * b.error + abs(b.value) * a.error) / (abs(b.value) * (abs(b.value) - b.error))
    )


def _rounded(value: Number, error: float) -> Value:
    return Value(value, error if isinstance(value, int) else error + abs(value) * _ROUNDING)


def _render(node: ast.expr, term: Callable[[str], str], minimum: str) -> str:
    if isinstance(node, ast.Constant):
        return f"{_number(node):g}"
    if isinstance(node, ast.Name):
        return term(node.id)
    if isinstance(node, ast.Call):
        return f"{minimum}({', '.join(_render(a, term, minimum) for a in node.args)})"
    if not isinstance(node, ast.BinOp):
        raise ValueError(f"{ast.unparse(node)}: not arithmetic")
    sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}[type(node.op)]
    sides = [_render(s, term, minimum) for s in (node.left, node.right)]
    # Brackets as the formula needs them: * and / bind closer, and what stands right of - or / keeps its own.
    rank = {"+": 1, "-": 1, "*": 2, "/": 2}
    for i, side in enumerate((node.left, node.right)):
        if isinstance(side, ast.BinOp):
            inner = rank[{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}[type(side.op)]]
            if inner < rank[sign] or (i == 1 and inner == rank[sign]):
                sides[i] = f"({sides[i]})"
    return f"{sides[0]} {sign} {sides[1]}"


def _number(node: ast.Constant) -> Number:
    if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
        raise ValueError(f"{node.value!r}: not a number")
    return node.value
