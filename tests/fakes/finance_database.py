"""Make the database of the example ``config/examples/numbers-sql.yaml``: two properties, three periods, financial figures.

Usage: python -m tests.fakes.finance_database postgresql://owner:password@host/database
       python -m tests.fakes.finance_database sqlite:////tmp/finance.db
"""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal

import sqlalchemy as sa

METADATA = sa.MetaData()
_MONEY = sa.Numeric(18, 2)
_RATE = sa.Numeric(9, 4)

METRICS = sa.Table(
    "FinancialMetrics",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("property_id", sa.Integer, nullable=False),
    sa.Column("period_id", sa.Integer, nullable=False),
    *(
        sa.Column(name, _MONEY)
        for name in (
            "net_operating_income",
            "total_revenue",
            "total_expenses",
            "net_income",
            "total_assets",
            "total_liabilities",
        )
    ),
    *(
        sa.Column(name, _RATE)
        for name in (
            "occupancy_rate",
            "expense_ratio",
            "debt_to_equity_ratio",
            "cap_rate",
            "return_on_investment",
            "dscr",
        )
    ),
    sa.Index("metrics_scope", "property_id", "period_id"),
)
INCOME = sa.Table(
    "IncomeStatementData",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("property_id", sa.Integer, nullable=False),
    sa.Column("period_id", sa.Integer, nullable=False),
    sa.Column("account_name", sa.String(200)),
    sa.Column("amount", _MONEY),
    sa.Index("income_scope", "property_id", "period_id"),
)
PERIODS = sa.Table(
    "FinancialPeriod",
    METADATA,
    sa.Column("period_id", sa.Integer, primary_key=True),
    sa.Column("year", sa.Integer),
    sa.Column("quarter", sa.Integer),
    sa.Column("month", sa.Integer),
    sa.Column("closed_on", sa.Date),
)


def _figures(scope: tuple[int, int], noi: str, occupancy: str, dscr: str) -> dict[str, object]:
    income = Decimal(noi)
    return {
        "property_id": scope[0],
        "period_id": scope[1],
        "net_operating_income": income,
        "total_revenue": income * 2,
        "total_expenses": income,
        "net_income": income - 250_000,
        "total_assets": income * 12,
        "total_liabilities": income * 7,
        "occupancy_rate": Decimal(occupancy),
        "expense_ratio": Decimal("0.5"),
        "debt_to_equity_ratio": Decimal("1.4"),
        "cap_rate": Decimal("0.0625"),
        "return_on_investment": Decimal("0.094"),
        "dscr": Decimal(dscr),
    }


def fill(engine: sa.Engine) -> None:
    """Make the tables and their rows; what was there is dropped."""
    METADATA.drop_all(engine)
    METADATA.create_all(engine)
    with engine.begin() as connection:
        connection.execute(
            METRICS.insert(),
            [
                _figures((1, 1), "1200000", "0.85", "1.25"),
                _figures((1, 2), "1310000", "0.88", "1.31"),
                _figures((2, 1), "640000", "0.92", "1.10"),
            ],
        )
        connection.execute(
            INCOME.insert(),
            [
                {
                    "property_id": 1,
                    "period_id": 1,
                    "account_name": "Rental income",
                    "amount": Decimal("2150000.50"),
                },
                {"property_id": 1, "period_id": 1, "account_name": "Parking", "amount": Decimal("249999.50")},
                {"property_id": 1, "period_id": 1, "account_name": "Insurance", "amount": None},
                {
                    "property_id": 2,
                    "period_id": 1,
                    "account_name": "Rental income",
                    "amount": Decimal("1280000.00"),
                },
            ],
        )
        connection.execute(
            PERIODS.insert(),
            [
                {
                    "period_id": 1,
                    "year": 2024,
                    "quarter": 3,
                    "month": None,
                    "closed_on": dt.date(2024, 10, 15),
                },
                {"period_id": 2, "year": 2024, "quarter": 4, "month": 12, "closed_on": dt.date(2025, 1, 17)},
                {"period_id": 3, "year": 2025, "quarter": None, "month": None, "closed_on": None},
            ],
        )


def main(url: str) -> None:
    """Fill the database at ``url``."""
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    try:
        fill(engine)
    finally:
        engine.dispose()


if __name__ == "__main__":
    main(sys.argv[1])
