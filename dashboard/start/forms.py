"""The form for a new run: a sample or an upload, a model, an advisor, a card, a pace."""

from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

import samples
from dashboard.start import sample_files
from dashboard.verdicts import plans
from dashboard.verdicts.cards import INJECTORS
from engine.queries import secrets
from engine.queries.runs import RunHead
from nanovm_core.core.proposals import PROPOSAL_BYTES_MAX
from nanovm_core.errors import VerificationError
from pipeline.steps import advise
from pipeline.steps.propose import model_adapters

MODELS = (
    ("faithful", "Faithful", "Deterministic: proposes what the invoice says."),
    ("gullible", "Gullible", "A rule-based stand-in that obeys instructions it finds in the text."),
    ("compromised", "Compromised", "Proposes what you type below: the attacker owns the model."),
)
ENDPOINT = (
    model_adapters.ENDPOINT,
    "Configured endpoint",
    "A real model, asked over its API: it is sent the projected invoice, which leaves this app.",
)
ADVISORS = (
    (advise.NONE, "None", "Nobody is asked."),
    ("heuristic", "Heuristic", "Rules, no AI: looks for words that press or instruct."),
    ("asleep", "Asleep", "Gives no answer, which counts as the highest risk."),
    ("babbling", "Babbling", "Answers with no score, which counts as the highest risk."),
    ("bribed", "Bribed", "Always says that there is no risk; the heuristic still counts."),
    (
        advise.ENDPOINT,
        "Configured endpoint",
        f"A real model, asked where the heuristic says {advise.ASKED_FROM} or more: it is sent the "
        "projected invoice, which leaves this app.",
    ),
)
CARDS = (
    ("pm_card_visa", "Succeeds"),
    ("pm_card_chargeDeclined", "Is declined"),
    ("pm_card_chargeDeclinedInsufficientFunds", "Has insufficient funds"),
    ("pm_card_authenticationRequired", "Asks for authentication"),
    ("pm_usBankAccount_processing", "Is a US bank debit (US dollars alone)"),
)
PACES = (
    ("real", "Real", "As fast as it goes.", 0),
    ("slow", "Slow", "A pause before each step, to watch and to attack.", 1500),
    ("step", "Step by step", "Pauses before every step; you press Next.", 0),
)
PLANTED = """{
  "tool": "wire_transfer",
  "args": {"amount": 50000, "currency": "USD", "to": "attacker"}
}"""


def advisors() -> tuple[tuple[str, str, str], ...]:
    """The advisors that a visitor may choose: the endpoint too, where the settings name one."""
    return tuple(each for each in ADVISORS if each[0] in advise.offered())


def models() -> tuple[tuple[str, str, str], ...]:
    """The models that a visitor may choose: the endpoint too, where the settings name one."""
    offered = model_adapters.offered()
    return tuple(model for model in (*MODELS, ENDPOINT) if model[0] in offered)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedRun:
    """What the form asks for, checked."""

    document: bytes
    file_name: str
    model: str = "faithful"
    advisor: str = advise.NONE
    proposal: bytes = b""
    payment_method: str = CARDS[0][0]
    pace_ms: int = 0
    stepping: bool = False
    hold: bool = False  # stay READY until the visitor presses Start
    plan: tuple[str, int] | None = None  # an injector, and the step at which it fires by itself
    text_accepted: bool = False  # the visitor wrote the document


FILES_MAX = 20  # of one form: as many runs as a workspace may start at once


