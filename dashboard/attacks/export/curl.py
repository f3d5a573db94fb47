"""The request that fired an attack, as a line of a shell's script that fires it again."""

import shlex
from collections.abc import Mapping
from urllib.parse import quote_plus

from django.conf import settings

from dashboard.arena import box
from dashboard.models import Entry
from dashboard.verdicts.cards import GoneError, words_of
from dashboard.web.workspace import COOKIE
from engine.queries.runs import RunHead
from sabotage.gallery import SCENARIOS
from sabotage.injectors import INJECTORS
from sabotage.kit.injector import Injector
from sabotage.models import Attack

VARIABLE = "NANOVM_WORKSPACE"
# A form has to bring one word twice, in a cookie and in a header: what another site's page
# cannot do. It is no secret of anybody, so that any word of this length serves.
CSRF_WORD = "0" * 32
NO_INJECTOR = "This release no longer has this attack, so the request cannot be repeated."
COMMENT = """\
# Fires {name} again. Prints the status and the address of the verdict.
# Set {variable} to the cookie {cookie} of the browser that owns this run.
# The cookie gives full access to the workspace, so it is not included here.
"""


def of_attack(attack: Attack, run: RunHead, origin: str) -> str:
    """The command, for a server at ``origin``.

    Raises:
        GoneError: something of the request is kept no more.
    """
    path, fields = request_of(attack, run)
    word = f"{settings.CSRF_COOKIE_NAME}={CSRF_WORD}"
    cookie = f"{COOKIE}=${{{VARIABLE}:?is not set}}"
    parts = [
        "curl -sS -o /dev/null -w '%{http_code} %{redirect_url}\\n'",
        f"--cookie \"{cookie}; {word}\" --header 'X-CSRFToken: {CSRF_WORD}'",
        # Over https a form must also say from which site it comes.
        *([f"--header {shlex.quote(f'Origin: {origin}')}"] if origin.startswith("https:") else []),
        *(_field(name, value) for name, value in fields.items()),
        shlex.quote(origin + path),
    ]
    said = COMMENT.format(name=attack.injector, variable=VARIABLE, cookie=COOKIE)
    return said + " \\\n  ".join(parts) + "\n"


def request_of(attack: Attack, run: RunHead) -> tuple[str, Mapping[str, str]]:
    """The address and the fields that were sent: the box's where it came from there, else its own.

    Raises:
        GoneError: something of it is kept no more.
    """
    if Entry.objects.filter(attack_id=attack.pk).exists():
        typed = box.typed_of(words_of(attack))
        fields = {"run": run.code, "mode": typed.mode, "proposal": typed.text}
        return "/attack/propose/", fields
    if attack.injector in SCENARIOS:
        fields = _params(attack, SCENARIOS[attack.injector].injector)
        return f"/attack/gallery/{attack.injector}/", fields
    if attack.injector not in INJECTORS:
        raise GoneError(NO_INJECTOR)
    fields = _params(attack, INJECTORS[attack.injector])
    return f"/runs/{run.code}/attacks/{attack.injector}/", fields


def _params(attack: Attack, injector: Injector) -> dict[str, str]:
    """Every parameter as a form sends it, free text as the vault has it."""
    return {
        param.name: words_of(attack).decode("utf-8", "replace")
        if param.kind == "text"
        else str(attack.params.get(param.name, param.default))
        for param in injector.params
    }


def _field(name: str, value: str) -> str:
    """A field for curl, which encodes it itself; no argument holds a zero byte, no page a slot."""
    if "\0" in value or "{{" in value:
        return f"--data-raw {shlex.quote(f'{name}={quote_plus(value)}')}"
    return f"--data-urlencode {_word(f'{name}={value}')}"


def _word(text: str) -> str:
    """One word of bash. What is not plainly seen is written as an escape, line ends above all."""
    if all(letter.isprintable() for letter in text):
        return shlex.quote(text)
    return "$'" + "".join(map(_letter, text)) + "'"


def _letter(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    return "".join(f"\\x{byte:02x}" for byte in letter.encode("utf-8", "replace"))


_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
