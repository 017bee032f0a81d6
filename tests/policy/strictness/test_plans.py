"""Which plan is weaker than which: every setting has a side, and a client's words never lead to the weaker one."""

from __future__ import annotations

from dataclasses import fields, replace
from enum import Enum
from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from truthlens.core.records.agentic_settings import AgenticSettings
from truthlens.core.records.enums import (
    Aggregation,
    AskWhen,
    IntermediateCalls,
    Mode,
    OnFlagged,
    OnUnchecked,
    Reasoning,
    Streaming,
    Stricter,
    Trigger,
)
from truthlens.core.records.exchange import Facts, RequestHead
from truthlens.core.records.plan import DEFAULT_DETECTORS, DetectorSpec, Plan
from truthlens.core.records.settings import (
    AutoSettings,
    CascadeSettings,
    EvidenceRules,
    MitigationSettings,
    PremiumSettings,
    RetrievalSettings,
    StandardSettings,
    StreamSettings,
)
from truthlens.core.registry import detector_types
from truthlens.detection.detectors.judge.options import Options as JudgeOptions
from truthlens.detection.detectors.numbers.options import Options as NumberOptions
from truthlens.policy import Policy, compile_policy
from truthlens.policy.strictness import weaknesses
from truthlens.policy.strictness.plans import COMPARED
from truthlens.policy.strictness.settings import declared

INVISIBLE = '"\\u200b\\u2060"'
JUDGE = "{name: judge, model: a}"


def policy(default: str, own: str) -> Policy:
    """A policy whose one decision is chosen by words of the user."""
    return compile_policy(
        f"hallucination: {default}\ndecisions:\n  - name: other\n    rules: {{type: domain, name: finance}}\n"
        f"    plugins: [{{type: hallucination, configuration: {own}}}]\n",
        file="p.yaml",
    )


def found(default: str, own: str) -> str:
    of = policy(default, own)
    return "; ".join(weaknesses(of.plans[0], than=of.default))


def chosen(of: Policy) -> str:
    return of.select(Facts(RequestHead("POST", "/v1/chat/completions", {}, {}), text="my dividends")).decision


WEAKER = [
    ("{}", "{detectors: [encoder, contradictions, reader, {name: numbers, currency_tolerance: 100}]}",
     "numbers.currency_tolerance 100 instead of 5"),
    ("{}", "{detectors: [encoder, contradictions, reader, {name: numbers, verify_dates: false}]}",
     "numbers.verify_dates false instead of true"),
    ("{detectors: [encoder, {name: numbers, strict: true}]}", "{detectors: [encoder, numbers]}", "numbers.strict false instead of true"),
    ("{detectors: [encoder, {name: citations, check_support: true}]}", "{detectors: [encoder, citations]}",
     "citations.check_support false instead of true"),
    ("{detectors: [encoder, citations]}", "{detectors: [encoder, {name: citations, over_extrapolation: 'off'}]}",
     "citations.over_extrapolation off instead of count"),
    (f"{{detectors: [encoder, {JUDGE}]}}", "{detectors: [encoder, {name: judge, model: b}]}",
     "judge.model b instead of a, which cannot be compared"),
    ("{}", "{detectors: [encoder, contradictions, reader, {name: numbers, weight: 0.1}]}", "numbers.weight 0.1 instead of 1"),
    ("{}", "{detectors: [encoder, numbers, contradictions, reader, {name: citations, weight: 5}]}", "encoder.weight 0.2 instead of 1"),
    ("{max_unscored: 0.2}", "{max_unscored: 1}", "max_unscored 1 instead of 0.2"),
    ("{}", "{aggregation: span_max}", "aggregation span_max instead of none, which cannot be compared"),
    ("{}", "{timeout_s: 0.01}", "timeout_s 0.01 instead of 4"),
    ("{on_unchecked: block}", "{on_unchecked: annotate, timeout_s: 9}", "on_unchecked annotate instead of block"),
    ("{}", "{mode: standard, mitigation: {deadline_s: 0.1}}", "mitigation.deadline_s 0.1 instead of 4"),
    ("{default_mode: standard}", "{mitigation: {deadline_s: 5}}", "mitigation.deadline_s 5 instead of 30"),
    ("{}", "{model_id: tiny}", "model_id tiny instead of none, which cannot be compared"),
    ("{}", "{evidence: {system: never}}", "evidence.system never instead of auto, which cannot be compared"),
    ("{}", "{evidence: {user_patterns: ['<s>(.*)</s>']}}", "evidence.user_patterns"),
    ("{}", "{evidence: {system_min_chars: 0}}", "evidence.system_min_chars 0 instead of 120"),
    ("{default_mode: standard}", "{mode: standard, max_iterations: 1}", "standard.max_iterations 1 instead of 3"),
    ("{default_mode: standard, standard: {convergence_threshold: 0.3}}", "{standard: {convergence_threshold: 0.5}}",
     "standard.convergence_threshold 0.5 instead of 0.3"),
    ("{default_mode: standard, standard: {self_check: true}}", "{standard: {self_check: false}}", "standard.self_check false instead of true"),
    ("{}", f"{{warning_template: {INVISIBLE}}}", "without a warning or disclaimer in the text"),
    ("{default_mode: standard}", f"{{disclaimer_template: {INVISIBLE}}}", "without a warning or disclaimer in the text"),
    ("{default_mode: standard}", "{disclaimer_template: '<b></b>&nbsp;'}", "without a warning or disclaimer in the text"),
    ("{streaming: gate}", f"{{stream: {{mark_template: {INVISIBLE}}}}}", "stream.mark_template"),
    ("{streaming: gate}", "{stream: {max_hold_s: 0.1}}", "stream.max_hold_s 0.1 instead of 3"),
    ("{streaming: observe}", f"{{warning_template: {INVISIBLE}}}", "without a warning at the end of streams"),
    (f"{{detectors: [encoder, {JUDGE}]}}", "{cascade: {band: [0.5, 0.6]}}", "cascade.band 0.5, 0.6 instead of 0.3, 0.6"),
    (f"{{detectors: [encoder, {JUDGE}], cascade: {{when: always}}}}", "{cascade: {when: band}}", "cascade.when band instead of always"),
    (f"{{detectors: [encoder, {JUDGE}]}}", "{cascade: {timeout_s: 1}}", "cascade.timeout_s 1 instead of 20"),
    (f"{{detectors: [encoder, {JUDGE}]}}", "{mitigation: {max_tokens: 1}}", "mitigation.max_tokens 1 instead of 50000"),
    ("{default_mode: standard}", "{mitigation: {max_cost_usd: 0.01}}", "mitigation.max_cost_usd 0.01 instead of none"),
    ("{default_mode: premium, premium: {verification_models: [a, b]}}", "{premium: {verification_models: [a]}}",
     "premium.verification_models a instead of a, b"),
    ("{default_mode: premium, premium: {verification_models: [a]}}", "{premium: {significance: 1}}", "premium.significance 1 instead of 0.1"),
    ("{default_mode: auto, premium: {verification_models: [a]}}", "{auto: {modes: [lightweight]}}", "mode auto instead of auto"),
    ("{default_mode: auto, premium: {verification_models: [a]}}", "{auto: {latency_weight: 10}}", "auto.latency_weight 10 instead of 0.2"),
]  # fmt: skip


