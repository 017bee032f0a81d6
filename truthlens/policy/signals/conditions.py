"""Evaluate the conditions of a policy on a request, and define what of it each may read.

Two kinds of evidence are kept apart all the way: what the operator says (metadata of the Envoy route,
headers under ``trusted_headers``) and what the client says (its text, its other headers, the language of
its text, the model that it names).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from truthlens.core.own_headers import DETAILS_HEADER
from truthlens.core.records.exchange import Facts, RequestHead
from truthlens.policy.signals.matching import Examples, Terms, UserText
from truthlens.policy.signals.rules import Atom, ConditionType, Truth

_PREFIXES = ("truthlens-", "x-truthlens-")
_SCOPE = "truthlens-scope-"


@dataclass(frozen=True, slots=True)
class HeaderMatch:
    """A header that has one of ``values`` (lower-case); any value does where there are none."""

    header: str
    values: frozenset[str] = frozenset()

    def found_in(self, headers: Mapping[str, str]) -> bool:
        """Return whether ``headers`` (lower-case names) have it; a value may be a comma-separated list."""
        value = headers.get(self.header)
        if value is None:
            return False
        return not self.values or any(part.strip().lower() in self.values for part in value.split(","))


@dataclass(frozen=True, slots=True)
class DomainSignal:
    """What a domain condition means besides the route's metadata."""

    headers: tuple[HeaderMatch, ...] = ()
    keywords: Terms | None = None
    examples: Examples | None = None

    @property
    def reads_text(self) -> bool:
        """Whether the user's text can match it."""
        return self.keywords is not None or self.examples is not None


@dataclass(frozen=True, slots=True)
class RequestView:
    """What one evaluation may look at; ``text`` and ``model`` are ``None`` while the body has not come.

    ``domains`` and ``tenants`` are what the operator says of them (route, else trusted header); empty where
    it says nothing. Of the headers they have those that a signal looks at.
    """

    domains: frozenset[str]
    tenants: frozenset[str]
    trusted_headers: Mapping[str, str]
    client_headers: Mapping[str, str]
    model: str | None = None
    text: UserText | None = None


