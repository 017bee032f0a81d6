"""The choice of a plan, early and with all facts."""

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from truthlens.core.records.exchange import Facts, RequestHead
from truthlens.policy import InvalidPolicyError, Policy, compile_policy
from truthlens.policy.strictness import strictest, weaknesses


def policy(text: str) -> Policy:
    return compile_policy(text, file="p.yaml")


def head(headers: dict[str, str] | None = None, route: dict[str, str] | None = None) -> RequestHead:
    return RequestHead("POST", "/v1/chat/completions", headers or {}, route or {})


def decision(name: str, rules: str, priority: int = 0, configuration: str = "{}") -> str:
    plugin = f"{{type: hallucination, configuration: {configuration}}}"
    return f"  - {{name: {name}, priority: {priority}, rules: {rules}, plugins: [{plugin}]}}\n"


def chosen(of: Policy, text: str = "", *, model: str = "", **where: dict[str, str]) -> str:
    return of.select(Facts(head(**where), model=model, text=text)).decision


def early(of: Policy, **where: dict[str, str]) -> str | None:
    plan = of.early(head(**where))
    return plan.decision if plan else None


FINANCE, LEGAL = "{type: domain, name: finance}", "{type: domain, name: legal}"


def test_highest_priority_wins() -> None:
    """Of two decisions that match, the one of higher priority applies, wherever it stands in the file."""
    p = policy("decisions:\n" + decision("low", FINANCE, 1) + decision("high", LEGAL, 2))
    assert chosen(p, "a lawsuit about dividends") == "high"
    assert chosen(p, "dividends") == "low"


def test_equal_priority_goes_by_file_order() -> None:
    """Of two decisions of the same priority, the one that stands first applies."""
    p = policy("decisions:\n" + decision("one", FINANCE) + decision("two", LEGAL))
    assert chosen(p, "a lawsuit about dividends") == "one"


def test_default_where_nothing_matches() -> None:
    """An exchange that no decision matches has the plan of `hallucination`."""
    p = policy("hallucination: {threshold: 0.4}\ndecisions:\n" + decision("money", FINANCE))
    assert p.select(Facts(head(), text="hello")) == p.default
    assert (p.default.decision, p.default.threshold) == ("default", 0.4)


def test_nested_operators() -> None:
    """AND, OR and NOT may stand in each other."""
    rules = f"{{operator: AND, conditions: [{{operator: OR, conditions: [{FINANCE}, {LEGAL}]}}, \
{{operator: NOT, conditions: [{{type: model, name: 'tiny-*'}}]}}]}}"
    p = policy("decisions:\n" + decision("careful", rules))
    assert chosen(p, "my lawsuit", model="large") == "careful"
    assert chosen(p, "my dividends", model="large") == "careful"
    assert chosen(p, "my lawsuit", model="tiny-1") == "default"
    assert chosen(p, "my cat", model="large") == "default"


DOMAIN_SOURCES = """
trusted_headers: [X-Router-Domain]
signals:
  domains:
    - {name: legal, headers: {x-router-domain: [law, Legal]}}
    - {name: finance, headers: {x-claimed-domain: [money]}}
decisions:
  - {name: law, priority: 3, rules: {type: domain, name: legal}}
  - {name: money, priority: 2, rules: {type: domain, name: finance}}
  - {name: health, priority: 1, rules: {type: domain, name: healthcare}}
"""


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, "money"),
        ({"headers": {"x-router-domain": "legal"}}, "law"),
        ({"headers": {"x-router-domain": "sports, LAW"}}, "law"),
        ({"headers": {"x-router-domain": "sports"}}, "money"),
        ({"route": {"truthlens-domain": "healthcare"}, "headers": {"x-router-domain": "law"}}, "health"),
        ({"route": {"x-truthlens-domain": "legal, healthcare"}}, "law"),
        ({"route": {"truthlens-domain": "gardening"}}, "default"),
    ],
)
def test_order_of_domain_sources(where: dict[str, dict[str, str]], expected: str) -> None:
    """The route's metadata decide on the domain, then a trusted header, then the words of the user."""
    assert chosen(policy(DOMAIN_SOURCES), "dividends", **where) == expected


