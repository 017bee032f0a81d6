"""Define decisions: rules, plugins and models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from truthlens.policy.schema.behaviour import PluginConfiguration
from truthlens.policy.schema.types import Label, Section, Text


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
