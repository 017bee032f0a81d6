"""Check whether a request can bypass the filter, by Envoy's routes or by the spelling of its path.

What is looked for are routes without the filter to a backend that routes with it lead to as well. Other
conditions than path and method are not understood: such a route is taken to match where that would be a
mistake, and not where it would help.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from truthlens.envoy.checks.bootstrap import ProcessorClock, RouteMatch
from truthlens.envoy.checks.nodes import ConfigNode
from truthlens.yamlfile.diagnostics import Report

# Of each API that the rule knows, and spellings that stay after Envoy's normalisation.
_PATHS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/chat/completions",
    "/invocations",
    "/v1/responses",
    "/v1/messages",
    "/api/chat",
    "/v1/chat/completions/",
    "/V1/Chat/Completions",
    "/v1/chat/completions;a=b",
)
_SPELLING = {
    "normalize_path": "true",
    "merge_slashes": "true",
    "path_with_escaped_slashes_action": "UNESCAPE_AND_FORWARD",
}
_PATH_KEYS = frozenset({"prefix", "path", "safe_regex", "path_separated_prefix", "case_sensitive"})


def check_routes(report: Report, processor: ProcessorClock) -> None:
    """Report the routes on which answers bypass the filter, and settings that leave paths unnormalised."""
    if processor.unnormalised:
        wanted = ", ".join(f"{name}: {_SPELLING[name]}" for name in processor.unnormalised)
        report.warn(
            processor.manager,
            "paths are matched as clients spell them, so that a route for a path does not hold for all requests that the "
            "backend serves by it",
            f"write {wanted}",
        )
    for routes in processor.hosts:
        checked = {target for route in routes if route.checked for target in route.targets}
        for place, route in enumerate(routes):
            if not route.checked and not checked.isdisjoint(route.targets):
                _check(report, route, routes[:place])


def _check(report: Report, route: RouteMatch, earlier: Sequence[RouteMatch]) -> None:
    prefix = route.match["prefix"].text or route.match["path_separated_prefix"].text
    own = [f"{prefix.rstrip('/')}{path}" for path in _PATHS] if prefix.strip("/") else []
    for paths, tell in ((_PATHS, report.error), (own, report.warn)):
        for path in paths:
            if _may_match(route.match, path) and not any(_must_match(each.match, path) for each in earlier):
                tell(
                    route.path,
                    f"a request for an answer (POST {path}) takes this route to a backend whose answers are checked on "
                    "other routes, and the filter is off here: its answer passes unchecked and without headers",
                    "enable the filter here, or match only methods or paths that get no answer, as envoy/truthlens.yaml does",
                )
                return


def _may_match(match: ConfigNode, path: str) -> bool:
    return _path_matches(match, path) is not False and False not in _method_conditions(match)


def _must_match(match: ConfigNode, path: str) -> bool:
    names = match.value if isinstance(match.value, dict) else {}
    known = {re.sub("[A-Z]", lambda upper: f"_{upper[0].lower()}", name) for name in names} <= {
        *_PATH_KEYS,
        "headers",
    }
    return known and _path_matches(match, path) is True and all(_method_conditions(match))


def _path_matches(match: ConfigNode, path: str) -> bool | None:
    """Return whether a path matches; ``None`` if the condition is not understood."""
    if (regex := match.under("safe_regex", "regex")).written:
        return _regex_matches(regex.text, path)
    whole, prefix, parted = (match[name] for name in ("path", "prefix", "path_separated_prefix"))
    texts = [whole.text, prefix.text, parted.text]
    if match["case_sensitive"].value is False:
        path, texts = path.lower(), [text.lower() for text in texts]
    if whole.written:
        return path == texts[0]
    if prefix.written:
        return path.startswith(texts[1])
    return path == texts[2] or path.startswith(f"{texts[2]}/") if parted.written else None


def _method_conditions(match: ConfigNode) -> Iterator[bool | None]:
    """Yield for each header condition whether a POST meets it; ``None`` for other headers."""
    for header in match["headers"].each():
        met: bool | None = None
        if header["name"].text == ":method":
            met = _text_matches(header, "POST") if header["string_match"].value is None else _text_matches(
                header["string_match"], "POST"
            )  # fmt: skip
        yield met if met is None else met is not (header["invert_match"].value is True)


def _text_matches(matcher: ConfigNode, text: str) -> bool | None:
    for name, test in (
        ("exact", str.__eq__),
        ("prefix", str.startswith),
        ("suffix", str.endswith),
        ("contains", str.__contains__),
    ):
        for node in (matcher[name], matcher[f"{name}_match"]):
            if node.written:
                return bool(test(text, node.text))
    for node in (matcher.under("safe_regex", "regex"), matcher.under("safe_regex_match", "regex")):
        if node.written:
            return _regex_matches(node.text, text)
    return None


def _regex_matches(regex: str, text: str) -> bool | None:
    try:
        return re.fullmatch(regex, text) is not None
    except re.error:
        return None  # RE2 knows some that Python does not
