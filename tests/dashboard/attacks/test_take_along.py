"""What one takes along from an attack: its link, its request as curl, a variation, a report."""

import html
import json
import re
import subprocess
import sys
from typing import Any
from urllib.parse import parse_qsl, quote_plus

import pytest
from django.test import Client

from dashboard.web import workspace
from engine.queries.runs import RunHead
from engine.vault import secret_store
from sabotage.models import Attack
from tests.dashboard.visitor import TRANSFER, Visitor, by_code, words

pytestmark = pytest.mark.usefixtures("db")

HOSTILE = 'it\'s "$(id)" `id` \\ % + & = \u202e ü\r\n\tend;\x07'
# What stands for curl: it prints the words that the shell made of its line.
CURL = f"""curl() {{ '{sys.executable}' -c '
import json, os, sys
print(json.dumps([os.fsencode(each).decode("latin-1") for each in sys.argv[1:]]))' "$@"; }}
"""


def argv_of(command: str, **env: str) -> list[bytes]:
    """The arguments that bash gives to curl."""
    done = subprocess.run(
        ["bash", "-c", CURL + command], env=env, capture_output=True, text=True, check=True
    )
    return [each.encode("latin-1") for each in json.loads(done.stdout)]


def sent(argv: list[bytes]) -> tuple[str, dict[str, str], dict[str, str], bytes]:
    """Address, headers, cookies and body that curl would send, by its manual."""
    headers: dict[str, str] = {}
    cookies: dict[str, str] = {}
    fields: list[bytes] = []
    url, left = "", iter(argv)
    for word in left:
        match word:
            case b"-sS":
                continue
            case b"-o" | b"-w":
                next(left)
            case b"--cookie":
                cookies |= dict(parse_qsl(next(left).decode().replace("; ", "&")))
            case b"--header":
                name, value = next(left).decode().split(": ", 1)
                headers[name] = value
            case b"--data-urlencode":
                name_, _, content = next(left).partition(b"=")
                fields.append(name_ + b"=" + quote_plus(content).encode())
            case b"--data-raw":
                fields.append(next(left))
            case _:
                url = word.decode()
    return url, headers, cookies, b"&".join(fields)


def fired_by(command: str, cookie: str) -> Any:
    """Send what the command sends, as somebody whose requests are checked like any browser's."""
    url, headers, cookies, body = sent(argv_of(command, NANOVM_WORKSPACE=cookie))
    client = Client(enforce_csrf_checks=True)
    client.cookies.load(cookies)
    path = url.removeprefix("http://testserver")
    kind = "application/x-www-form-urlencoded"
    return client.generic("POST", path, body, content_type=kind, headers=headers)


def take(visitor: Visitor, url: str) -> str:
    """The command that an attack's page shows, which is the one at its own address."""
    page = visitor.read(url)
    [shown] = re.findall(r'<pre id="its-curl"[^>]*>(.*?)</pre>', page, re.S)
    command = visitor.read(f"{url}curl/")
    assert html.unescape(shown) == command
    assert "\r" not in command  # a page would lose it
    return command


def cookie_of(visitor: Visitor) -> str:
    return visitor.cookies[workspace.COOKIE].value


def proposed(attack: Attack) -> bytes | None:
    return secret_store.read_bytes([attack.proposal_ref])[attack.proposal_ref]


@pytest.mark.parametrize("text", [TRANSFER, HOSTILE, "nul \0 and more", ""])
def test_the_command_fires_the_very_same_bytes(owner: Visitor, ready: RunHead, text: str) -> None:
    url = owner.fire(ready, "tool_injection", proposal=text)
    response = fired_by(take(owner, url), cookie_of(owner))
    assert response.status_code == 303
    assert response["Location"] != url
    first, second = Attack.objects.order_by("created_ms")
    assert proposed(first) == proposed(second) == text.encode()
    assert (first.injector, first.verdict) == (second.injector, second.verdict)


def test_the_command_has_every_parameter_and_needs_the_visitors_cookie(
    owner: Visitor, ready: RunHead
) -> None:
    skip = {"skip": "result of a step", "step": "charge"}
    command = take(owner, owner.fire(ready, "skip_step", **skip))
    url, _, cookies, body = sent(argv_of(command, NANOVM_WORKSPACE="W"))
    assert url == f"http://testserver/runs/{ready.code}/attacks/skip_step/"
    assert skip.items() <= dict(parse_qsl(body.decode())).items()
    assert cookies["nanovm_workspace"] == "W"
    assert cookie_of(owner) not in command
    unset = subprocess.run(["bash", "-c", CURL + command], env={}, capture_output=True, text=True)
    assert unset.returncode != 0
    assert "NANOVM_WORKSPACE: is not set" in unset.stderr
    assert fired_by(command, "forged").status_code == 404
    wordless = re.sub(r"--header '[^']*'", "", command)
    assert fired_by(wordless, cookie_of(owner)).status_code == 403
    assert Attack.objects.count() == 1


