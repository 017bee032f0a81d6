"""Compute an arithmetic expression without running it as code.

The expression is parsed to Python's syntax tree, and only numbers, operators, parentheses and the functions
and constants below are computed, in decimals of 50 digits with exponents up to 1000: no power or product can
grow beyond that. Pure.
"""

from __future__ import annotations

import ast
import decimal
from collections.abc import Callable
from decimal import Decimal

MOST_CHARS = 500
_MOST_NODES = 200
_MOST_DEPTH = 40
_DIGITS, _MOST_EXPONENT = 50, 1000
_SHOWN_DIGITS = 15
_PLAIN_EXPONENTS = range(-15, 21)


class ExpressionError(ValueError):
    """The expression cannot be computed; the message says why and holds none of it."""


def _context() -> decimal.Context:
    return decimal.Context(
        prec=_DIGITS,
        Emax=_MOST_EXPONENT,
        Emin=-_MOST_EXPONENT,
        traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
    )


def _floor(value: Decimal) -> Decimal:
    return value.to_integral_value(decimal.ROUND_FLOOR)


def _floor_quotient(left: Decimal, right: Decimal) -> Decimal:
    return _floor(left / right)


def _remainder(left: Decimal, right: Decimal) -> Decimal:
    return left - right * _floor_quotient(left, right)


def _rounded(value: Decimal, places: Decimal = Decimal(0)) -> Decimal:
    if places != places.to_integral_value() or abs(places) > _DIGITS:
        raise ExpressionError("round takes a small whole number of places")
    return value.quantize(Decimal(1).scaleb(-int(places)), rounding=decimal.ROUND_HALF_EVEN)


_OPERATORS: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: _floor_quotient,
    ast.Mod: _remainder,
    ast.Pow: lambda left, right: left**right,
}
_SIGNS: dict[type[ast.unaryop], Callable[[Decimal], Decimal]] = {
    ast.UAdd: lambda value: +value,
    ast.USub: lambda value: -value,
}
_FUNCTIONS: dict[str, Callable[..., Decimal]] = {
    "abs": abs,
    "ceil": lambda value: value.to_integral_value(decimal.ROUND_CEILING),
    "exp": Decimal.exp,
    "floor": _floor,
    "ln": Decimal.ln,
    "log": Decimal.ln,
    "log10": Decimal.log10,
    "max": lambda first, *others: max(first, *others) if others else first,
    "min": lambda first, *others: min(first, *others) if others else first,
    "round": _rounded,
    "sqrt": Decimal.sqrt,
}
_CONSTANTS = {
    "e": Decimal("2.7182818284590452353602874713526624977572470936999596"),
    "pi": Decimal("3.1415926535897932384626433832795028841971693993751058"),
}


def computed(expression: str) -> Decimal:
    """Return the value of ``expression``: a finite number.

    Raises:
        ExpressionError: it is too long, no arithmetic, has no value, or one too large.
    """
    if len(expression) > MOST_CHARS:
        raise ExpressionError(f"it is longer than {MOST_CHARS} characters")
    try:
        tree = ast.parse(expression.strip().replace("^", "**"), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError("it is no arithmetic expression") from None
    if sum(1 for _ in ast.walk(tree)) > _MOST_NODES:
        raise ExpressionError("it has too many parts")
    with decimal.localcontext(_context()):
        try:
            return _value(tree.body, 0)
        except (decimal.DivisionByZero, decimal.DivisionUndefined):
            raise ExpressionError("it divides by zero") from None
        except decimal.Overflow:
            raise ExpressionError("a number in it is too large") from None
        except decimal.InvalidOperation:
            raise ExpressionError("it has no real value, or one with too many digits") from None
        except TypeError:
            raise ExpressionError("a function in it has the wrong number of arguments") from None


def written(value: Decimal) -> str:
    """Return a number with at most 15 significant digits, without an exponent where it is of usual size."""
    short = decimal.Context(prec=_SHOWN_DIGITS, Emax=_MOST_EXPONENT, Emin=-_MOST_EXPONENT).create_decimal(
        value
    )
    short = short.normalize()
    if not short:
        return "0"
    return f"{short:f}" if short.adjusted() in _PLAIN_EXPONENTS else f"{short:E}"


def _value(node: ast.expr, depth: int) -> Decimal:
    if depth > _MOST_DEPTH:
        raise ExpressionError("it is nested too deeply")
    value = +_unchecked(node, depth)
    if not value.is_finite():
        raise ExpressionError("a number in it is too large, or has no value")
    return value


def _unchecked(node: ast.expr, depth: int) -> Decimal:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return Decimal(repr(number))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _SIGNS:
            return _SIGNS[type(op)](_value(operand, depth + 1))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, depth + 1), _value(right, depth + 1))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(each, depth + 1) for each in args))
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
    raise ExpressionError(
        "it may hold numbers, + - * / // % **, parentheses, "
        f"{', '.join(_CONSTANTS)}, and {', '.join(_FUNCTIONS)}"
    )