@pytest.mark.parametrize(("default", "own", "words"), WEAKER)
def test_a_clients_words_do_not_choose_what_is_weaker(default: str, own: str, words: str) -> None:
    """The difference is named, the default applies, and with client_may_choose the decision does."""
    of = policy(default, own)
    assert words in "; ".join(weaknesses(of.plans[0], than=of.default))
    assert chosen(of) == "default"
    assert words in "".join(each.render() for each in of.warnings)
    assert chosen(policy(default, own.replace("{", "{client_may_choose: true, ", 1))) == "other"


HARMLESS = [
    ("{}", "{details: true, warning_position: after, use_cpu: true}"),
    ("{}", "{threshold: 0.4, warning_template: 'Ask a doctor.'}"),
    ("{}", "{mode: standard, max_iterations: 1, standard: {min_retention: 0.9, convergence_threshold: 0.6}}"),
    ("{}", "{mode: premium, premium: {verification_models: [a], significance: 0.9}, mitigation: {max_tokens: 100}}"),
    ("{default_mode: standard}", "{mode: standard, max_iterations: 2}"),
    ("{default_mode: standard, standard: {convergence_threshold: 0.4}}", "{threshold: 0.3}"),
    ("{default_mode: standard}", "{mode: auto, auto: {modes: [standard, premium], latency_weight: 1}, premium: {verification_models: [a]}}"),
    ("{}", "{on_unchecked: block, timeout_s: 1}"),
    ("{}", "{max_unscored: 0.3, reasoning: score}"),
    ("{streaming: observe}", "{streaming: gate, on_flagged: withhold, stream: {max_hold_s: 1, notice_template: '[gone]'}}"),
    ("{}", f"{{detectors: [encoder, numbers, contradictions, reader, {JUDGE}], cascade: {{band: [0.5, 0.5]}}}}"),
    ("{}", "{detectors: [contradictions, reader, {name: numbers, currency_tolerance: 0, floor: true, target_rate: 1}, encoder]}"),
    ("{}", "{detectors: [encoder, {name: numbers, weight: 1}, contradictions, reader, {name: citations, weight: 0.5}]}"),
    (f"{{detectors: [encoder, {JUDGE}]}}", "{cascade: {when: always, sample: 0}}"),
    (f"{{detectors: [encoder, {JUDGE}]}}", "{cascade: {band: [0.1, 0.9], in_loop: every, timeout_s: 30}}"),
    ("{evidence: {system: marked}}", "{threshold: 0.3}"),
    ("{aggregation: span_max, model_id: own}", "{threshold: 0.3}"),
]  # fmt: skip


