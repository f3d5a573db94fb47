"""The rules as one list: by family, and found by code or by words."""

from dataclasses import astuple

from pipeline.steps.reasons import REASONS, RULES, Rule

FAMILIES = {"PRG": "Program", "FSM": "Transition", "CAP": "Capability", "POL": "Policy",
            "BUD": "Budget", "LOG": "Integrity of the record", "PII": "Vault", "DOC": "Document",
            "SUP": "Supplier register", "STR": "Stripe", "MDL": "Model", "AGT": "Agent",
            "HLD": "Value given by a person", "CAN": "Canonical form", "CON": "Condition language",
            "GAT": "Gate", "RUN": "Run", "ADV": "Remittance advice"}  # fmt: skip


def family_of(code: str) -> str:
    """What the first letters of a code stand for."""
    return FAMILIES.get(code[:3], "Other")


def found(sought: str = "") -> dict[str, list[Rule]]:
    """The rules by family, in the order of their codes; with ``sought``, those with all its words.

    A word may be any part of the code, which is also found without its dash, or of the rule's
    sentences, in either case.
    """
    words, families = sought.casefold().split(), dict[str, list[Rule]]()
    for code, rule in sorted({**RULES, **REASONS}.items()):
        text = " ".join((*astuple(rule), code.replace("-", ""))).casefold()
        if all(word in text for word in words):
            families.setdefault(family_of(code), []).append(rule)
    return families
