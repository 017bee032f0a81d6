"""A compiled policy, which chooses the plan of an exchange, and what holds the one in force.

How it is made from a file is in ``compile``; nothing here knows YAML.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

from truthlens.core.cache_settings import CacheSettings
from truthlens.core.errors import PolicyError
from truthlens.core.limits import Limits
from truthlens.core.records.calls import ModelSpec
from truthlens.core.records.exchange import Facts, RequestHead
from truthlens.core.records.plan import Plan
from truthlens.core.records.retrieval import SourceSpec
from truthlens.core.review_settings import ReviewSettings
from truthlens.policy.schema import Telemetry
from truthlens.policy.signals.conditions import RequestView, Signals, route_values, scope_values
from truthlens.policy.signals.matching import UserText
from truthlens.policy.signals.rules import Atom, Rule, Truth, atoms, evaluate
from truthlens.policy.strictness import strictest, weaknesses
from truthlens.yamlfile.diagnostics import Diagnostic

DEFAULT_DECISION = "default"
MAX_SEARCHED = 1_000_000
"""Characters of a request in which words are looked for: two seconds of work at worst."""
_MOST_PAIRS = 10_000
# Clients choose header values: of so many of them is remembered what they decide, and of so many characters.
_MOST_HEADS = 256
_LONGEST_HEAD = 256


@dataclass(frozen=True, slots=True)
class Decision:
    """A plan and when it applies.

    ``client_may_choose`` lets what the client sends lead to this plan although it is weaker than the
    one that would apply otherwise.
    """

    plan: Plan
    priority: int
    rule: Rule
    client_may_choose: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """All decisions of one policy file.

    ``decisions`` come in the order in which they are tried. ``version`` is the start of the SHA-256 of the
    file's text and threshold records. ``models`` has the entries of ``models:`` by name, or is ``None`` where
    the section is left out and every model is reached at the upstream. Names of ``trusted_headers`` are
    lower-case. ``sources`` are those that evidence is retrieved from, by name. ``places`` has line and key of each ``("decision", name)`` and ``("model", name)``.
    """

    file: str
    version: str
    decisions: tuple[Decision, ...]
    default: Plan
    default_may_be_chosen: bool = False
    signals: Signals = field(default_factory=Signals)
    limits: Limits = field(default_factory=Limits)
    telemetry: Telemetry = field(default_factory=Telemetry)
    cache: CacheSettings = field(default_factory=CacheSettings)
    review: ReviewSettings = field(default_factory=ReviewSettings)
    models: Mapping[str, ModelSpec] | None = None
    sources: Mapping[str, SourceSpec] = field(default_factory=dict)
    warnings: tuple[Diagnostic, ...] = ()
    places: Mapping[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    # Asked for each request, of the same few pairs.
    _weaker: dict[tuple[str, str], bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the decisions, in the order in which they are tried; without the default."""
        return tuple(decision.plan for decision in self.decisions)

    @property
    def all_plans(self) -> tuple[Plan, ...]:
        """The default plan and those of the decisions."""
        return (self.default, *self.plans)

    @property
    def decision_names(self) -> tuple[str, ...]:
        """Every name that an exchange's decision can have."""
        return (*(plan.decision for plan in self.plans), self.default.decision)

    def plan_named(self, decision: str) -> Plan | None:
        """Return the plan of that decision, ``None`` where there is none."""
        return next((plan for plan in self.all_plans if plan.decision == decision), None)

    @property
    def trusted_headers(self) -> frozenset[str]:
        """Lower-case names of the headers that only an upstream router can set."""
        return self.signals.trusted_headers

    @property
    def header_names(self) -> frozenset[str]:
        """Every request header (lower-case) that the choice of a plan can depend on."""
        return self.signals.header_names

    def scope(self, head: RequestHead) -> Mapping[str, str]:
        """Return what the operator says that the exchange is about, by lower-case name.

        That is trusted headers, and what the route's metadata have under ``truthlens-scope-*``.
        """
        found = {name: head.headers[name] for name in self.signals.scope_headers if name in head.headers}
        return MappingProxyType(found | scope_values(head.route))

    def early(self, head: RequestHead) -> Plan | None:
        """Return the plan that ``select`` will give whatever the body, or ``None`` if that is undecided."""
        pinned = self._pinned(head)
        if pinned is not None:
            return pinned
        certain = [
            self._certain(self.signals.head_view(head, with_client=with_client))
            for with_client in (True, False)
        ]
        return certain[0] if certain[0] is certain[1] else None

    def select(self, facts: Facts) -> Plan:
        """Return the plan of an exchange: of the decisions that match, the first in order.

        The route's ``truthlens-decision`` metadata goes before all rules. A decision that is weaker than
        the one that would apply had the client said nothing is passed over, unless it has
        ``client_may_choose``: nothing that a client sends picks a weaker plan.

        The user's own text decides. A question may be in any other message as well: the plan that applied if
        all texts were the user's is taken where it is the stricter one. So no question escapes its plan by
        its place, and no document picks a less strict plan by accident. Of texts too long to be searched in
        time, every condition on text may hold: the strictest plan applies.
        """
        pinned = self._pinned(facts.head)
        if pinned is not None:
            return pinned
        if len(facts.text) + sum(map(len, facts.context)) > MAX_SEARCHED:
            return self.strictest(facts.head, model=facts.model)
        floor = self._first(self.signals.neutral_view(facts, model=""))
        if facts.model:
            floor = self._chosen(self.signals.neutral_view(facts, model=facts.model), floor)
        plan = self._chosen(self.signals.full_view(facts, UserText(facts.text, facts.language)), floor)
        if not facts.context:
            return plan
        text = UserText(facts.text, facts.language, facts.context)
        wider = self._chosen(self.signals.full_view(facts, text), floor)
        return strictest((plan, wider))

    def strictest(self, head: RequestHead, *, model: str | None = None) -> Plan:
        """Return the strictest plan that ``select`` could give when only the head of an exchange is known.

        Args:
            head: of the request.
            model: its model, where that is known.
        """
        pinned = self._pinned(head)
        if pinned is not None:
            return pinned
        # Without what the client says in its headers as well: that cannot lead to a weaker plan.
        floors = list(self._possible(self.signals.head_view(head, with_client=False, model="")))
        floors += self._possible(self.signals.head_view(head, with_client=False, model=model), floors)
        heard = self.signals.head_view(head, with_client=True, model=model)
        return strictest((*floors, *self._possible(heard, floors)))

    def _possible(self, view: RequestView, floors: Sequence[Plan] = ()) -> Iterator[Plan]:
        """Yield the plans that the rules may give; a decision weaker than one of ``floors`` may be passed over."""
        truth = partial(self._truth, view)
        for decision in self.decisions:
            value = evaluate(decision.rule, truth)
            if value is not False:
                yield decision.plan
            passed_over = not decision.client_may_choose and any(
                self._is_weaker(decision.plan, floor) for floor in floors
            )
            if value and not passed_over:
                return
        yield self.default

    def _chosen(self, view: RequestView, floor: Plan) -> Plan:
        """Return the plan of the first decision that holds in ``view`` and is not weaker than ``floor``, or may be chosen all the same."""
        truth = partial(self._truth, view)
        for decision in self.decisions:
            if evaluate(decision.rule, truth) and (
                decision.client_may_choose or not self._is_weaker(decision.plan, floor)
            ):
                return decision.plan
        if self.default_may_be_chosen or not self._is_weaker(self.default, floor):
            return self.default
        return floor

    def _is_weaker(self, plan: Plan, floor: Plan) -> bool:
        pair = plan.decision, floor.decision
        known = self._weaker.get(pair)
        if known is None:
            known = bool(weaknesses(plan, than=floor))
            if len(self._weaker) < _MOST_PAIRS:
                self._weaker[pair] = known
        return known

    def chosen_by_clients(self) -> Mapping[str, tuple[Atom, ...]]:
        """Return the decisions to which what a client sends can lead, each with the conditions that it can fill.

        Left out are those that are weaker than the default, which it does not reach without ``client_may_choose``.
        """
        reached = [
            (each.plan.decision, tuple(filter(self.signals.client_can_meet, atoms(each.rule))))
            for each in self.decisions
            if each.client_may_choose or not self._is_weaker(each.plan, self.default)
        ]
        return {name: found for name, found in reached if found}

    def unknown_route_values(self, head: RequestHead) -> tuple[str, ...]:
        """Return what the route's metadata name that this policy does not know, as ``key=value``.

        Such a decision is ignored and such a domain matches nothing; the values are the operator's own,
        from the Envoy configuration, so they may be logged.
        """
        known = {"decision": set(self.decision_names), "domain": set(self.signals.domains)}
        return tuple(
            f"truthlens-{what}={value}"
            for what, names in known.items()
            for value in sorted(route_values(head.route, what) - names)
        )

    def _pinned(self, head: RequestHead) -> Plan | None:
        names = route_values(head.route, "decision")
        return next((plan for plan in (*self.plans, self.default) if plan.decision in names), None)

    def _first(self, view: RequestView) -> Plan:
        truth = partial(self._truth, view)
        return next((d.plan for d in self.decisions if evaluate(d.rule, truth)), self.default)

    def _certain(self, view: RequestView) -> Plan | None:
        truth = partial(self._truth, view)
        for decision in self.decisions:
            value = evaluate(decision.rule, truth)
            if value is not False:
                return decision.plan if value else None
        return self.default

    def _truth(self, view: RequestView, atom: Atom) -> Truth:
        return self.signals.truth(atom, view)


