"""A policy file to a compiled policy, with all of its mistakes at once."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pydantic

from truthlens.core.records.agentic_settings import VARIABLES, AgenticSettings
from truthlens.core.records.calls import ModelSpec, Price
from truthlens.core.records.plan import Plan
from truthlens.core.records.retrieval import SourceSpec
from truthlens.core.registry import SourceOptions, SourceType, source_types
from truthlens.policy.files import UnfitFileError, read_start
from truthlens.policy.lint import PlacedDecision, lint, warn_of_filters
from truthlens.policy.plans.builder import PlanBuilder
from truthlens.policy.plans.declared_options import read_options
from truthlens.policy.plans.record_files import Contents, Identify, record_contents
from truthlens.policy.policy import DEFAULT_DECISION, Decision, Policy
from truthlens.policy.review import review_settings
from truthlens.policy.schema import (
    Behaviour,
    Condition,
    DecisionSection,
    Group,
    HallucinationPlugin,
    ModelEntry,
    PolicyFile,
)
from truthlens.policy.signals.compiler import Meanings, compile_signals
from truthlens.policy.signals.conditions import Signals
from truthlens.policy.signals.rules import All, Any, Atom, ConditionType, Not, Rule
from truthlens.policy.validation import Shaped, shape, suggest
from truthlens.yamlfile.diagnostics import (
    Diagnostic,
    InvalidPolicyError,
    KeyPath,
    Report,
    Severity,
    render_path,
)
from truthlens.yamlfile.source import MAX_BYTES, Document, read_document

if TYPE_CHECKING:
    from truthlens.policy.plans.fusion_record import Fusions
    from truthlens.policy.plans.threshold_record import Calibrations


def load_policy(
    path: Path | str,
    *,
    model_exists: Callable[[str], bool] | None = None,
    identify: Identify | None = None,
    use_records: bool = True,
    use_fusion: bool = True,
) -> Policy:
    """Load the policy in the file at ``path``; see ``compile_policy``.

    Raises:
        InvalidPolicyError: the file cannot be read, or has mistakes.
    """
    return compile_policy(
        read_text(path),
        file=str(path),
        model_exists=model_exists,
        identify=identify,
        use_records=use_records,
        use_fusion=use_fusion,
    )


def compile_policy(
    text: str,
    *,
    file: str,
    model_exists: Callable[[str], bool] | None = None,
    identify: Identify | None = None,
    use_records: bool = True,
    use_fusion: bool = True,
) -> Policy:
    """Compile the YAML ``text`` into a policy.

    Args:
        text: the YAML.
        file: its name in messages; the threshold records that it names are read from the folder of that file.
        model_exists: whether a ``model_id`` can be loaded; left out, a folder of that name counts.
        identify: the model that scores for a ``model_id``, to compare with threshold records; left out,
            models are not compared, and a warning says so.
        use_records: false leaves threshold records unread (to calibrate a plan whose record no longer fits);
            such a plan has the threshold that it inherits and is not for serving.
        use_fusion: false leaves the weights of verdicts unread, in the same way.

    Raises:
        InvalidPolicyError: the text has mistakes; the message has one line for each of them.
    """
    policy, report = _compile(
        text, file, model_exists or _is_folder, identify, use_records=use_records, use_fusion=use_fusion
    )
    if policy is None:
        raise InvalidPolicyError(report.errors)
    return policy


def check_file(
    path: Path | str,
    *,
    model_exists: Callable[[str], bool] | None = None,
    identify: Identify | None = None,
) -> list[Diagnostic]:
    """Return all errors, then all warnings, of loading the file at ``path``; empty for a sound file."""
    try:
        text = read_text(path)
    except InvalidPolicyError as error:
        return list(error.diagnostics)
    return check_text(text, file=str(path), model_exists=model_exists, identify=identify)


def check_text(
    text: str,
    *,
    file: str,
    model_exists: Callable[[str], bool] | None = None,
    identify: Identify | None = None,
) -> list[Diagnostic]:
    """Return the same as ``check_file``, for contents that need not be in ``file`` yet."""
    _, report = _compile(text, file, model_exists or _is_folder, identify)
    return [*report.errors, *report.warnings]


def read_text(path: Path | str) -> str:
    """Read the text of a policy file.

    Raises:
        InvalidPolicyError: it is no regular file, cannot be read, is too large, or is not UTF-8.
    """
    try:
        return _file_bytes(path).decode("utf-8-sig")
    except OSError as error:
        message, remedy = f"cannot be read: {error.strerror or 'no file'}", "fix the path or its permissions"
    except UnfitFileError as error:
        message, remedy = str(error), "give it an ordinary file, of text alone"
    except UnicodeDecodeError as error:
        message, remedy = f"byte {error.start} is not UTF-8", "save the file as UTF-8"
    raise InvalidPolicyError([Diagnostic(Severity.ERROR, str(path), 1, "(file)", message, remedy)])


def _file_bytes(path: Path | str) -> bytes:
    content = read_start(path, MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UnfitFileError(f"the file is larger than {MAX_BYTES >> 20} MiB")
    return content


def version_of(text: str, records: Contents | None = None) -> str:
    """Return the version of a policy.

    It is the first 12 hex digits of the SHA-256 of its text and its threshold records.
    """
    digest = hashlib.sha256(text.encode())
    for name, content in (records or {}).items():
        part = content if isinstance(content, bytes) else b"unread"
        digest.update(b"\0".join((b"", name.encode(), hashlib.sha256(part).digest())))
    return digest.hexdigest()[:12]


def version_now(path: Path) -> str:
    """Return the version that the file at ``path`` would have if it were loaded now.

    Raises:
        InvalidPolicyError: the file cannot be read.
    """
    text = read_text(path)
    # Asked every few seconds; most policies name no record and need no parsing here.
    named = "calibration" in text or "fusion" in text
    data = read_document(text, file=str(path)).data if named else None
    return version_of(text, record_contents(data or {}, path.parent))


def _model_spec(entry: ModelEntry) -> ModelSpec:
    return ModelSpec(
        base_url=entry.base_url.rstrip("/") if entry.base_url else None,
        price=Price(entry.price.input, entry.price.output) if entry.price else None,
        **entry.model_dump(exclude={"base_url", "price"}, exclude_none=True),
    )


def _has_host(url: str) -> bool:
    try:
        split = urlsplit(url)
        return bool(split.hostname) and url.isprintable() and split.port != 0
    except ValueError:  # a bracket that is not closed, a port that is no number
        return False


def _is_folder(model_id: str) -> bool:
    return os.path.isdir(model_id)  # noqa: PTH112 - Path.is_dir raises where a name is too long


def _compile(
    text: str,
    file: str,
    model_exists: Callable[[str], bool],
    identify: Identify | None,
    *,
    use_records: bool = True,
    use_fusion: bool = True,
) -> tuple[Policy | None, Report]:
    document = read_document(text, file=file)
    policy = None
    if document.data is not None:
        try:
            policy = _compile_document(
                document, text, model_exists, identify, use_records=use_records, use_fusion=use_fusion
            )
        except Exception as error:  # noqa: BLE001 - the stage border: no file may end the process
            # The type alone: the error's message may hold anything.
            message = f"could not be read ({type(error).__name__} in TruthLens)"
            remedy = "undo the last edit, and report it with the file: this is a bug"
            document.report.error((), message, remedy)
    return policy, document.report


def _compile_document(
    document: Document,
    text: str,
    model_exists: Callable[[str], bool],
    identify: Identify | None,
    *,
    use_records: bool,
    use_fusion: bool,
) -> Policy | None:
    assert document.data is not None
    report, file = document.report, document.report.file
    try:
        AgenticSettings()
    except pydantic.ValidationError as error:
        # Its defaults come from the environment.
        for each in error.errors():
            name = each["loc"][0]
            remedy = f"correct or remove the variable {VARIABLES.get(str(name), '')}, where TruthLens runs"
            report.error((), f"the default of agentic.{name} cannot be used: {each['msg']}", remedy)
        return None
    shaped = shape(document)
    records = record_contents(document.data, Path(file).parent)

    @functools.cache
    def calibrations() -> Calibrations | None:
        from truthlens.policy.plans.threshold_record import Calibrations

        return Calibrations(report, records, identify) if use_records else None

    @functools.cache
    def fusions() -> Fusions | None:
        from truthlens.policy.plans.fusion_record import Fusions

        return Fusions(report, records, identify) if use_fusion else None

    compiler = _Compiler(shaped, report, model_exists, calibrations, fusions)
    policy = compiler.policy(version_of(text, records))
    return None if report.errors else replace(policy, warnings=report.warnings)


@dataclass(frozen=True, slots=True)
class _Compiler:
    shaped: Shaped
    report: Report
    model_exists: Callable[[str], bool]
    calibrations: Callable[[], Calibrations | None]
    fusions: Callable[[], Fusions | None]

    def policy(self, version: str) -> Policy:
        file = self.shaped.file
        meanings = compile_signals(file, self.report, complete="signals" not in self.shaped.damaged)
        models = self._models(file)
        sources = self._sources(file, meanings.signals)
        builder = PlanBuilder(
            self.report, self.model_exists, models, self.calibrations, self.fusions, sources
        )
        base = Plan(DEFAULT_DECISION, policy_version=version)
        base = replace(base, detectors=builder.detectors(base, file.detectors, ()))
        default = builder.build(base, file.hallucination, ("hallucination",))
        placed = [
            self._decision(builder, meanings, default, section, index)
            for section, index in zip(file.decisions, self.shaped.indexes, strict=True)
        ]
        self._refuse_doubled_names(placed)
        placed.sort(key=lambda item: -item.decision.priority)
        lint(placed, default, meanings.signals, self.report)
        return Policy(
            file=self.report.file,
            version=version,
            decisions=tuple(replace(item.decision, plan=item.decision.plan.in_shadow()) for item in placed),
            default=default.in_shadow(),
            default_may_be_chosen=bool(file.hallucination.client_may_choose),
            signals=meanings.signals,
            limits=file.limits,
            telemetry=file.telemetry,
            cache=file.cache,
            review=review_settings(file, [default, *(item.decision.plan for item in placed)], self.report),
            models=models,
            sources=sources,
            places=self._places(placed),
        )

    def _places(self, placed: Sequence[PlacedDecision]) -> dict[tuple[str, str], tuple[int, str]]:
        paths: dict[tuple[str, str], KeyPath] = {("decision", DEFAULT_DECISION): ("hallucination",)}
        paths |= {("decision", item.decision.plan.decision): item.path for item in placed}
        models = enumerate(self.shaped.file.models or ())
        paths |= {("model", model.name): ("models", index) for index, model in models}
        return {what: (self.report.line(path), render_path(path)) for what, path in paths.items()}

    def _models(self, file: PolicyFile) -> Mapping[str, ModelSpec] | None:
        if file.models is None or "models" in self.shaped.damaged:
            return None
        found: dict[str, ModelSpec] = {}
        for index, model in enumerate(file.models):
            if model.name in found:
                path = ("models", index, "name")
                self.report.error(path, f"the model {model.name!r} is written twice", "keep one")
            if model.base_url is not None and not _has_host(model.base_url):
                message = f"{model.base_url[:200]!r} is no URL of a host"
                self.report.error(("models", index, "base_url"), message, "write http(s)://HOST[:PORT]/v1")
            found[model.name] = _model_spec(model)
        return MappingProxyType(found)

    def _sources(self, file: PolicyFile, signals: Signals) -> Mapping[str, SourceSpec]:
        found: dict[str, SourceSpec] = {}
        for index, entry in enumerate(file.sources):
            place: KeyPath = ("sources", index)
            types = source_types()
            if entry.name in found:
                self.report.error((*place, "name"), f"the source {entry.name!r} is written twice", "keep one")
            if entry.type not in types:
                remedy = suggest(
                    entry.type, sorted(types), otherwise=f"available: {', '.join(sorted(types))}"
                )
                self.report.error((*place, "type"), f"there is no source of type {entry.type!r}", remedy)
                continue
            noun, own = f"the source of type '{entry.type}'", ("name", "type")
            written = entry.model_extra or {}
            options = read_options(
                types[entry.type].options, written, place, self.report, noun=noun, name=entry.type, own=own
            )
            if options is not None:
                self._check_borders(types[entry.type], options, place)
                if what := types[entry.type].missing(options, Path(self.report.file).parent):
                    self.report.warn(
                        place,
                        f"{what}: where it is missing, truthlens serve does not start",
                        "make it, or name another",
                    )
            if options is not None and "trusted_headers" not in self.shaped.damaged:
                warn_of_filters(options.filter, (*place, "filter"), signals, self.report)
            found[entry.name] = SourceSpec(entry.name, entry.type, options)
        return MappingProxyType(found)

    def _check_borders(self, declared: SourceType, options: SourceOptions, place: KeyPath) -> None:
        """Report options that would keep tenants apart and that the type of a source does not heed."""
        if options.filter and not declared.filters:
            self.report.error(
                (*place, "filter"),
                f"a source of type {declared.name!r} cannot filter: every exchange would search all of it",
                "remove filter, or use a source that filters",
            )
        if options.auth == "passthrough" and not declared.passes_authorization:
            self.report.error(
                (*place, "auth"),
                f"a source of type {declared.name!r} does not send on a client's Authorization",
                "remove auth; a source can have a key of its own",
            )

    def _decision(
        self,
        builder: PlanBuilder,
        meanings: Meanings,
        default: Plan,
        section: DecisionSection,
        index: int,
    ) -> PlacedDecision:
        path: KeyPath = ("decisions", index)
        for number, reference in enumerate(section.model_refs):
            builder.check_model(reference.model, (*path, "modelRefs", number, "model"))
        named = replace(
            default,
            decision=section.name,
            model_refs=tuple(reference.model for reference in section.model_refs),
        )
        keys, keys_path = self._configuration(section, path)
        plan = builder.build(named, keys, keys_path)
        may_choose = keys.client_may_choose
        if may_choose is None:
            may_choose = bool(self.shaped.file.hallucination.client_may_choose)
        rule = self._rule(section.rules, (*path, "rules"), meanings)
        return PlacedDecision(Decision(plan, section.priority, rule, may_choose), path)

    def _configuration(self, section: DecisionSection, path: KeyPath) -> tuple[Behaviour, KeyPath]:
        found: tuple[Behaviour, KeyPath] | None = None
        for index, plugin in enumerate(section.plugins):
            place = (*path, "plugins", index)
            if not isinstance(plugin, HallucinationPlugin):
                self.report.warn(
                    (*place, "type"),
                    f"plugins of type {plugin.type!r} are not for TruthLens and are ignored",
                    "leave it for the router that reads it, or remove it",
                )
            elif found is not None:
                message = "the decision has a second plugin of type hallucination"
                self.report.error(place, message, "put all keys into one configuration")
            else:
                found = (plugin.configuration, (*place, "configuration"))
        return found or (Behaviour(), path)

    def _rule(self, rule: Group | Condition, path: KeyPath, meanings: Meanings) -> Rule:
        if isinstance(rule, Condition):
            atom = Atom(ConditionType(rule.type), rule.name)
            meanings.check(atom, (*path, "name"), self.report)
            return atom
        rules = tuple(
            self._rule(inner, (*path, "conditions", index), meanings)
            for index, inner in enumerate(rule.conditions)
        )
        match rule.operator:
            case "AND":
                return All(rules)
            case "OR":
                return Any(rules)
            case "NOT":
                if len(rules) != 1:
                    message = f"NOT takes exactly one condition, found {len(rules)}"
                    self.report.error((*path, "conditions"), message, "wrap them in an OR or AND inside NOT")
                return Not(rules[0] if len(rules) == 1 else Any(rules))

    def _refuse_doubled_names(self, placed: Sequence[PlacedDecision]) -> None:
        first: dict[str, KeyPath] = {}
        for item in placed:
            name, path = item.decision.plan.decision, (*item.path, "name")
            if name == DEFAULT_DECISION:
                message = f"the name {name!r} is taken by the plan of `hallucination`"
                self.report.error(path, message, "choose another name")
            elif name in first:
                line = self.report.line(first[name])
                self.report.error(
                    path, f"the name {name!r} is already used on line {line}", "choose another name"
                )
            first.setdefault(name, path)