@dataclass(frozen=True, slots=True)
class Signals:
    """All signals of a policy by type and name, and the headers that only an upstream router can set.

    ``header_names`` has every request header (lower-case) that a signal looks at.
    """

    domains: Mapping[str, DomainSignal] = field(default_factory=dict)
    keywords: Mapping[str, Terms] = field(default_factory=dict)
    headers: Mapping[str, HeaderMatch] = field(default_factory=dict)
    models: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    languages: Mapping[str, frozenset[str]] = field(default_factory=dict)
    tenants: Mapping[str, tuple[HeaderMatch, ...]] = field(default_factory=dict)
    trusted_headers: frozenset[str] = frozenset()
    header_names: frozenset[str] = field(init=False)
    _domain_headers: Mapping[str, tuple[HeaderMatch, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Compute once what every request is searched for."""
        matches = [match for signal in self.domains.values() for match in signal.headers]
        matches += [match for tenant in self.tenants.values() for match in tenant]
        names = frozenset(match.header for match in (*matches, *self.headers.values()))
        domain_headers = {name: signal.headers for name, signal in self.domains.items() if signal.headers}
        object.__setattr__(self, "header_names", names)
        object.__setattr__(self, "_domain_headers", domain_headers)

    @property
    def scope_headers(self) -> frozenset[str]:
        """The headers that say what an exchange is about: trusted ones.

        The one that lets clients ask for details is theirs, whether trusted or not.
        """
        return self.trusted_headers - {DETAILS_HEADER}

    def may_be_in_scope(self, name: str) -> bool:
        """Return whether an exchange's scope can have a value of that name, from a header or the route."""
        return name in self.scope_headers or (name.startswith(_SCOPE) and name != _SCOPE)

    def head_view(self, head: RequestHead, *, with_client: bool, model: str | None = None) -> RequestView:
        """Return the view while no text has been read, with or without what the client says in headers."""
        return self._view(head, with_client=with_client, model=model)

    def full_view(self, facts: Facts, text: UserText) -> RequestView:
        """Return the view of everything that is known of an exchange."""
        return self._view(facts.head, with_client=True, model=facts.model, text=text)

    def neutral_view(self, facts: Facts, *, model: str) -> RequestView:
        """Return the view of the exchange as if the client had said nothing of use but the model's name; ``""`` for not that either."""
        return self._view(facts.head, with_client=False, model=model, text=UserText(""))

    def truth(self, atom: Atom, view: RequestView) -> Truth:
        """Return whether ``atom`` holds in ``view``; ``None`` while that depends on the body."""
        match atom.type:
            case ConditionType.DOMAIN:
                return self._domain(atom.name, view)
            case ConditionType.KEYWORD:
                return None if view.text is None else self.keywords[atom.name].found_in(view.text)
            case ConditionType.HEADER:
                match = self.headers[atom.name]
                return match.found_in(view.trusted_headers) or match.found_in(view.client_headers)
            case ConditionType.MODEL:
                patterns = self.models.get(atom.name, (atom.name,))
                model = view.model
                return (
                    None
                    if model is None
                    else bool(model) and any(fnmatchcase(model, pattern) for pattern in patterns)
                )
            case ConditionType.LANGUAGE:
                codes = self.languages.get(atom.name, frozenset((atom.name,)))
                return None if view.text is None else not view.text.languages.isdisjoint(codes)
            case ConditionType.TENANT:
                return self._tenant(atom.name, view)

    def client_can_meet(self, atom: Atom) -> bool:
        """Return whether a client can change the value of ``atom``."""
        match atom.type:
            case ConditionType.KEYWORD | ConditionType.LANGUAGE | ConditionType.MODEL:
                return True
            case ConditionType.DOMAIN:
                signal = self.domains[atom.name]
                return signal.reads_text or self._has_client_header(signal.headers)
            case ConditionType.HEADER:
                return self._has_client_header((self.headers[atom.name],))
            case ConditionType.TENANT:
                return self._has_client_header(self.tenants.get(atom.name, ()))

    def _has_client_header(self, matches: Iterable[HeaderMatch]) -> bool:
        return any(match.header not in self.trusted_headers for match in matches)

    def _view(
        self,
        head: RequestHead,
        *,
        with_client: bool,
        model: str | None = None,
        text: UserText | None = None,
    ) -> RequestView:
        looked_at = {name: head.headers[name] for name in self.header_names if name in head.headers}
        trusted = {name: value for name, value in looked_at.items() if name in self.trusted_headers}
        client = {name: value for name, value in looked_at.items() if name not in trusted}
        return RequestView(
            domains=route_values(head.route, "domain") or _named(self._domain_headers, trusted),
            tenants=route_values(head.route, "tenant") or _named(self.tenants, trusted),
            trusted_headers=trusted,
            client_headers=client if with_client else {},
            model=model,
            text=text,
        )

    def _domain(self, name: str, view: RequestView) -> Truth:
        # The first source that names any domain decides: route, trusted header, then what the client says.
        if view.domains:
            return name in view.domains
        signal = self.domains[name]
        if any(match.found_in(view.client_headers) for match in signal.headers):
            return True
        if view.text is None:
            return None if signal.reads_text else False
        return (signal.keywords is not None and signal.keywords.found_in(view.text)) or (
            signal.examples is not None and signal.examples.near(view.text)
        )

    def _tenant(self, name: str, view: RequestView) -> bool:
        if view.tenants:
            return name in view.tenants
        return any(match.found_in(view.client_headers) for match in self.tenants.get(name, ()))


def _named(signals: Mapping[str, tuple[HeaderMatch, ...]], headers: Mapping[str, str]) -> frozenset[str]:
    return frozenset(
        name for name, matches in signals.items() if any(match.found_in(headers) for match in matches)
    )


def route_values(metadata: Mapping[str, str], what: str) -> frozenset[str]:
    """Return the values of ``truthlens-WHAT`` or ``x-truthlens-WHAT`` in the route's metadata."""
    if not metadata:
        return frozenset()
    raw = next((metadata[prefix + what] for prefix in _PREFIXES if prefix + what in metadata), "")
    return frozenset(value.strip() for value in raw.split(",") if value.strip())


def scope_values(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return what the route's metadata have under ``truthlens-scope-*`` or ``x-truthlens-scope-*``, by the first of these names."""
    return {
        name.removeprefix("x-"): value
        for name, value in sorted(metadata.items(), reverse=True)  # the name without x- comes last, and stays
        if name.removeprefix("x-").startswith(_SCOPE)
    }