class EarlyPlans:
    """Caches what heads alone decide: most requests differ in nothing that the policy reads."""

    def __init__(self) -> None:
        self._policy: Policy | None = None
        self._names: tuple[str, ...] = ()
        self._plans: dict[tuple[object, ...], tuple[Plan | None, Plan]] = {}

    def of(self, policy: Policy, head: RequestHead) -> tuple[Plan | None, Plan]:
        """Return ``policy.early(head)``, and ``policy.strictest(head)``."""
        if policy is not self._policy:
            self._policy, self._names = policy, tuple(policy.header_names)
            self._plans.clear()
        values = tuple(map(head.headers.get, self._names))
        if sum(len(value) for value in (*values, *head.route.values()) if value is not None) > _LONGEST_HEAD:
            return policy.early(head), policy.strictest(head)
        key = (values, *head.route.items())
        if key not in self._plans:
            if len(self._plans) >= _MOST_HEADS:
                self._plans.clear()
            self._plans[key] = policy.early(head), policy.strictest(head)
        return self._plans[key]


class PolicyHolder:
    """Holds the policy in force, swapped as a whole.

    An exchange takes ``current`` once, when it begins, and keeps it. ``last_error`` is what is wrong with the
    file as it is now, or ``None``.
    """

    def __init__(self, policy: Policy) -> None:
        self.current = policy
        self.last_error: PolicyError | None = None

    def swap(self, policy: Policy) -> None:
        """Put ``policy`` in force and forget the last error."""
        self.current = policy
        self.last_error = None
