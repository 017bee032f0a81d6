"""Arithmetic without evaluation of code, and units."""

from __future__ import annotations

import builtins
from decimal import Decimal
from typing import Any

import pytest

from truthlens.mitigation.agentic.tools import calculation
from truthlens.mitigation.agentic.tools.arithmetic import ExpressionError, computed, written
from truthlens.mitigation.agentic.tools.calculation import CalculationTool


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("17 * 23", "391"),
        ("0.1 + 0.2", "0.3"),
        ("(1.26 - 1.2) / 1.2 * 100", "5"),
        ("1_000_000 / 3", "333333.333333333"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("2 ** 10", "1024"),
        ("2^10", "1024"),
        ("4 ** 0.5", "2"),
        ("2 ** -2", "0.25"),
        ("+-+3", "-3"),
        ("sqrt(2) * sqrt(2)", "2"),
        ("round(2.675, 2)", "2.68"),
        ("max(1, 2, min(5, 4)) + abs(-1) + floor(1.9) + ceil(1.1)", "8"),
        ("ln(e) + log10(100) + exp(0)", "4"),
        ("round(pi, 4)", "3.1416"),
        ("1e300 * 10", "1E+301"),
        ("(" * 150 + "1" + ")" * 150, "1"),
        ("1/7*7", "1"),
    ],
)
def test_values(expression: str, value: str) -> None:
    """Decimals, so that sums of money come out as they are written."""
    assert written(computed(expression)) == value


@pytest.mark.parametrize(
    "expression",
    [
        "9**9**9",
        "9**9**9**9",
        "(9**999)**9",
        "10**1000 * 10",
        "exp(10000)",
        "1.0000001 ** 1e300",
        "9" * 501,
        "1" + "+1" * 240,
        "1 / 0 ** -1",
        "-" * 300 + "1",
        "()" * 200,
        "__import__('os').system('true')",
        "(1).__class__",
        "().__class__.__bases__[0].__subclasses__()",
        "'a' * 1000000000",
        "b'a'",
        "[1] * 10",
        "{1: 2}",
        "lambda: 1",
        "(lambda: 1)()",
        "[x for x in (1,)]",
        "open",
        "open('a')",
        "os",
        "abs",
        "abs.__call__(1)",
        "sqrt(x=1)",
        "sqrt(*[1])",
        "sqrt()",
        "sqrt(1, 2)",
        "max()",
        "round(1, 1000000000)",
        "round(1, 0.5)",
        "f'{1}'",
        "1 if 1 else 2",
        "1 < 2",
        "True",
        "True + 1",
        "None",
        "...",
        "1j",
        "x := 1",
        "(x := 1)",
        "1; 2",
        "1\n2",
        "1 / 0",
        "0 / 0",
        "1 % 0",
        "0 ** 0",
        "0 ** -1",
        "(-2) ** 0.5",
        "sqrt(-1)",
        "ln(0)",
        "1e9999999",
        "~1",
        "1 @ 2",
        "1 << 1000000",
        "not 1",
        "1 and 2",
        "await x",
        "\0",
        "",
        "one plus one",
    ],
)
def test_what_is_no_arithmetic_or_too_large_is_refused(expression: str) -> None:
    """At once, and the message repeats none of it."""
    with pytest.raises(ExpressionError) as error:
        computed(expression)
    assert len(expression) < 4 or expression not in str(error.value)


@pytest.mark.parametrize(
    ("expression", "conversion", "text"),
    [
        ("12", "ft -> m", "12 ft = 3.6576 m"),
        ("72/2", "km/h->m/s", "72/2 km/h = 10 m/s"),
        ("100", "degC -> degF", "100 degC = 212 degF"),
        ("1", "square meter -> cm^2", "1 square meter = 10000 cm^2"),
        ("5", "kWh -> MJ", "5 kWh = 18 MJ"),
    ],
)
async def test_units(expression: str, conversion: str, text: str) -> None:
    """The value of the expression is in the first unit."""
    calculation.converted(
        Decimal(1), "ft", "m"
    )  # its first use reads all units, which is no part of a run's five seconds
    result = await CalculationTool().execute_with_retry(expression=expression, units=conversion)
    assert (result.data, result.error) == (text, None)


@pytest.mark.parametrize(
    "conversion",
    [
        "m -> s",
        "m -> parsec_of_gold",
        "m",
        "m -> s -> m",
        "m**99999999 -> m",
        "m*9**9**9 -> m",
        "__class__ -> m",
        "m.__class__ -> m",
        "1000 -> 1",
        "m " * 100 + "-> m",
        "-> m",
    ],
)
async def test_units_that_are_none_are_refused(conversion: str) -> None:
    """Pint would read arithmetic as well."""
    result = await CalculationTool().execute_with_retry(expression="1", units=conversion)
    assert (result.success, result.metadata["code"]) == (False, "wrong-parameters")


async def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain arithmetic goes on."""
    real = builtins.__import__

    def without_pint(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pint":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    calculation._registry.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without_pint)
    result = await CalculationTool().execute_with_retry(expression="1", units="ft -> m")
    assert result.metadata["code"] == "not-installed"
    assert result.error is not None
    assert "truthlens[units]" in result.error
    assert (await CalculationTool().execute_with_retry(expression="1+1")).data == "1+1 = 2"
