"""Define what the conditions of decisions mean."""

from __future__ import annotations

from pydantic import Field

from truthlens.policy.schema.types import HeaderName, Label, Section, Text

HeaderValues = dict[HeaderName, list[Text]]


class DomainSignalSection(Section):
    """What a `domain` condition means; keys left out of a built-in domain keep their built-in value."""

    name: Label
    headers: HeaderValues | None = Field(default=None, description="Header name to the values that mean it.")
    keywords: list[Text] | None = None
    examples: list[Text] | None = Field(
        default=None, description="Questions of this domain; compared by their words, not by meaning."
    )
    min_similarity: float = Field(default=0.5, gt=0, le=1, description="How near an example counts, 0..1.")


class KeywordSignal(Section):
    """What a `keyword` condition means: any of the terms stands in the user's text."""

    name: Label
    terms: list[Text] = Field(min_length=1, description="Words or phrases; a final * matches any ending.")


class HeaderSignal(Section):
    """What a `header` condition means: the header has one of the values, or any where none are given."""

    name: Label
    header: HeaderName
    values: list[Text] = Field(default_factory=list)


class ModelSignal(Section):
    """What a `model` condition means; a condition may also name a model itself."""

    name: Label
    models: list[Text] = Field(min_length=1, description="Model names; * and ? stand for any characters.")


class LanguageSignal(Section):
    """What a `language` condition means; a condition may also name a language code itself."""

    name: Label
    languages: list[Text] = Field(min_length=1)


class TenantSignal(Section):
    """What a `tenant` condition means besides the route's own metadata."""

    name: Label
    headers: HeaderValues = Field(default_factory=dict)


class SignalsSection(Section):
    """What the conditions mean; common domains and keyword sets are built in."""

    domains: list[DomainSignalSection] = Field(default_factory=list)
    keywords: list[KeywordSignal] = Field(default_factory=list)
    headers: list[HeaderSignal] = Field(default_factory=list)
    models: list[ModelSignal] = Field(default_factory=list)
    languages: list[LanguageSignal] = Field(default_factory=list)
    tenants: list[TenantSignal] = Field(default_factory=list)
