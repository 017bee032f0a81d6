"""Define the built-in signals: domains and keyword sets, in English and Chinese.

``creative`` and ``internal`` have no words on purpose: policies use them to check less, and whether a tool is
internal or a text is fiction is for the operator to say (route metadata or a trusted header), not for the
author of the prompt. A final ``*`` matches any ending.
"""

from __future__ import annotations

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

DOMAINS: dict[str, tuple[str, ...]] = {
    "healthcare": KEYWORDS["medical_terms"],
    "finance": KEYWORDS["financial_terms"],
    "legal": KEYWORDS["legal_terms"],
    "support": KEYWORDS["support_terms"],
    "internal": (),
    "creative": (),
}