def test_built_in_words_stay_with_written_headers() -> None:
    """A built-in domain that gets headers in the file keeps its built-in words; written words replace them."""
    assert chosen(policy(DOMAIN_SOURCES), "a lawsuit") == "law"
    p = policy(
        "signals: {domains: [{name: legal, keywords: [zebra]}]}\ndecisions:\n" + decision("law", LEGAL)
    )
    assert (chosen(p, "a zebra"), chosen(p, "a lawsuit")) == ("law", "default")


def test_pinned_by_route() -> None:
    """A decision named in the route's metadata goes before all rules, and early."""
    p = policy(
        "decisions:\n"
        + decision("law", LEGAL, 5)
        + decision("dark", "{type: domain, name: creative}", 1, "{enabled: false}")
    )
    where = {"route": {"truthlens-decision": "dark"}}
    assert chosen(p, "a lawsuit", **where) == early(p, **where) == "dark"
    assert early(p, route={"truthlens-decision": "default"}) == "default"


def test_unknown_route_values_are_told() -> None:
    """A decision or domain of the route's metadata that the policy does not know is named, and decides nothing."""
    p = policy("decisions:\n" + decision("law", LEGAL))
    where = {
        "route": {"truthlens-decision": "lwa", "truthlens-domain": "leagl,legal", "truthlens-tenant": "t"}
    }
    assert chosen(p, **where) == "law"
    assert p.unknown_route_values(head(**where)) == ("truthlens-decision=lwa", "truthlens-domain=leagl")


def test_tenant_header_and_language() -> None:
    """Tenant, header and language conditions mean what `signals` says of them."""
    p = policy(
        "trusted_headers: [x-team, x-tenant]\n"
        "signals:\n"
        "  headers: [{name: beta, header: X-Team, values: [blue]}, {name: any_team, header: x-team}]\n"
        "  tenants: [{name: acme, headers: {x-tenant: [acme]}}]\n"
        "  languages: [{name: east_asian, languages: [zh, ja, ko]}]\n"
        "decisions:\n"
        + decision("acme", "{type: tenant, name: acme}", 9)
        + decision("by_route", "{type: tenant, name: globex}", 8)
        + decision("beta", "{type: header, name: beta}", 7)
        + decision("team", "{type: header, name: any_team}", 6)
        + decision("cjk", "{type: language, name: east_asian}", 5)
        + decision("german", "{type: language, name: de}", 4)
    )
    assert chosen(p, headers={"x-tenant": "acme"}) == "acme"
    assert chosen(p, route={"truthlens-tenant": "globex"}, headers={"x-tenant": "acme"}) == "by_route"
    assert chosen(p, headers={"x-team": "Blue"}) == "beta"
    assert chosen(p, headers={"x-team": "red"}) == "team"
    assert chosen(p, "药物剂量是多少") == "cjk"
    assert chosen(p, "Wie ist das Wetter und was ist zu tun?") == "german"
    assert p.select(Facts(head(), text="hello", language="ko")).decision == "cjk"


def test_model_signal() -> None:
    """A model condition names a model, a pattern, or a signal that lists some."""
    p = policy(
        "signals: {models: [{name: small, models: ['*-7b', phi-3]}]}\n"
        "decisions:\n"
        + decision("small", "{type: model, name: small}", 2)
        + decision("big", "{type: model, name: gpt-4}")
    )
    assert [chosen(p, model=m) for m in ("llama-7b", "phi-3", "gpt-4", "gpt-4o")] == [
        "small",
        "small",
        "big",
        "default",
    ]


WEAK = """
trusted_headers: [x-router]
signals:
  domains:
    - {name: creative, keywords: [poem], headers: {x-router: [creative], x-claimed: [creative]}}
decisions:
  - {name: health, priority: 9, rules: {type: domain, name: healthcare}, plugins: [{type: hallucination, configuration: {threshold: 0.3}}]}
  - {name: creative, priority: 99, rules: {type: domain, name: creative}, plugins: [{type: hallucination, configuration: {enabled: false}}]}
"""


