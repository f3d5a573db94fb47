"""The text of a planned attack: sealed until the attack is fired, then destroyed.

It is no secret of the run's record yet, so that no envelope commits to it. Its key belongs to the
run, and dies with the run's other keys if the run is erased.
"""

import json
from collections.abc import Mapping

from nanovm_core.core import vault
from nanovm_core.errors import VerificationError
from pipeline.entropy import random_bytes, uuid4
from pipeline.privacy import journal
from pipeline.vault.key_store import keystore
from sabotage.models import Plan


def seal(plan: Plan, words: Mapping[str, str]) -> None:
    """Put words into a plan that is not stored yet; nothing, where there are none."""
    if not words:
        return
    plan.words_ref = f"{vault.PREFIX}{uuid4()}"
    key = keystore().new_keys(str(plan.run_id), [plan.words_ref])[plan.words_ref]
    plain = json.dumps(words).encode()
    plan.words = vault.seal(key, random_bytes(vault.NONCE_BYTES), plain, bound_to=plan.words_ref)


def opened(plan: Plan) -> dict[str, str] | None:
    """The words of a plan; None where they were destroyed or changed."""
    if not plan.words_ref:
        return {}
    try:
        key = keystore().keys([plan.words_ref]).get(plan.words_ref)
        if key is None or plan.words is None:
            return None
        plain = vault.unseal(key, bytes(plan.words), bound_to=plan.words_ref)
    except VerificationError:
        return None
    words: dict[str, str] = json.loads(plain)
    return words


def destroy(plan: Plan) -> None:
    """Destroy the key, without which no copy of the words says anything.

    The erasure journal knows of it first: ``restore`` destroys a key again that a backup had.
    """
    if plan.words_ref:
        journal.record([plan.words_ref])
        keystore().destroy([plan.words_ref])
