"""The policy: a YAML file to compiled plans, and the choice of one for each exchange.

``compile`` makes a ``Policy`` of a file, ``policy`` chooses, ``watch`` follows the file. Nothing here looks
at answers or evidence, or carries anything out.
"""

from truthlens.core.limits import Limits
from truthlens.policy.compile import check_file, compile_policy, load_policy
from truthlens.policy.policy import Decision, EarlyPlans, Policy, PolicyHolder
from truthlens.policy.schema import Telemetry, json_schema
from truthlens.yamlfile.diagnostics import Diagnostic, InvalidPolicyError, Severity

__all__ = [
    "Decision",
    "Diagnostic",
    "EarlyPlans",
    "InvalidPolicyError",
    "Limits",
    "Policy",
    "PolicyHolder",
    "Severity",
    "Telemetry",
    "check_file",
    "compile_policy",
    "json_schema",
    "load_policy",
]