def test_client_cannot_switch_off() -> None:
    """Neither words nor untrusted headers of a client choose a decision with detection off."""
    p = policy(WEAK)
    assert chosen(p, "write a poem") == "default"
    assert chosen(p, "hello", headers={"x-claimed": "creative"}) == "default"
    assert chosen(p, "a poem about the dosage", headers={"x-claimed": "creative"}) == "health"


@pytest.mark.parametrize(
    "weak",
    [
        "{enabled: false}",
        "{threshold: 0.9}",
        "{on_unchecked: pass}",
        "{mode: lightweight}",
    ],
)
def test_a_models_name_does_not_weaken(weak: str) -> None:
    """The client writes it: a decision for a model is passed over where it is weaker than without that name, unless it may be chosen."""
    text = "hallucination: {default_mode: standard}\ndecisions:\n"
    p = policy(text + decision("drafts", "{type: model, name: 'draft-*'}", 1, weak))
    assert chosen(p, model="draft-7") == "default"
    assert p.strictest(head(), model="draft-7").decision == "default"
    free = policy(
        text
        + decision(
            "drafts", "{type: model, name: 'draft-*'}", 1, weak.replace("}", ", client_may_choose: true}")
        )
    )
    assert chosen(free, model="draft-7") == "drafts"


def test_a_models_name_does_not_talk_a_client_out() -> None:
    """A name for which a strict decision does not hold leaves the plan that applies without it; a strict decision for a model applies."""
    rules = "{operator: NOT, conditions: [{type: model, name: 'draft-*'}]}"
    p = policy("decisions:\n" + decision("strict", rules, 1, "{threshold: 0.2}"))
    assert [chosen(p, model=each) for each in ("", "m", "draft-7")] == ["strict", "strict", "strict"]
    p = policy("decisions:\n" + decision("strict", "{type: model, name: large}", 1, "{threshold: 0.2}"))
    assert [chosen(p, model=each) for each in ("", "small", "large")] == ["default", "default", "strict"]


def test_what_clients_reach_is_named() -> None:
    """Of decisions that are weaker than the default only those that they may choose."""
    p = policy(
        "decisions:\n"
        + decision("words", "{type: keyword, name: medical_terms}", 4)
        + decision("model", "{type: model, name: m}", 3)
        + decision("weak", "{type: language, name: de}", 2, "{enabled: false}")
        + decision("chosen", "{type: language, name: fr}", 1, "{enabled: false, client_may_choose: true}")
    )
    found = {name: [str(atom.type) for atom in atoms] for name, atoms in p.chosen_by_clients().items()}
    assert found == {"words": ["keyword"], "model": ["model"], "chosen": ["language"]}


def test_operator_can_switch_off() -> None:
    """The route's metadata and trusted headers do choose a decision with detection off."""
    p = policy(WEAK)
    assert chosen(p, "hello", headers={"x-router": "creative"}) == "creative"
    assert chosen(p, "hello", route={"truthlens-domain": "creative"}) == "creative"


def test_client_may_choose() -> None:
    """With client_may_choose on the decision, or for all in `hallucination`, a client's words choose a weak one."""
    assert (
        chosen(policy(WEAK.replace("enabled: false", "enabled: false, client_may_choose: true")), "a poem")
        == "creative"
    )
    assert chosen(policy("hallucination: {client_may_choose: true}\n" + WEAK), "a poem") == "creative"


def test_client_cannot_talk_itself_out() -> None:
    """Words that make a strict decision's NOT fail do not lead to the weaker default."""
    rules = "{operator: NOT, conditions: [{type: keyword, name: medical_terms}]}"
    p = policy("decisions:\n" + decision("strict", rules, 1, "{threshold: 0.2}"))
    assert chosen(p, "hello") == "strict"
    assert chosen(p, "dosage") == "strict"
    free = policy(
        "hallucination: {client_may_choose: true}\ndecisions:\n"
        + decision("strict", rules, 1, "{threshold: 0.2}")
    )
    assert chosen(free, "dosage") == "default"


