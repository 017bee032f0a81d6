"""The `signals` section and the built-in signals to compiled ones, and the check of names against them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from truthlens.core.own_headers import DETAILS_HEADER, own_headers
from truthlens.policy.schema import DomainSignalSection as DomainSection
from truthlens.policy.schema import PolicyFile, SignalsSection
from truthlens.policy.signals.conditions import DomainSignal, HeaderMatch, Signals
from truthlens.policy.signals.matching import Examples, Terms
from truthlens.policy.signals.rules import Atom, ConditionType
from truthlens.policy.validation import suggest
from truthlens.text.language import LANGUAGES
from truthlens.yamlfile.diagnostics import KeyPath, Report

_MEDICAL = (
    "diagnos*, contraindication*, dosage*, dose, doses, overdose*, prescription*, prescribed, medication*, "
    "medicine*, symptom*, side effect*, drug interaction*, antibiotic*, vaccin*, blood pressure, diabet*, "
    "insulin, pregnan*, patient, patients, clinical, chemotherap*, surgery, paediatric*, pediatric*, "
    "诊断, 症状, 剂量, 用量, 用药, 药物, 处方, 副作用, 不良反应, 禁忌, 疗程, 抗生素, 疫苗, 血压, 糖尿病, 手术, "
    "患者, 医嘱, 化疗, 怀孕, 服药"
)
_FINANCIAL = (
    "invest*, portfolio*, mortgage*, interest rate*, dividend*, stock, stocks, shares, bond, bonds, etf, etfs, "
    "pension*, annual report*, balance sheet*, earnings, revenue, ebitda, capital gains, tax return*, loan, "
    "loans, credit score*, hedge fund*, mutual fund*, "
    "投资, 理财, 股票, 基金, 债券, 利率, 贷款, 房贷, 股息, 分红, 财报, 营收, 净利润, 资产负债表, 养老金, 收益率, 信用评分"
)
_LEGAL = (
    "lawsuit*, litigation, plaintiff*, defendant*, contract clause*, breach of contract, indemnif*, liability, "
    "statute*, jurisdiction*, attorney*, lawyer*, copyright*, trademark*, patent infringement, gdpr, "
    "non-disclosure, nda, custody, tenancy, power of attorney, "
    "诉讼, 起诉, 原告, 被告, 合同条款, 违约, 律师, 法律责任, 法规, 判决, 仲裁, 侵权, 著作权, 商标, 专利, 管辖, 保密协议"
)
_SUPPORT = (
    "refund*, return policy, warranty, my order, order status, tracking number, delivery, shipping, "
    "cancel my*, subscription*, invoice*, password reset, reset my password, cannot log in, can't log in, "
    "customer service, complaint*, replacement part*, "
    "退款, 退货, 换货, 保修, 订单, 物流, 快递, 发货, 取消订阅, 发票, 重置密码, 无法登录, 客服, 投诉, 售后"
)


def _terms(text: str) -> tuple[str, ...]:
    return tuple(term.strip() for term in text.split(","))


KEYWORDS: dict[str, tuple[str, ...]] = {
    "medical_terms": _terms(_MEDICAL),
    "financial_terms": _terms(_FINANCIAL),
    "legal_terms": _terms(_LEGAL),
    "support_terms": _terms(_SUPPORT),
}

# ``creative`` and ``internal`` have no words on purpose: policies use them to check less, and whether a tool
# is internal or a text is fiction is for the operator to say (route metadata or a trusted header), not for the
# author of the prompt. A final ``*`` of a keyword matches any ending.
DOMAINS: dict[str, tuple[str, ...]] = {
    "healthcare": KEYWORDS["medical_terms"],
    "finance": KEYWORDS["financial_terms"],
    "legal": KEYWORDS["legal_terms"],
    "support": KEYWORDS["support_terms"],
    "internal": (),
    "creative": (),
}

# The gateway removes these from what a client sends, so a signal on one would never match.
_STRIPPED_PREFIX = "x-truthlens-"


@dataclass(frozen=True, slots=True)
class Meanings:
    """Compiled signals; ``complete`` is false if the section had mistakes, so that names cannot be checked."""

    signals: Signals
    complete: bool

    def check(self, atom: Atom, path: KeyPath, report: Report) -> None:
        """Report a condition that names a signal which does not exist."""
        known = self._known(atom.type)
        if known is None or atom.name in known or not self.complete:
            return
        section = f"signals.{atom.type}s"
        names = ", ".join(sorted(known)) or "none"
        remedy = suggest(atom.name, known, otherwise=f"define it under `{section}`; known: {names}")
        report.error(path, f"there is no {atom.type} signal {atom.name!r}", remedy)

    def _known(self, kind: ConditionType) -> frozenset[str] | None:
        match kind:
            case ConditionType.DOMAIN:
                return frozenset(self.signals.domains)
            case ConditionType.KEYWORD:
                return frozenset(self.signals.keywords)
            case ConditionType.HEADER:
                return frozenset(self.signals.headers)
            case ConditionType.LANGUAGE:
                return LANGUAGES | frozenset(self.signals.languages)
            case ConditionType.MODEL | ConditionType.TENANT:
                return None


def compile_signals(file: PolicyFile, report: Report, *, complete: bool) -> Meanings:
    """Compile the signals of ``file`` over the built-in ones; mistakes go to ``report``."""
    section = file.signals
    _refuse_doubled_names(section, report)
    _check_headers(file, report)
    _check_languages(section, report)
    domains = {name: _domain(name, None) for name in DOMAINS}
    domains |= {domain.name: _domain(domain.name, domain) for domain in section.domains}
    keywords = {name: Terms(terms) for name, terms in KEYWORDS.items()}
    keywords |= {signal.name: Terms(signal.terms) for signal in section.keywords}
    signals = Signals(
        domains=domains,
        keywords=keywords,
        headers={s.name: HeaderMatch(s.header.lower(), _lower(s.values)) for s in section.headers},
        models={signal.name: tuple(signal.models) for signal in section.models},
        languages={signal.name: frozenset(signal.languages) for signal in section.languages},
        tenants={signal.name: _matches(signal.headers) for signal in section.tenants},
        trusted_headers=_lower(file.trusted_headers),
    )
    return Meanings(signals, complete)


def _domain(name: str, section: DomainSection | None) -> DomainSignal:
    keywords: Sequence[str] = DOMAINS.get(name, ())
    if section is not None and section.keywords is not None:
        keywords = section.keywords
    examples = section.examples if section else None
    return DomainSignal(
        headers=_matches((section.headers if section else None) or {}),
        keywords=Terms(keywords) if keywords else None,
        examples=Examples(examples, min_similarity=section.min_similarity) if section and examples else None,
    )


def _matches(headers: Mapping[str, Sequence[str]]) -> tuple[HeaderMatch, ...]:
    return tuple(HeaderMatch(header.lower(), _lower(values)) for header, values in headers.items())


def _lower(values: Iterable[str]) -> frozenset[str]:
    return frozenset(value.lower() for value in values)


def _refuse_doubled_names(section: SignalsSection, report: Report) -> None:
    for kind in SignalsSection.model_fields:
        seen: set[str] = set()
        for index, signal in enumerate(getattr(section, kind)):
            if signal.name in seen:
                path = ("signals", kind, index, "name")
                report.error(path, f"the signal {signal.name!r} is defined twice", "join the two")
            seen.add(signal.name)


def _check_headers(file: PolicyFile, report: Report) -> None:
    places: list[tuple[str, KeyPath]] = [
        (header, ("trusted_headers", index)) for index, header in enumerate(file.trusted_headers)
    ]
    for kind in ("domains", "tenants"):
        for index, signal in enumerate(getattr(file.signals, kind)):
            places += [(h, ("signals", kind, index, "headers", h)) for h in signal.headers or ()]
    places += [
        (signal.header, ("signals", "headers", index, "header"))
        for index, signal in enumerate(file.signals.headers)
    ]
    for header, path in places:
        if header.lower() == DETAILS_HEADER and path[0] == "trusted_headers":
            continue
        if own_headers([header.lower()]):
            message = f"{_STRIPPED_PREFIX}* headers are removed from requests, so {header!r} never matches"
            remedy = "use another header, or the route's metadata (truthlens-domain, truthlens-decision)"
            report.error(path, message, remedy)


def _check_languages(section: SignalsSection, report: Report) -> None:
    for index, signal in enumerate(section.languages):
        for number, code in enumerate(signal.languages):
            if code not in LANGUAGES:
                path = ("signals", "languages", index, "languages", number)
                known = ", ".join(sorted(LANGUAGES))
                report.error(path, f"the language {code!r} cannot be told", f"use one of {known}")