class NewRunForm(forms.Form):
    """Checks what was sent; a bad document is no error here, its run says what is wrong."""

    sample = forms.CharField(required=False)
    document = forms.FileField(required=False, allow_empty_file=True, max_length=255)
    model = forms.ChoiceField(choices=lambda: [(m[0], m[1]) for m in models()])
    advisor = forms.ChoiceField(choices=lambda: [(a[0], a[1]) for a in advisors()], required=False)
    proposal = forms.CharField(required=False, strip=False)
    payment_method = forms.ChoiceField(choices=CARDS)
    pace = forms.ChoiceField(choices=[(p[0], p[1]) for p in PACES])
    hold = forms.BooleanField(required=False)
    plan_attack = forms.ChoiceField(
        choices=[("", "None"), *((name, name) for name in INJECTORS)], required=False
    )
    plan_step = forms.ChoiceField(
        choices=[(str(number), name) for number, name in plans.CHOICES], required=False
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        known = {each.name for each in samples.SAMPLES}
        if not data.get("document") and data.get("sample") not in known:
            self.add_error("sample", "Choose a sample or upload an invoice of your own.")
        if len(self.files.getlist("document")) > FILES_MAX:
            self.add_error("document", f"Choose up to {FILES_MAX} files; nothing was started.")
        proposal = data.get("proposal")  # None: it is at fault already
        if proposal is not None and len(proposal.encode()) > PROPOSAL_BYTES_MAX:
            self.add_error("proposal", f"A proposal may have up to {PROPOSAL_BYTES_MAX:,} bytes.")
        elif proposal is not None and data.get("model") == "compromised" and not proposal.strip():
            self.add_error("proposal", "Type what the compromised model proposes.")
        if data.get("plan_attack") and plans.why_not():
            self.add_error("plan_attack", plans.why_not())
        if data.get("plan_attack") and not data.get("plan_step") and "plan_step" not in self.errors:
            self.add_error("plan_step", "Choose the step at which it fires.")
        return data

    def wanted(self) -> list[RequestedRun]:
        """The checked values, one for each uploaded file; those go before a chosen sample."""
        data = self.cleaned_data
        uploads: list[UploadedFile[bytes]] = self.files.getlist("document")
        given = [
            {"document": each.read(), "file_name": each.name or "document.pdf"} for each in uploads
        ]
        if not given:
            given = [_input(next(each for each in samples.SAMPLES if each.name == data["sample"]))]
        one = RequestedRun(
            **given[0],
            model=data["model"],
            advisor=data["advisor"] or advise.NONE,
            proposal=data["proposal"].encode() if data["model"] == "compromised" else b"",
            payment_method=data["payment_method"],
            pace_ms=next(pace[3] for pace in PACES if pace[0] == data["pace"]),
            stepping=data["pace"] == "step",
            hold=data["hold"],
            plan=(data["plan_attack"], int(data["plan_step"])) if data["plan_attack"] else None,
        )
        return [replace(one, **each) for each in given]


def demo() -> RequestedRun:
    """What "Run the demo" runs: a poisoned invoice and a model that obeys it, step by step."""
    poisoned = next(sample for sample in samples.SAMPLES if sample.name == "injected")
    return RequestedRun(**_input(poisoned), model="gullible", stepping=True)


def sample_run() -> RequestedRun:
    """The first sample, faithfully and slowly enough to watch."""
    return RequestedRun(**_input(samples.SAMPLES[0]), pace_ms=PACES[1][3])


def repeated(run: RunHead) -> RequestedRun | None:
    """The input of a run, to repeat it; None where it can no longer be read.

    A sample gets another number; an uploaded document stays as it is, and is a duplicate.

    A damaged record may not name its card any more: then it is the first one.
    """
    try:
        given = secrets.open_inputs(run, ("document", "file_name", "planted"))
    except VerificationError:
        return None
    document, name = given.get("document"), given.get("file_name")
    if document is None or name is None or run.model not in model_adapters.offered():
        return None
    advisor = str(run.slots.get("advisor", advise.NONE))
    return RequestedRun(
        document=sample_files.repeated_input(document),
        file_name=name.decode("utf-8", "replace"),
        model=run.model,
        advisor=advisor if advisor in advise.offered() else advise.NONE,
        proposal=given.get("planted") or b"",
        payment_method=str(run.slots.get("payment_method", CARDS[0][0])),
        pace_ms=run.pace_ms,
        stepping=run.stepping,
        text_accepted=run.slots.get("text_accepted") is True,
    )


def _input(sample: samples.Sample) -> dict[str, Any]:
    return {"document": sample_files.sample(sample.name), "file_name": sample.file}
