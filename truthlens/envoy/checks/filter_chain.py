"""Check whether Envoy loses streams because of the chain's other ext_proc filters, and how to fix it.

A response passes the filters backwards. A filter before TruthLens's in the list and answers response headers,
but no bodies, lets Envoy go on from those headers to whatever has arrived by then: if that is the backend's
end, the response ends there, and what TruthLens still holds is lost, with status 200. The same way
TruthLens's own answer to headers ends what a filter behind it holds. Only ext_proc filters are looked at:
others that answer headers late do the same.

Source: measured with Envoy 1.40; envoyproxy/envoy issues 41654 and 47449.
"""

from __future__ import annotations

from collections.abc import Sequence

from truthlens.core.records.plan import Plan
from truthlens.envoy.checks.bootstrap import Neighbour, RouteClock
from truthlens.yamlfile.diagnostics import Report

_PIECEWISE = ("STREAMED", "FULL_DUPLEX_STREAMED")


def check_chain(report: Report, route: RouteClock, plans: Sequence[Plan]) -> None:
    """Report the filters beside TruthLens's on ``route`` with which streams are lost; ``plans`` are those of the route."""
    streamed = [plan for plan in plans if plan.streamed_hold_s is not None]
    for neighbour in route.neighbours:
        if neighbour.first and streamed:
            _before(report, neighbour, streamed)
        if not neighbour.first:
            _behind(report, neighbour)


def _before(report: Report, neighbour: Neighbour, streamed: Sequence[Plan]) -> None:
    modes = neighbour.modes
    if modes.response_headers.value == "SKIP" or modes.response_body.value != "NONE":
        return
    names = ", ".join(f"{plan.decision!r} (streaming {plan.streaming})" for plan in streamed)
    report.error(
        modes.response_headers.path,
        f"{neighbour.name!r} comes before TruthLens and answers response headers, but no bodies: where the backend's end "
        f"arrives first, Envoy ends the answer and loses what TruthLens still holds of it, under {names}",
        "write response_header_mode: SKIP, or, where TruthLens needs no header of it, put it behind TruthLens's",
    )


def _behind(report: Report, neighbour: Neighbour) -> None:
    body = neighbour.modes.response_body
    if body.value in _PIECEWISE:
        report.warn(
            body.path,
            f"{neighbour.name!r} comes behind TruthLens and gets answers piece by piece: where it still holds some when "
            "TruthLens answers the response headers and the backend has ended, Envoy loses them",
            "put this filter before TruthLens's",
        )