def test_reasoning_that_passes_is_weaker_than_reasoning_that_is_scored() -> None:
    """A client's words may have it scored, not the other way round."""
    lax = decision("money", FINANCE, 1, "{reasoning: pass}")
    p = policy("hallucination: {reasoning: score}\ndecisions:\n" + lax)
    assert weaknesses(p.plans[0], than=p.default) == ("reasoning pass instead of score",)
    assert chosen(p, "dividends") == "default"
    strict = policy("decisions:\n" + decision("money", FINANCE, 1, "{reasoning: score}"))
    assert chosen(strict, "dividends") == "money"


def test_nothing_is_weaker_than_off() -> None:
    """Where the operator switched detection off, the client's words may still lead to a stricter decision."""
    p = policy(
        "hallucination: {enabled: false}\ndecisions:\n"
        + decision("money", FINANCE, 1, "{enabled: true, threshold: 0.9}")
    )
    assert chosen(p, "hello") == "default"
    assert chosen(p, "dividends") == "money"


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        ("{enabled: false}", "off"),
        ("{threshold: 0.7}", "threshold 0.70 instead of 0.60"),
        ("{expected_rate: 0.2}", "threshold 0.60 at expected_rate 0.2 instead of 0.60 at 0.5"),
        (
            "{expected_rate: 0.2, threshold: 0.3}",
            "threshold 0.30 at expected_rate 0.2 instead of 0.60 at 0.5",
        ),
        ("{expected_rate: 0.2, threshold: 0.25}", ""),
        ("{expected_rate: 0.8}", ""),
        ("{expected_rate: 0.8, threshold: 0.7}", "threshold 0.70 at expected_rate 0.8"),
        ("{on_unchecked: pass}", "on_unchecked pass instead of annotate"),
        ("{streaming: observe}", "streaming observe instead of buffer"),
        ("{threshold: 0.5, details: true, warning_position: after}", ""),
        ("{mode: premium}", ""),
        ("{evidence: {intermediate_calls: all}}", "no answer is checked"),
        ("{evidence: {intermediate_calls: none}}", ""),
    ],
)
def test_what_counts_as_weaker(configuration: str, words: str) -> None:
    """A plan is weaker where it is off, has a higher threshold, or treats the unchecked or streams more leniently."""
    p = policy("decisions:\n" + decision("other", FINANCE, 1, configuration))
    assert words in "; ".join(weaknesses(p.plans[0], than=p.default))
    assert bool(words) is bool(weaknesses(p.plans[0], than=p.default))


def test_a_plan_that_checks_no_answer_is_as_weak_as_one_that_is_off() -> None:
    """A client's words lead away from it to any other, but not to one that lets more requests pass unread."""
    p = policy(
        "hallucination: {on_unchecked: block, evidence: {intermediate_calls: all}}\ndecisions:\n"
        + decision("checked", FINANCE, 2, "{threshold: 0.9, evidence: {intermediate_calls: detect}}")
        + decision("lax", "{type: domain, name: legal}", 1, "{on_unchecked: pass}")
    )
    assert weaknesses(p.plans[0], than=p.default) == ()
    assert weaknesses(p.plans[1], than=p.default) == ("on_unchecked pass instead of block",)
    assert strictest([p.default, p.plans[0]]) is p.plans[0]


def test_steps_that_are_found_are_weaker_than_none() -> None:
    """Where all answers count as answers, a client's words do not choose that some do not."""
    p = policy(
        "hallucination: {evidence: {intermediate_calls: none}}\ndecisions:\n"
        + decision("finds", FINANCE, 1, "{evidence: {intermediate_calls: detect}}")
    )
    assert weaknesses(p.plans[0], than=p.default) == ("evidence.intermediate_calls detect instead of none",)


