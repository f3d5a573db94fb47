"""Cedar behind the kernel's port for foreign policy engines: any error, any doubt, denies."""

import json
from collections.abc import Mapping
from typing import Any

import cedarpy

from engine.cedar.export import action
from nanovm_core.conditions import parse
from nanovm_core.core.authority.policy import HOLD, Outcome, PolicyRule, unallowed
from nanovm_core.core.canonical import digest
from nanovm_core.errors import ProgramError, RefusedError

_ALWAYS = parse("1 == 1")  # a hold that Cedar found has no condition of ours to show


class CedarDecider:
    """Cedar policies as a Decider of the kernel; a ``forbid`` with ``@outcome("hold")`` holds.

    Every policy bears ``@id`` and ``@why``, and every one fits the schema, else it does not
    load. Cedar skips a policy that errs; here its error denies.
    """

    def __init__(self, source: str, schema: str) -> None:
        """Load, or say why not.

        Raises:
            ProgramError: PRG-003, with what Cedar says of the policies or the schema.
        """
        try:
            found = cedarpy.validate_policies(source, schema)
            if not found.validation_passed:
                raise ProgramError("PRG-003", "; ".join(str(each) for each in found.errors))
            self._policies = cedarpy.PolicySet.from_str(source)
            self._schema = cedarpy.Schema.from_str(schema)
        except ValueError as error:
            raise ProgramError("PRG-003", f"Cedar cannot read this: {error}") from error
        self._entities = cedarpy.Entities.from_json_str("[]")
        found = json.loads(cedarpy.policies_to_json_str(source))["staticPolicies"]
        # Cedar numbers policies without a name of their own in the order of the text.
        in_order = sorted(found, key=lambda name: int(name.removeprefix("policy")))
        self._rules = {name: _rule(name, found[name]) for name in in_order}
        parts = (json.dumps(text).encode() for text in (source, schema))
        self.hash = digest(b"nanovm/cedar/v1\0", b"\0".join(parts))

    @property
    def approvable(self) -> frozenset[str]:
        """The ids of its holds that a person may lift."""
        return frozenset(rule.id for rule in self._rules.values() if rule.approvable)

    def judge(self, at: str, context: Mapping[str, object], approved: tuple[str, ...]) -> Outcome:
        """Ask Cedar, believe only a whole answer, and put its reasons in the order of the text."""
        request = {
            "principal": {"type": "Agent", "id": "self"},
            "action": {"type": "Action", "id": action(at, str(context.get("tool", "")))},
            "resource": {"type": "Workspace", "id": "own"},
            "context": _plain(context),
        }
        answer = cedarpy.is_authorized(request, self._policies, self._entities, self._schema)
        if answer.diagnostics.errors or answer.decision is cedarpy.Decision.NoDecision:
            raise RefusedError(
                "POL-002", "Cedar could not evaluate every policy, so the call is denied."
            )
        reasons = set(answer.diagnostics.reasons)
        fired = [rule for name, rule in self._rules.items() if name in reasons]
        return _outcome(fired, approved, at)


def _outcome(fired: list[PolicyRule], approved: tuple[str, ...], at: str) -> Outcome:
    """Deny over hold over allow, as the kernel's own rules have it."""
    for rule in fired:
        if rule.outcome == "deny":
            raise RefusedError("POL-003", f"{rule.why} (rule {rule.id})")
    for rule in fired:
        if rule.outcome == HOLD and not (rule.approvable and rule.id in approved):
            return Outcome(rules=(rule.id,), hold=rule)
    if not fired:
        raise unallowed(at)
    return Outcome(rules=tuple(rule.id for rule in fired))


def _rule(name: str, policy: Mapping[str, Any]) -> PolicyRule:
    notes = policy.get("annotations", {})
    if not notes.get("id") or not notes.get("why"):
        raise ProgramError("PRG-003", f"Cedar's {name} needs an @id and a @why.")
    effect = "allow" if policy["effect"] == "permit" else notes.get("outcome", "deny")
    if effect not in ("allow", "hold", "deny"):
        raise ProgramError("PRG-003", f'{notes["id"]}: @outcome is "hold" or "deny".')
    return PolicyRule(
        id=notes["id"],
        at="authorize",
        outcome=effect,
        when=_ALWAYS,
        why=notes["why"],
        approvable=notes.get("approvable") == "true",
    )


def _plain(value: object) -> Any:
    """A context as JSON has it; a value that Cedar cannot hold makes it answer nothing."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value
