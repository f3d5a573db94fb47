"""Every code that a step of the pipeline can fail with, in the shape of the kernel's rules."""

from collections.abc import Mapping
from types import MappingProxyType

from nanovm_core.rules import Rule, catalogue
from pipeline.steps.extract import REASONS as DOCUMENT_REASONS

SHELL = catalogue(
    (
        "STR-001",
        "The card was declined",
        "Stripe's answer is final for this attempt; nothing was paid.",
    ),
    (
        "STR-002",
        "The card asks for its owner's authentication",
        "No person sits at this card; a payment that needs one fails and nothing was paid.",
    ),
    (
        "STR-003",
        "Stripe refused the request",
        "The request itself was not accepted; nothing was paid.",
    ),
    (
        "STR-004",
        "Nobody can tell whether the payment happened",
        "Paying again under another key could pay twice; so a person decides.",
    ),
    (
        "STR-005",
        "Stripe's answer is not the payment that was authorized",
        "Amount, currency, run, key and payment method must come back as they were sent; else a"
        " person decides.",
    ),
    (
        "STR-006",
        "An earlier attempt was a payment after all",
        "An attempt that was known to have failed stands as paid at Stripe; so a person decides.",
    ),
    (
        "STR-007",
        "Stripe could not be reached",
        "No connection was made, or Stripe was too busy to begin: this try did nothing.",
    ),
    (
        "MDL-001",
        "The model gave no answer",
        "A model that cannot be asked has proposed nothing.",
    ),
    (
        "MDL-002",
        "The model's endpoint answered with no completion",
        "What cannot be found is not searched for: no answer is made out of a broken one.",
    ),
    (
        "RUN-001",
        "A step of the pipeline broke",
        "An error that the code does not know by name ends the run instead of being guessed at.",
    ),
    (
        "RUN-002",
        "The machine did not let the document be read",
        "The process that reads PDFs was killed from outside, as when memory runs out, or could not"
        " start. The document is not at fault: look at the machine, then run it again.",
    ),
)

REASONS: Mapping[str, Rule] = MappingProxyType(
    {
        **SHELL,
        **{
            code: Rule(
                code=code,
                title=text.partition(". ")[0],
                why=text.partition(". ")[2] or "What cannot be read with certainty is not paid.",
            )
            for code, text in DOCUMENT_REASONS.items()
        },
    }
)