def test_a_cheaper_mode_is_weaker() -> None:
    """A plan that only warns is weaker than one that refines."""
    p = policy(
        "hallucination: {default_mode: standard}\ndecisions:\n"
        + decision("cheap", FINANCE, 1, "{mode: lightweight}")
    )
    assert weaknesses(p.plans[0], than=p.default) == ("mode lightweight instead of standard",)


def test_agentic_is_the_strictest_mode() -> None:
    """It acts on what nothing could check as well; what it searches is no client's choice."""
    p = policy(
        "sources: [{name: a, type: mcp, command: [x], tool: t}, {name: b, type: mcp, command: [x], tool: t}]\n"
        "hallucination: {default_mode: standard}\ndecisions:\n"
        + decision("searches", FINANCE, 2, "{mode: agentic, retrieval: {sources: [a]}}")
        + decision(
            "elsewhere", "{type: domain, name: legal}", 1, "{mode: agentic, retrieval: {sources: [b]}}"
        )
    )
    searches, elsewhere = p.plans
    assert weaknesses(searches, than=p.default) == ()
    assert weaknesses(p.default, than=searches)[0] == "mode standard instead of agentic"
    assert weaknesses(elsewhere, than=searches) == (
        "retrieval.sources b instead of a, which cannot be compared",
    )
    assert strictest([p.default, searches]) is searches


def test_auto_is_as_strong_as_its_weakest_mode() -> None:
    """Where it may only warn it is weaker than a plan that refines; where it always refines it is not."""
    p = policy(
        "hallucination: {default_mode: standard}\ndecisions:\n"
        + decision("any", FINANCE, 2, "{mode: auto}")
        + decision(
            "refining", "{type: domain, name: legal}", 1, "{mode: auto, auto: {modes: [standard, premium]}}"
        )
    )
    assert weaknesses(p.plans[0], than=p.default) == ("mode auto instead of standard",)
    assert weaknesses(p.plans[1], than=p.default) == ()


def test_what_a_mode_promises_counts() -> None:
    """A plan without disclaimer, without consensus or without a second model is weaker than one with it."""
    panel = "premium: {verification_models: [b], require_consensus: true}"
    p = policy(
        "hallucination: {default_mode: premium, "
        + panel
        + "}\ndecisions:\n"
        + decision("silent", FINANCE, 4, "{require_disclaimer: false}")
        + decision("any", "{type: domain, name: legal}", 3, "{premium: {require_consensus: false}}")
        + decision("alone", "{type: domain, name: support}", 2, "{premium: {verification_models: []}}")
    )
    found = [weaknesses(plan, than=p.default) for plan in p.plans]
    assert found == [
        ("without a warning or disclaimer in the text",),
        ("premium.require_consensus false instead of true",),
        ("mode premium without other models instead of premium",),
    ]


def test_early_waits_for_the_body() -> None:
    """While a decision of higher priority depends on the body, nothing is certain."""
    p = policy(WEAK)
    assert early(p) is None
    assert early(p, headers={"x-router": "creative"}) == "creative"
    assert early(p, route={"truthlens-domain": "finance"}) == "default"
    assert early(p, headers={"x-claimed": "creative"}) is None


def test_early_without_decisions() -> None:
    """With no decisions the default plan is certain from the start."""
    p = policy("hallucination: {enabled: false}")
    assert early(p) == "default"
    assert p.early(head()) is p.default


def test_names_that_the_gateway_needs() -> None:
    """A policy tells its decisions, its models, and the headers that it looks at."""
    p = policy(WEAK + "models: [{name: m, base_url: 'http://h/v1'}]\n")
    assert p.decision_names == ("creative", "health", "default")
    assert p.header_names == {"x-router", "x-claimed"}
    assert p.trusted_headers == {"x-router"}
    assert p.models is not None
    assert list(p.models) == ["m"]
    assert policy("hallucination: {}").models is None


