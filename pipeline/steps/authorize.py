"""Step 5: the kernel alone decides; here is what the shell adds to its decision.

``nanovm_core.core.gate`` judges the proposed call: schema, capability, policy, provenance of the
critical arguments, budgets. ``nanovm_core.core.fsm`` seals the verdict with the warrant that it
issues. The step is pure: it has no adapter, and no worker is asked.
"""

from nanovm_core.core import warrants
from pipeline.clock import now_ms
from pipeline.runtime import warrants as authority
from pipeline.steps.work import Work


def check_warrant(work: Work) -> None:
    """Hold the adapter of a granted tool to the decision: its warrant covers exactly this call.

    Raises:
        RefusedError: CAP-020 and following, where signature, call or time differ, or the grant
            was revoked since.
    """
    bound = warrants.binding(str(work.run.id), work.program.hash, work.effect)
    key, revoked = authority.public_key(), authority.revoked(work.run.workspace, work.program)
    warrants.check(work.token, bound, key, at_ms=now_ms(), revoked=revoked)