@pytest.mark.parametrize(("default", "own"), HARMLESS)
def test_what_is_no_weaker_is_chosen(default: str, own: str) -> None:
    """Settings of a mode that the other plan does not have, stricter values, and what only looks different."""
    of = policy(default, own)
    assert weaknesses(of.plans[0], than=of.default) == ()
    assert chosen(of) == "other"


def test_options_that_are_left_out_are_the_defaults() -> None:
    """Written or not, in the policy or in the environment."""
    plain, written = DetectorSpec("numbers"), DetectorSpec("numbers", options=NumberOptions())
    plans = [Plan("a", detectors=(each,)) for each in (plain, written)]
    assert weaknesses(plans[0], than=plans[1]) == weaknesses(plans[1], than=plans[0]) == ()


class Undeclared(BaseModel, frozen=True):
    """Options of somebody else's detector, who declared nothing."""

    word: str = "x"


def test_what_declares_nothing_cannot_be_compared() -> None:
    plans = [
        Plan("a", detectors=(DetectorSpec("toy", options=options),))
        for options in (Undeclared(), Undeclared(word="y"))
    ]
    assert weaknesses(plans[0], than=plans[1]) == ("toy.word x instead of y, which cannot be compared",)


SECTIONS: dict[str, type[BaseModel]] = {
    name: kind
    for name, kind in get_type_hints(Plan).items()
    if isinstance(kind, type) and issubclass(kind, BaseModel)
}
OPTIONS = {name: kind.options for name, kind in detector_types().items()}
DECLARED = [
    (f"{owner}.{name}", order)
    for owner, kind in (SECTIONS | OPTIONS).items()
    for name, order in declared(kind).items()
]


def test_every_field_of_a_plan_says_how_it_is_compared() -> None:
    """A new one cannot be forgotten: declare its order in ``COMPARED``, or that it has none."""
    assert set(COMPARED) == {field.name for field in fields(Plan)}
    assert set(SECTIONS) == {
        "standard",
        "premium",
        "auto",
        "mitigation",
        "stream",
        "evidence",
        "cascade",
        "retrieval",
        "agentic",
    }
    # These are compared by ``_detectors``; the models are named in the options.
    assert {field.name for field in fields(DetectorSpec)} == {"name", "weight", "options", "models"}


@pytest.mark.parametrize(("key", "order"), DECLARED)
def test_every_setting_and_every_option_says_which_value_is_stricter(
    key: str, order: Stricter | None
) -> None:
    """Write ``Annotated[..., Stricter....]`` at the field."""
    assert order is not None, f"{key} does not declare which of two values is the stricter one"


# A plan in which every section counts: it chooses among all modes, gates its streams, and asks a model.
BUSY = Plan(
    "busy",
    mode=Mode.AUTO,
    streaming=Streaming.GATE,
    detectors=(*DEFAULT_DETECTORS, DetectorSpec("judge", options=JudgeOptions(model="a"), models=("a",))),
    premium=PremiumSettings(verification_models=("a",)),
    evidence=EvidenceRules(intermediate_calls=IntermediateCalls.NONE),
    retrieval=RetrievalSettings(sources=("a",), when=(Trigger.NO_CONTEXT,)),
    auto=AutoSettings(modes=(Mode.LIGHTWEIGHT, Mode.STANDARD, Mode.PREMIUM, Mode.AGENTIC)),
)
OTHER_VALUES: dict[str, Any] = {
    "modes": (Mode.LIGHTWEIGHT, Mode.STANDARD), "verification_models": ("a", "b"), "max_iterations": 1, "deadline_s": 5.0,
    "mark_template": "\u200b", "notice_template": "\u200b", "band": (0.1, 0.9), "judge_model": "j", "consensus": "debate",
    "convergence_threshold": 0.2, "max_cost_usd": 1.0, "roles": ("r",), "marks": ("m",), "user_patterns": ("(p)",),
    "intermediate_calls": IntermediateCalls.DETECT, "sources": ("a", "b"),
    **dict.fromkeys(AgenticSettings.MODEL_KEYS, "a"),
}  # fmt: skip


def another(name: str, value: Any) -> Any:
    """A value of a setting that is not the one given."""
    if name in OTHER_VALUES:
        return OTHER_VALUES[name]
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return ()
    if isinstance(value, Enum):
        return next(each for each in type(value) if each is not value)
    return value / 2 if isinstance(value, float) and value else value + 1


