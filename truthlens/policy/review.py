"""Compile the section ``review`` of a policy: what is queued for people, and what of it is kept."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

import regex

from truthlens.core.records.plan import Plan
from truthlens.core.review_settings import ReviewRule, ReviewSettings
from truthlens.policy.schema import PolicyFile
from truthlens.yamlfile.diagnostics import Report

QUEUE_VARIABLE = "HALLUCINATION_REVIEW_QUEUE"
FLAG_VARIABLE = "HALLUCINATION_AUTO_FLAG"
_PATH = ("review",)
_FALSE = frozenset(("false", "0", "no", "off"))


def review_settings(
    file: PolicyFile, plans: Sequence[Plan], report: Report, *, environ: Mapping[str, str] = os.environ
) -> ReviewSettings:
    """Return the settings of the review queue, and report what of them cannot work or has no effect.

    Args:
        file: the policy, whose keys are sound each for itself.
        plans: every plan of it.
        report: takes errors and warnings.
        environ: says whether there is a queue where the section does not: two settings of the source of the queue.
    """
    section, changes = file.review, dict[str, object]()
    if "enabled" not in section.model_fields_set:
        changes["enabled"] = environ.get(QUEUE_VARIABLE, "").strip().lower() not in _FALSE
    if "rules" in section.model_fields_set:
        _check_rules(section.rules, plans, report)
    elif environ.get(FLAG_VARIABLE, "").strip().lower() in _FALSE:
        changes["rules"] = ()
    _check_texts(section, report)
    header = section.user_header.lower()
    if header and header not in {name.lower() for name in file.trusted_headers}:
        report.error(
            (*_PATH, "user_header"),
            f"the user is named by the header {header!r}, which a client could send",
            "list it under trusted_headers if a router before TruthLens sets or removes it",
        )
    return section.model_copy(update={**changes, "user_header": header})


def _check_rules(rules: Sequence[ReviewRule], plans: Sequence[Plan], report: Report) -> None:
    decisions = {plan.decision for plan in plans}
    detectors = {spec.name for plan in plans for spec in plan.detectors}
    taken: set[str] = set()
    for index, rule in enumerate(rules):
        path = (*_PATH, "rules", index)
        if rule.name in taken:
            report.error((*path, "name"), f"the rule {rule.name!r} is written twice", "choose another name")
        taken.add(rule.name)
        for what, names, known in (
            ("decisions", rule.decisions, decisions),
            ("detectors", rule.detectors, detectors),
        ):
            for name in _unknown(names, known):
                message = f"{name!r} is none of the policy's {what}, so the rule never applies to it"
                report.warn((*path, what), message, f"known: {', '.join(sorted(known))}")
        if any(_covers(before, rule) for before in rules[:index]):
            report.warn(
                path,
                f"the rule {rule.name!r} is never reached: one before it decides about all of its answers",
                "put it first, or remove it",
            )


def _unknown(names: Iterable[str], known: set[str]) -> list[str]:
    return [name for name in names if name not in known]


def _covers(before: ReviewRule, rule: ReviewRule) -> bool:
    """Whether ``before`` applies to everything that ``rule`` applies to."""
    return (before.flagged is None or before.flagged == rule.flagged) and all(
        not first or (second and set(second) <= set(first))
        for first, second in (
            (before.decisions, rule.decisions),
            (before.levels, rule.levels),
            (before.detectors, rule.detectors),
        )
    )


def _check_texts(section: ReviewSettings, report: Report) -> None:
    for index, pattern in enumerate(section.redact_patterns):
        try:
            empty = regex.compile(pattern).search("") is not None
        except regex.error as error:
            report.error(
                (*_PATH, "redact_patterns", index),
                f"the regular expression cannot be read: {error}",
                "fix it; the syntax is Python's",
            )
        else:
            if empty:
                report.warn(
                    (*_PATH, "redact_patterns", index),
                    "the regular expression matches the empty text, of which nothing can be taken out",
                    "write what has to be there at least",
                )
    redacts = section.redact or section.redact_patterns
    if redacts and not section.keep_text:
        key = "redact" if section.redact else "redact_patterns"
        report.warn(
            (*_PATH, key),
            "no texts are kept, so nothing is taken out of them",
            "write keep_text: true, or remove it",
        )
    written = "text_retention_days" in section.model_fields_set
    if section.keep_text and written and section.text_retention_days > section.retention_days:
        report.warn(
            (*_PATH, "text_retention_days"),
            f"entries are deleted after {section.retention_days:g} days, texts and all",
            "raise retention_days, or lower it",
        )
