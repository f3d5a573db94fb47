"""Proposals by the thousand: what models, attackers and broken encoders might say, from a seed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from hypothesis import strategies as st

from nanovm_core.core.messages import Scalar
from tests.core.kit.builders import ROOT, proposal, ref

ATTACKS = ROOT.parent / "shared/data/attacks/proposals.jsonl"
PAY = "stripe.create_payment_intent"
TOOLS = (
    PAY, "stripe.create_payment_intent ", "Stripe.create_payment_intent", "wire_transfer",
    "notify.send_email", "stripe.create_payment_intеnt", "model.propose", "", "vault.split",
)  # fmt: skip
NAMES = ("amount_minor", "currency", "payee", "memo", "to", "amount", "Currency", "payment_method",
         "idempotency_key", "amount_minor ", "__proto__", "payeе")  # fmt: skip
VALUES: Sequence[object] = (
    128_450, 128_451, 128_449, -128_450, 0, 1, 2_000_000, 10**12, 2**53, 10**400, 128_450.0,
    "128450", True, None, "EUR", "eur", "EUR ", "USD", "ＥＵＲ", "attacker", "\u202eRUE",
    "{{payee}}", "{{memo}}", "{{notes}}", "{{x}}", "{{payee}} ", ref(103), ref(104), ref(999),
    "vault://secret/x", [], {}, [128_450], {"v": 128_450}, "x" * 9_000,
)  # fmt: skip
PIECES = (
    b'"amount_minor": 128450,', b'"currency": "EUR",', b'"tool": "wire_transfer",', b"1e400",
    b"-0", b"NaN", b"[" * 70, b"{" * 2_000, b"\xff\xfe", b"\xef\xbb\xbf", b"\x00", b"}{", b",",
    b"\\ud800", b"128450.0", b"0x1F5C2", b" ", b"\r\n", b"/**/", b'"urgent": true,',
)  # fmt: skip
SPELLINGS = (PAY, TOOLS[3], TOOLS[4])


def structured() -> st.SearchStrategy[bytes]:
    """Calls that look like calls: any tool, any names, values near the right ones."""
    leaf = st.sampled_from(VALUES) | st.integers() | st.text(max_size=20)
    value = st.recursive(
        leaf,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
        max_leaves=6,
    )
    args = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=8), value, max_size=6)
    call = st.fixed_dictionaries(
        {"tool": st.sampled_from(TOOLS) | st.text(max_size=20), "args": args}
    )
    near = st.fixed_dictionaries(
        {"amount_minor": leaf, "currency": leaf, "payee": leaf, "memo": leaf}
    ).map(lambda given: {"tool": PAY, "args": given})
    return st.one_of(call, near, value).map(lambda each: json.dumps(each).encode("utf-8"))


def anything() -> st.SearchStrategy[bytes]:
    """Calls, and bytes that are none."""
    return st.one_of(structured(), st.binary(max_size=300), st.text(max_size=200).map(str.encode))


def recorded() -> list[bytes]:
    """What models were seen to propose under attack, both as it was and as it would fit here."""
    with ATTACKS.open("rb") as lines:
        rows = [json.loads(line) for line in lines]
    return [json.dumps(row[name]).encode() for row in rows for name in ("proposal", "original")]


def changed(dice: Random, seeds: Sequence[bytes], facts: Mapping[str, Scalar]) -> Iterator[bytes]:
    """Endless variations: of the faithful call, and of these seeds."""
    while True:
        faithful = proposal(amount_minor=facts["amount_minor"], currency=facts["currency"])
        raw = dice.choice(seeds) if seeds and dice.random() < 0.4 else faithful
        way = dice.randrange(6)
        if way == 0:
            yield raw
        elif way == 1:
            yield _near(dice, facts)
        else:
            yield _torn(dice, raw, times=way - 1)


def _near(dice: Random, facts: Mapping[str, Scalar]) -> bytes:
    """The faithful call with an argument or two exchanged, added or left out."""
    args: dict[str, object] = {**facts, "payee": "{{payee}}", "memo": "{{memo}}"}
    for _ in range(dice.randint(0, 2)):
        args[dice.choice(NAMES)] = dice.choice(VALUES)
        if dice.random() < 0.2:
            args.pop(dice.choice(list(args)))
    return json.dumps({"tool": dice.choice(SPELLINGS), "args": args}).encode()


def _torn(dice: Random, raw: bytes, times: int) -> bytes:
    """The bytes with some of them exchanged, cut out, doubled, or another's piece put in."""
    for _ in range(times):
        at = dice.randrange(len(raw) + 1)
        end = min(len(raw), at + dice.randint(0, 12))
        piece = dice.choice(PIECES)
        raw = dice.choice((
            raw[:at] + bytes([dice.randrange(256)]) + raw[at + 1 :],
            raw[:at] + raw[end:],
            raw[:end] + raw[at:],
            raw[:at] + piece + raw[at:],
            piece + raw,
        ))  # fmt: skip
    return raw


def meant(raw: bytes) -> dict[str, object] | None:
    """What a strict reader makes of the bytes, with Python's own parser; None where nothing.

    A second opinion: none of the kernel's readers is asked.
    """

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len({name for name, _ in pairs}) != len(pairs):
            raise ValueError("a key twice")
        return dict(pairs)

    try:
        read = json.loads(raw.decode("utf-8"), object_pairs_hook=once, parse_constant=_no)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _no(text: str) -> object:
    raise ValueError(text)


def is_due(raw: bytes, slots: Mapping[str, Scalar]) -> bool:
    """Whether the bytes ask for the invoice's own payment, argument by argument, and no more."""
    read = meant(raw)
    if read is None or set(read) != {"tool", "args"} or read["tool"] != PAY:
        return False
    args = read["args"]
    if not isinstance(args, dict) or set(args) != {"amount_minor", "currency", "payee", "memo"}:
        return False
    return (
        type(args["amount_minor"]) is int
        and args["amount_minor"] == slots["amount_minor"]
        and args["currency"] == slots["currency"]
        and all(args[name] in (slots[name], f"{{{{{name}}}}}") for name in ("payee", "memo"))
    )


def needs_nobody(slots: Mapping[str, Scalar]) -> bool:
    """Whether the default policy pays such an invoice without a person."""
    listed = slots["currency"] in ("EUR", "USD", "GBP", "CHF")
    return listed and 0 < int(slots["amount_minor"]) <= 1_000_000