@pytest.mark.parametrize(
    ("section", "name", "order"),
    [(section, name, order) for section, kind in SECTIONS.items() for name, order in declared(kind).items()],
)
def test_every_setting_counts_where_it_is_used(section: str, name: str, order: Stricter) -> None:
    """Of two plans that differ in it alone one is the weaker, both where they cannot be compared."""
    settings_of = getattr(BUSY, section)
    changed = settings_of.model_copy(update={name: another(name, getattr(settings_of, name))})
    plan = replace(BUSY, **{section: changed})
    weaker = [bool(weaknesses(plan, than=BUSY)), bool(weaknesses(BUSY, than=plan))]
    expected = {Stricter.NO_EFFECT: 0, Stricter.UNKNOWN: 2}.get(order, 1)
    assert sum(weaker) == (1 if name == "intermediate_calls" else expected)


detectors = st.sampled_from([
    DEFAULT_DETECTORS,
    BUSY.detectors,
    (DetectorSpec("encoder", 2.0), DetectorSpec("numbers", options=NumberOptions(currency_tolerance=50))),
    (DetectorSpec("encoder"), DetectorSpec("numbers", options=NumberOptions(strict=True))),
])  # fmt: skip
templates = st.sampled_from([None, "Look out.", "\u200b"])
plans = st.builds(
    Plan,
    decision=st.just("any"),
    enabled=st.sampled_from([True, True, True, False]),
    mode=st.sampled_from(Mode),
    threshold=st.sampled_from([0.3, 0.6]),
    expected_rate=st.sampled_from([0.5, 0.5, 0.2]),
    aggregation=st.sampled_from([None, None, Aggregation.SPAN_MAX]),
    streaming=st.sampled_from(Streaming),
    on_flagged=st.sampled_from(OnFlagged),
    on_unchecked=st.sampled_from(OnUnchecked),
    max_unscored=st.sampled_from([0.5, 1.0]),
    reasoning=st.sampled_from(Reasoning),
    detectors=detectors,
    warning_template=templates,
    disclaimer_template=templates,
    require_disclaimer=st.sampled_from([None, True, False]),
    timeout_s=st.sampled_from([1.0, 4.0]),
    standard=st.builds(
        StandardSettings,
        max_iterations=st.integers(1, 3),
        convergence_threshold=st.sampled_from([None, 0.2, 0.5]),
        min_retention=st.sampled_from([0.5, 0.9]),
    ),
    premium=st.builds(
        PremiumSettings,
        verification_models=st.sampled_from([(), ("a",), ("a", "b")]),
        significance=st.sampled_from([0.1, 0.5]),
    ),
    auto=st.builds(
        AutoSettings,
        modes=st.lists(
            st.sampled_from([each for each in Mode if each is not Mode.AUTO]), min_size=1, unique=True
        ).map(tuple),
        latency_weight=st.sampled_from([0.2, 2.0]),
    ),
    mitigation=st.builds(
        MitigationSettings,
        deadline_s=st.sampled_from([None, 0.5, 20.0]),
        max_cost_usd=st.sampled_from([None, 1.0]),
    ),
    stream=st.builds(StreamSettings, warning=st.booleans(), mark_template=templates),
    evidence=st.builds(EvidenceRules, intermediate_calls=st.sampled_from(IntermediateCalls)),
    cascade=st.builds(
        CascadeSettings,
        when=st.sampled_from(AskWhen),
        band=st.sampled_from([(0.3, 0.6), (0.2, 0.7), (0.2, 0.5)]),
    ),
    retrieval=st.builds(
        RetrievalSettings,
        when=st.sampled_from([(), (Trigger.NO_CONTEXT,)]),
        sources=st.sampled_from([("a",), ("b",)]),
        timeout_s=st.sampled_from([1.0, 2.0]),
    ),
    agentic=st.builds(
        AgenticSettings, max_iterations=st.integers(5, 6), chat_model=st.sampled_from([None, "a"])
    ),
)


@st.composite
def steps(draw: st.DrawFn) -> tuple[Plan, Plan, Plan]:
    """Three plans, the later ones made of earlier ones with a few fields of others."""
    first = draw(plans)
    second, third = (
        replace(first, **{name: getattr(draw(plans), name) for name in draw(names)}) for _ in range(2)
    )
    return first, second, third


names = st.sets(
    st.sampled_from([each.name for each in fields(Plan) if each.name not in ("enabled", "decision")]),
    max_size=4,
)


@settings(deadline=None, max_examples=400)
@given(steps())
def test_nobody_goes_down_by_steps(given_plans: tuple[Plan, Plan, Plan]) -> None:
    """What is no weaker than a plan that is no weaker than the first is no weaker than the first."""
    first, second, third = given_plans
    if not weaknesses(second, than=first) and not weaknesses(third, than=second):
        assert weaknesses(third, than=first) == ()