CONDITIONS = [
    "{type: domain, name: healthcare}",
    "{type: domain, name: creative}",
    "{type: keyword, name: legal_terms}",
    "{type: header, name: vip}",
    "{type: header, name: claimed}",
    "{type: model, name: m1}",
    "{type: language, name: zh}",
    "{type: tenant, name: acme}",
]
rule_texts = st.recursive(
    st.sampled_from(CONDITIONS),
    lambda inner: (
        inner.map(lambda rule: f"{{operator: NOT, conditions: [{rule}]}}")
        | st.tuples(st.sampled_from(["AND", "OR"]), st.lists(inner, min_size=1, max_size=3)).map(
            lambda pair: f"{{operator: {pair[0]}, conditions: [{', '.join(pair[1])}]}}"
        )
    ),
    max_leaves=4,
)
configurations = st.sampled_from(
    ["{}", "{enabled: false}", "{threshold: 0.3}", "{threshold: 0.9}", "{on_unchecked: block}"]
)
heads = st.builds(
    head,
    headers=st.fixed_dictionaries(
        {}, optional={"x-vip": st.just("1"), "x-claimed": st.sampled_from(["creative", "no"])}
    ),
    route=st.fixed_dictionaries(
        {},
        optional={
            "truthlens-domain": st.sampled_from(["creative", "healthcare"]),
            "truthlens-tenant": st.just("acme"),
        },
    ),
)
bodies = st.tuples(
    st.sampled_from(["", "m1"]), st.sampled_from(["", "a dosage", "my lawsuit and a dosage", "诉讼 剂量"])
)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Policies with random rules; unreachable decisions are left out, since those are refused."""
    text = (
        "trusted_headers: [x-vip]\n"
        "signals:\n"
        "  headers: [{name: vip, header: x-vip}, {name: claimed, header: x-claimed}]\n"
        "  domains: [{name: creative, headers: {x-claimed: [creative]}}]\n"
        "decisions: []\n"
    )
    made = policy(text)
    for index in range(draw(st.integers(1, 3))):
        longer = text.replace("decisions: []\n", "decisions:\n") + decision(
            f"d{index}", draw(rule_texts), -index, draw(configurations)
        )
        try:
            made = policy(longer)
        except InvalidPolicyError as error:
            event("unreachable" if "never" in str(error) else "broken")
        else:
            text = longer
    return made


contexts = st.lists(st.sampled_from(["a dosage", "a lawsuit", "once upon a time"]), max_size=2).map(tuple)


@settings(deadline=None)
@given(policies(), heads, bodies, contexts)
def test_context_never_weakens(
    p: Policy, where: RequestHead, body: tuple[str, str], context: tuple[str, ...]
) -> None:
    """Texts outside of the user's messages give the plan of the user's text, or that of all texts if it is stricter."""
    plan = p.select(Facts(where, model=body[0], text=body[1]))
    wider = p.select(Facts(where, model=body[0], text=body[1], context=context))
    together = p.select(Facts(where, model=body[0], text="\n".join((body[1], *context))))
    assert wider is strictest([plan, together])


@settings(deadline=None)
@given(policies(), heads, bodies, contexts)
def test_no_request_has_a_stricter_plan_than_the_strictest(
    p: Policy, where: RequestHead, body: tuple[str, str], context: tuple[str, ...]
) -> None:
    """Whatever the body says, its plan lets no more pass unchecked than that of a request which nobody could read."""
    plan = p.select(Facts(where, model=body[0], text=body[1], context=context))
    for strict in (p.strictest(where), p.strictest(where, model=body[0])):
        assert strictest([strict, plan]) is strict


@settings(deadline=None)
@given(policies(), heads, bodies, contexts)
def test_early_is_never_wrong_with_context(
    p: Policy, where: RequestHead, body: tuple[str, str], context: tuple[str, ...]
) -> None:
    """What is told from the head alone is what all facts give, and the strictest that there can be."""
    known = p.early(where)
    if known is not None:
        assert p.select(Facts(where, model=body[0], text=body[1], context=context)) == known
        assert p.strictest(where) == known


BLOCKING = "{on_unchecked: block}"
HEALTH = "{type: domain, name: healthcare}"


def test_the_question_may_stand_in_any_message() -> None:
    """What other texts say leads to a stricter plan, never to one that is weaker in anything."""
    p = policy(
        "decisions:\n"
        + decision("medical", HEALTH, 3, BLOCKING)
        + decision("money", FINANCE, 2, "{threshold: 0.7}")
        + decision("law", LEGAL, 1, "{threshold: 0.5}")
    )

    def found(text: str, *context: str) -> str:
        return p.select(Facts(head(), text=text, context=context)).decision

    assert found("Answer it.", "Which dosage is safe?") == "medical"
    assert found("Answer it.", "x", "What does my lawyer say?") == "law"
    assert found("Answer it.", "Which dividends are paid?") == "default"
    assert found("Which dosage is safe?", "What does my lawyer say?") == "medical"
    assert found("What does my lawyer say?", "Which dosage is safe?") == "medical"


def test_conditions_may_be_met_by_several_texts_together() -> None:
    """A rule of two conditions holds where one text meets the one and another text the other."""
    both = f"{{operator: AND, conditions: [{HEALTH}, {LEGAL}]}}"
    p = policy("decisions:\n" + decision("both", both, 1, BLOCKING))
    assert p.select(Facts(head(), text="a dosage", context=("my lawyer",))).decision == "both"
    assert p.select(Facts(head(), text="a dosage", context=("my dog",))).decision == "default"


def test_a_request_that_cannot_be_read_gets_the_strictest_plan_that_could_apply() -> None:
    """Conditions on the body may hold or not; those on the head are known."""
    p = policy(
        "trusted_headers: [x-team]\n"
        "signals: {headers: [{name: staff, header: x-team, values: [staff]}, {name: claim, header: x-claim}]}\n"
        "decisions:\n"
        + decision("staff", "{type: header, name: staff}", 9, "{threshold: 0.9}")
        + decision("text", f"{{operator: AND, conditions: [{HEALTH}, {{operator: NOT, conditions: "
                   "[{type: header, name: claim}]}]}", 5, BLOCKING)
        + decision("model", "{type: model, name: m}", 4, "{on_unchecked: block, threshold: 0.7}")
    )  # fmt: skip
    assert p.strictest(head()).decision == "text"
    assert p.strictest(head({"x-team": "staff"})).decision == "staff"
    # An untrusted header rules nothing out.
    assert p.strictest(head({"x-claim": "1"})).decision == "text"
    assert p.strictest(head({}, {"truthlens-domain": "finance"})).decision == "model"
    assert p.strictest(head({}, {"truthlens-domain": "finance"}), model="n").decision == "default"
    assert p.strictest(head({}, {"truthlens-decision": "model"})).decision == "model"


def test_a_text_too_long_to_be_searched_gets_the_strictest_plan() -> None:
    """Padding does not keep words from being found: then every word counts as found."""
    p = policy("decisions:\n" + decision("medical", HEALTH, 1, BLOCKING))
    assert p.select(Facts(head(), text="x " * 600_000)).decision == "medical"
    assert p.select(Facts(head(), text="Why?", context=("x " * 300_000,) * 2)).decision == "medical"
    assert p.select(Facts(head(), text="x " * 400_000)).decision == "default"


@settings(deadline=None)
@given(policies(), heads, bodies)
def test_early_is_never_wrong(p: Policy, where: RequestHead, body: tuple[str, str]) -> None:
    """What is told from the head alone is what all facts give, whatever the body."""
    known = p.early(where)
    if known is not None:
        assert p.select(Facts(where, model=body[0], text=body[1])) == known


@settings(deadline=None)
@given(policies(), heads, bodies)
def test_no_client_weakens_its_plan(p: Policy, where: RequestHead, body: tuple[str, str]) -> None:
    """Whatever text, untrusted headers and model a client sends, its plan is no weaker than without them."""
    neutral = RequestHead(
        where.method, where.path, {k: v for k, v in where.headers.items() if k == "x-vip"}, where.route
    )
    for model in (body[0], ""):
        floor = p.select(Facts(neutral, model=model))
        assert weaknesses(p.select(Facts(where, model=body[0], text=body[1])), than=floor) == ()
