"""The refund desk: orders that are known, a model that proposes, a bank that keeps a book."""

import json
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings

from engine.application import Adapter, Application
from engine.entropy import uuid7
from engine.models import Run, Workspace
from engine.runtime.create_run import NewRun, make_run
from engine.work import Answer, Work, done
from nanovm_core.core.events import ProposalReceived
from nanovm_core.core.messages import Scalar

EXAMPLE = Path(__file__).parents[3] / "examples" / "refund_desk"
ORDERS: Mapping[str, Mapping[str, Scalar]] = {
    "A-1": {"paid_minor": 4_500, "currency": "EUR", "age_days": 3, "refunded": False},
    "A-2": {"paid_minor": 4_500, "currency": "EUR", "age_days": 3, "refunded": True},
    "A-3": {"paid_minor": 15_000, "currency": "EUR", "age_days": 2, "refunded": False},
}
TOOL = "refund.issue"


class RefundDesk(Application):
    """A customer's message becomes a refund, or an apology."""

    name = "refund_desk"
    program_file = EXAMPLE / "program.toml"
    policy_files = {"default": EXAMPLE / "policy.toml"}

    def adapters(self) -> Mapping[str, Adapter]:
        """The desk's tools."""
        return {
            "orders.look_up": lambda work: done(work, ORDERS[str(work.effect.args["order"])], {}),
            "model.ask": propose,
            TOOL: refund,
            "mail.apologise": lambda work: done(work, {}, {}),
        }


def propose(work: Work) -> Answer:
    """Propose to refund what was paid."""
    asked = {"order": work.slots["order"], "amount_minor": work.slots["paid_minor"]}
    call = {"tool": TOOL, "args": {**asked, "currency": work.slots["currency"]}}
    raw = json.dumps(call).encode()
    sealed = work.sealed({"proposal": raw})
    secret = sealed["proposal"].commitment
    event = ProposalReceived(raw=raw, secret=secret, key=work.effect.key, tokens=100)
    return Answer(event=event, secrets=tuple(sealed.values()))


def refund(work: Work) -> Answer:
    """Refund under the effect's key: the same key is the same refund."""
    file = book() / work.effect.key
    file.write_text(json.dumps(dict(work.effect.args)))
    return done(work, {"receipt": f"re_{work.effect.args['order']}"}, {})


def book() -> Path:
    """The bank's book: a file for each refund, by its key."""
    folder: Path = settings.NANOVM_DATA / "bank"
    folder.mkdir(exist_ok=True)
    return folder


def refunded() -> list[str]:
    """The orders in the bank's book."""
    return sorted(json.loads(each.read_text())["order"] for each in book().iterdir())


def asked(log: Workspace, order: str, starts: str = "desk") -> Run:
    """A run over a customer's message."""
    desk = RefundDesk()
    slots: dict[str, Scalar] = {
        "order": order,
        "message": "It broke.",
        "refunded": False,
        "signed_by": "",
    }
    new = NewRun(
        workspace=log,
        program=desk.source(),
        policy=desk.policy_source(),
        slots=slots,
        started_by=starts,
    )
    return make_run(new, uuid7()).run
