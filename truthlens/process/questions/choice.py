"""Choose what a question may use: which sources are searched for whom, and which model is asked.

Sources with a ``filter`` hold what not everybody may read. In the gateway the values of their filters are
the operator's (trusted headers, the route). A question has none of these, so that only a reviewer may say
them, and nobody else's question reaches such a source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from types import MappingProxyType

from truthlens.core.errors import DialectError, TruthLensError
from truthlens.core.records.plan import Plan
from truthlens.core.records.retrieval import SourceSpec
from truthlens.core.registry import SourceOptions
from truthlens.mitigation.agentic.models import models_of
from truthlens.policy import Policy
from truthlens.process.access import AccessError, Role


class NotConfiguredError(TruthLensError):
    """The policy or the process lacks what a question needs; the message says what to configure."""


def scope_of(given: Mapping[str, str], role: Role) -> Mapping[str, str]:
    """Return what sources with a filter are searched for, names in lower case.

    Raises:
        AccessError: 403, somebody else than a reviewer gives it.
    """
    if given and role < Role.REVIEWER:
        raise AccessError(403, "scope: only a reviewer may say what sources are filtered by", "role_needed")
    return MappingProxyType({name.lower(): value for name, value in given.items()})


def sources_for(
    policy: Policy, named: Sequence[str] | None, scope: Mapping[str, str], role: Role
) -> Mapping[str, SourceSpec]:
    """Return the sources that are searched, by name: the named ones, or all that may be.

    Args:
        policy: the one in force.
        named: by the question; ``None`` for all that may be searched.
        scope: what filters are given.
        role: of whoever asks.

    Raises:
        AccessError: 403, a source has a filter, and somebody else than a reviewer asks.
        DialectError: there is no such source, or it cannot be searched with this scope.
    """
    known = policy.sources
    if named is None:
        usable = {name: spec for name, spec in known.items() if _refusal(spec, scope, role) is None}
        # Where there is none, the reason of the first will do.
        named = tuple(usable or known)
    for name in named:
        if name not in known:
            raise DialectError(f"sources: there is no source of that name; there are: {', '.join(known)}")
        if (error := _refusal(known[name], scope, role)) is not None:
            raise error
    return {name: known[name] for name in named}


def _refusal(spec: SourceSpec, scope: Mapping[str, str], role: Role) -> AccessError | DialectError | None:
    options: SourceOptions = spec.options
    if options.auth == "passthrough":
        return DialectError(
            f"sources: {spec.name} is searched with the rights of an exchange's client; a question has none"
        )
    if not options.filter:
        return None
    if role < Role.REVIEWER:
        message = f"sources: {spec.name} has a filter; only a reviewer may say what it is searched for"
        return AccessError(403, message, "role_needed")
    lacking = sorted(name for name in options.filter.values() if not scope.get(name.lower()))
    if lacking:
        return DialectError(f"scope: {spec.name} is filtered by {', '.join(lacking)}; give a value for each")
    return None


def model_for(policy: Policy, plan: Plan, named: str | None, *, reachable: Callable[[str], bool]) -> str:
    """Return the model that takes the steps that the plan names none for, ``""`` where it names one for each.

    Args:
        policy: the one in force.
        plan: whose settings of mode agentic hold.
        named: by the question.
        reachable: whether a model has an address and a key.

    Raises:
        DialectError: the policy has no such model, or has several and none is named.
        NotConfiguredError: a model of the run has no address or no key.
    """
    known = policy.models
    if named is not None and known is not None and named not in known:
        raise DialectError(f"model: the policy has no model of that name; it has: {', '.join(known)}")
    if named is None and known is not None and len(known) == 1:
        named = next(iter(known))
    used = astuple(models_of(plan.agentic, own=named or ""))
    if not all(used):
        has = f"; it has: {', '.join(known)}" if known else ""
        raise DialectError(
            f"model: name one, or let the operator write agentic.model_id into the policy{has}"
        )
    for name in sorted({*used, *plan.agentic.models}):
        if not reachable(name):
            # A name that the policy does not have is a client's text.
            is_ours = name != named or known is not None
            which = f"the model {name} of the policy" if is_ours else "a model without address"
            raise NotConfiguredError(
                f"{which} cannot be reached: give it a base_url under models, with its key in the variable "
                "of api_key_env, or start with --upstream"
            )
    return named or ""
