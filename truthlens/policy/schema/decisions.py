"""Define decisions, their rules, plugins and models, and what the conditions of rules mean."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from truthlens.core.records.settings import HeaderName, Label, Section, Text
from truthlens.policy.schema.behaviour import PluginConfiguration


class HallucinationPlugin(Section):
    """The plugin that TruthLens reads."""

    type: Literal["hallucination"]
    configuration: PluginConfiguration = PluginConfiguration()


class OtherPlugin(BaseModel):
    """A plugin of another type (of an upstream router); it is ignored, with a warning."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    # Editors choose between the plugin kinds by the JSON Schema alone.
    type: Text = Field(json_schema_extra={"not": {"const": "hallucination"}})


def _plugin_tag(value: object) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    return "OtherPlugin" if isinstance(kind, str) and kind != "hallucination" else "HallucinationPlugin"


Plugin = Annotated[
    Annotated[HallucinationPlugin, Tag("HallucinationPlugin")] | Annotated[OtherPlugin, Tag("OtherPlugin")],
    Discriminator(_plugin_tag),
]


class Condition(Section):
    """One condition: a signal by type and name."""

    type: Literal["domain", "keyword", "header", "model", "language", "tenant"]
    name: Text


class Group(Section):
    """Conditions joined by an operator; NOT takes exactly one."""

    operator: Literal["AND", "OR", "NOT"]
    conditions: list[Rule] = Field(min_length=1)


def _rule_tag(value: object) -> str:
    return "Group" if isinstance(value, dict) and value.keys() & {"operator", "conditions"} else "Condition"


Rule = Annotated[
    Annotated[Group, Tag("Group")] | Annotated[Condition, Tag("Condition")], Discriminator(_rule_tag)
]


class ModelRef(Section):
    """The model that answers when the request's model is `auto`."""

    model: Text


class DecisionSection(Section):
    """A named policy and when it applies."""

    name: Label
    description: str | None = None
    priority: int = Field(default=0, description="The highest wins; equal ones in file order.")
    rules: Rule
    model_refs: list[ModelRef] = Field(default_factory=list, alias="modelRefs")
    plugins: list[Plugin] = Field(default_factory=list)


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