@pytest.mark.parametrize(
    ("typed", "mode", "raw"),
    [
        (TRANSFER, "text", TRANSFER.encode()),
        ("%FF%00%25 {}", "percent", b"\xff\x00% {}"),
        ("7B 0D 0A 7D", "hex", b"{\r\n}"),
    ],
)
def test_what_came_from_the_box_goes_to_the_boxs_door(
    owner: Visitor, ready: RunHead, typed: str, mode: str, raw: bytes
) -> None:
    form = {"proposal": typed, "mode": mode, "run": ready.code}
    url = owner.post("/attack/propose/", form)["Location"]
    command = take(owner, url)
    assert "/attack/propose/" in command
    assert fired_by(command, cookie_of(owner)).status_code == 303
    first, second = Attack.objects.order_by("created_ms")
    assert proposed(first) == proposed(second) == raw
    box = owner.read(variation(owner, url))
    [filled] = re.findall(r'<textarea id="arena-proposal".*?>\n(.*?)</textarea>', box, re.S)
    [chosen] = re.findall(r'name="mode" value="(\w+)" checked', box)
    form = {"proposal": html.unescape(filled), "mode": chosen, "run": ready.code}
    owner.post("/attack/propose/", form)
    assert proposed(Attack.objects.order_by("created_ms")[2]) == raw


def test_words_that_are_gone_are_told(owner: Visitor) -> None:
    run = owner.make(hold=True)
    url = owner.fire(run, "tool_injection", proposal=TRANSFER)
    assert "Copied from the attack of" in words(owner.read(variation(owner, url)))
    owner.erase(run)
    assert "the request cannot be repeated" in owner.read(f"{url}curl/", 404)
    assert "the request cannot be repeated" in words(owner.read(url))
    page = owner.read(variation(owner, url))
    assert "without its text (not stored)" in words(page)
    settings = form_of(page, "tool_injection").partition('id="shot-')[0]
    assert "TOMBSTONE" not in settings


def variation(visitor: Visitor, url: str) -> str:
    """Where *Try a variation* leads."""
    return str(visitor.get(f"{url}vary/")["Location"])


def form_of(page: str, injector: str) -> str:
    """An injector's form in the console."""
    [found] = re.findall(rf'<form class="injector"[^>]*/{injector}/".*?</form>', page, re.S)
    return str(found)


def test_a_variation_begins_with_what_was_fired(owner: Visitor, ready: RunHead) -> None:
    fired = {"proposal": "<b>\n&amp; mine", "by": "compromised"}
    there = variation(owner, owner.fire(ready, "tool_injection", **fired))
    assert there.endswith("#name-tool_injection")
    page = owner.read(there)
    [text] = re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", form_of(page, "tool_injection"), re.S)
    assert html.unescape(text) == fired["proposal"]
    fire = {"skip": "result of a step", "step": "seal"}
    other = variation(owner, owner.fire(ready, "skip_step", **fire))
    for value in fire.values():
        assert f"<option selected>{value}<" in form_of(owner.read(other), "skip_step")
        assert f"<option selected>{value}<" not in owner.read(f"/runs/{ready.code}/")
    assert owner.get(f"/runs/{ready.code}/?vary=nonsense").status_code == 200


def test_nobody_takes_anothers_attack_along(owner: Visitor, ready: RunHead) -> None:
    attack = owner.fire(ready, "tool_injection", proposal="Zyxomma").split("/")[-2]
    other = Visitor()
    page = other.read(f"/runs/{other.make(hold=True).code}/?vary={attack}")
    assert "Zyxomma" not in page
    assert "Copied from the attack of" not in page


def test_the_share_card_names_no_person(owner: Visitor, ready: RunHead) -> None:
    mine = '{"tool": "pay_Zyxomma_Petiolatum", "args": {}}'
    url = owner.fire(ready, "tool_injection", proposal=mine)
    page = owner.read(url)
    assert "Zyxomma" in page
    card = dict(re.findall(r'<meta property="og:(\w+)" content="([^"]*)"', page))
    assert card["title"] == f"BLOCKED: tool_injection on run {ready.code}"
    assert "Blocked: the call was never made." in card["description"]
    assert "Integrity intact" in card["description"]
    assert card["url"] == f"http://testserver{url}"
    assert "Zyxomma" not in json.dumps(card)


def test_a_breach_can_be_reported_and_nothing_else(owner: Visitor, ready: RunHead) -> None:
    url = owner.fire(ready, "tool_injection", proposal='{"tool": "Zyxomma", "args": {}}')
    assert "Report this" not in owner.read(url)
    owner.read(f"{url}report.md", 404)
    attack = Attack.objects.get()
    attack.verdict, attack.integrity, attack.rule = "ACCEPTED", "BREACHED", ""
    attack.evidence["breaches"] = ["A call was made that nobody allowed."]
    attack.save()
    page = owner.read(url)
    assert 'id="report"' in page
    assert f'href="{url}report.md"' in page
    assert f'href="{url}#report"' in owner.read(f"/runs/{ready.code}/")
    response = owner.get(f"{url}report.md")
    text = response.content.decode()
    assert "attachment" in response["Content-Disposition"]
    assert text.startswith(f"# BREACHED: tool_injection on run {ready.code}")
    assert "- A call was made that nobody allowed." in text
    for fact in (str(attack.pk), by_code(ready.code).program, attack.proposal_ref):
        assert fact in text
    assert "Zyxomma" not in text
