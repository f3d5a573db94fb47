"""An endpoint in the model's place: its words are not believed, its manners are bounded."""

import gzip
import json
import logging
import ssl
import threading
import tracemalloc
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from engine.errors import EffectError, PermanentError, TransientError
from engine.evidence.fsck.audit import audit
from engine.models import Run
from engine.runtime import agents
from engine.vault import secret_store
from engine.worker import drive
from nanovm_core.core import lifecycle as life
from nanovm_core.core.messages import Scalar
from pipeline.application import INVOICES
from pipeline.steps.propose import model_adapters, model_endpoint
from pipeline.steps.propose.model_endpoint import ANSWER_BYTES_MAX, INSTRUCTION, Endpoint, complete
from tests.house.web.test_proxy import NAME, certificate
from tests.kit.completions import Answers, completions
from tests.kit.house import POLICY, House, bodies, invoice, payments, reason, snapshot, succeeded

KEY = "sk-canary-endpoint-key"
VIEW: dict[str, Scalar] = {
    "amount_minor": 12000,
    "currency": "EUR",
    "notes": "ZAHLEN \u00a7 \U0001f600",
    "payee": "{{payee}}",
}
FAITHFUL = (
    '{"tool": "stripe.create_payment_intent", "args": {"amount_minor": 12000, "currency": "EUR",'
    ' "payee": "{{payee}}", "memo": "{{memo}}"}}'
)
ARGS = json.dumps(json.loads(FAITHFUL)["args"])
POISONED = '{"tool": "wire_transfer", "args": {"amount": 50000, "to": "attacker"}}'
PAY = "stripe.create_payment_intent"
WHOLE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n"


@pytest.fixture
def far() -> Iterator[Answers]:
    with completions() as answers:
        yield answers


@pytest.fixture
def endpoint(far: Answers) -> Endpoint:
    return Endpoint(url=far.url, name="tiny", key=KEY)


@pytest.fixture
def chosen(far: Answers, monkeypatch: pytest.MonkeyPatch) -> Answers:
    """The endpoint as the settings name it, with no wait before another try."""
    named = {"url": far.url, "name": "tiny", "key": KEY}
    monkeypatch.setattr(settings, "NANOVM_MODEL", named)
    monkeypatch.setattr(drive, "BACKOFF_MS", 0)
    return far


def refused(endpoint: Endpoint, kind: type[EffectError], code: str, *words: str) -> None:
    """It is known to have given no answer, and the text quotes nothing that was not ours."""
    with pytest.raises(kind) as caught:
        complete(endpoint, VIEW, 500)
    assert type(caught.value) is kind
    assert caught.value.code == code
    assert all(word in caught.value.text for word in words), caught.value.text
    assert KEY not in caught.value.text
    assert "secret words" not in caught.value.text


@pytest.mark.parametrize(
    "words",
    [
        *(FAITHFUL, POISONED, "I am sorry, I cannot do that.", f"```json\n{FAITHFUL}\n```", ""),
        *(
            '{"tool": "a", "tool": "b", "args": {"x": 1e400}}',
            "\u202e\x00\ufeff שלום \U0001f600\r\n",
        ),
    ],
)
def test_the_words_are_taken_byte_for_byte(far: Answers, endpoint: Endpoint, words: str) -> None:
    far.says(words)
    assert complete(endpoint, VIEW, 500).raw == words.encode()


def test_half_a_surrogate_pair_is_left_for_the_gate_to_refuse(
    far: Answers, endpoint: Endpoint
) -> None:
    far.body = b'{"choices": [{"message": {"content": "\\ud800"}}]}'
    assert complete(endpoint, VIEW, 500).raw == b"\xed\xa0\x80"


def test_tool_calls_become_proposals_with_their_arguments_unread(
    far: Answers, endpoint: Endpoint
) -> None:
    twice = '{"amount_minor": 1, "amount_minor": 1e400, "x": NaN}'
    far.calls((PAY, twice))
    assert complete(endpoint, VIEW, 500).raw == f'{{"tool": "{PAY}", "args": {twice}}}'.encode()
    far.calls((PAY, ARGS))
    assert json.loads(complete(endpoint, VIEW, 500).raw) == json.loads(FAITHFUL)
    far.calls((PAY, ARGS), ("wire_transfer", "{}"))  # both are shown to the gate
    assert complete(endpoint, VIEW, 500).raw.count(b'"tool"') == 2


def test_the_question_is_the_projection_and_nothing_else(far: Answers, endpoint: Endpoint) -> None:
    far.says(FAITHFUL)
    complete(endpoint, VIEW, 500)
    [(line, headers)] = far.seen
    assert line == "POST /v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert headers["Content-Type"] == "application/json"
    [asked] = far.asked
    assert set(asked) == {"model", "messages", "temperature", "stream", "max_tokens"}
    assert (asked["model"], asked["stream"], asked["max_tokens"]) == ("tiny", False, 500)
    system, user = asked["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert json.loads(user["content"]) == VIEW
    assert KEY not in repr(endpoint)
    complete(Endpoint(url=f"{far.url}/", name="tiny", key=""), VIEW, 500)
    line, headers = far.seen[1]
    assert (line, "Authorization" in headers) == ("POST /v1/chat/completions", False)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"secret words, and no JSON",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"null",
        b'{"error": {"message": "secret words"}}',
        b'{"choices": []}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"message": {"content": {"a": 1}}}]}',
        b'{"choices": [{"message": {"tool_calls": [{"function": {"name": 1, "arguments": 2}}]}}]}',
        b'{"choices": [{"message": {"tool_calls": 7}}]}',
    ],
)
def test_what_is_no_completion_is_no_answer(far: Answers, endpoint: Endpoint, body: bytes) -> None:
    far.body = body
    refused(endpoint, PermanentError, "MDL-002")


def test_what_is_not_called_json_is_not_read(far: Answers, endpoint: Endpoint) -> None:
    far.says(FAITHFUL)
    far.headers = {"Content-Type": "text/html"}
    refused(endpoint, PermanentError, "MDL-002", "application/json")
    far.headers = {"Content-Type": "application/json; charset=utf-8"}
    assert complete(endpoint, VIEW, 500).raw == FAITHFUL.encode()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *[(status, TransientError) for status in (429, 500, 502, 503)],  # and is asked again
        *[(status, PermanentError) for status in (201, 204, 400, 401, 403, 404, 501)],
    ],
)
def test_another_status_is_no_answer(
    far: Answers, endpoint: Endpoint, status: int, kind: type[EffectError]
) -> None:
    far.status, far.body = status, b'{"error": "secret words"}'
    refused(endpoint, kind, "MDL-001", str(status))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(far: Answers, endpoint: Endpoint, status: int) -> None:
    far.status, far.headers = status, {"Location": f"{far.url}/elsewhere"}
    refused(endpoint, PermanentError, "MDL-001", "NANOVM_MODEL_URL")
    assert len(far.seen) == 1  # and the key went nowhere else


def test_no_proxy_of_the_environment_is_asked(
    far: Answers, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    far.says(FAITHFUL)
    assert complete(endpoint, VIEW, 500).raw == FAITHFUL.encode()


def test_an_answer_has_a_largest_size(far: Answers, endpoint: Endpoint) -> None:
    frame = len(json.dumps({"choices": [{"message": {"content": ""}}]}))
    whole = json.dumps({"choices": [{"message": {"content": "x" * (ANSWER_BYTES_MAX - frame)}}]})
    far.body = whole.encode()
    assert len(far.body) == ANSWER_BYTES_MAX
    assert len(complete(endpoint, VIEW, 500).raw) == ANSWER_BYTES_MAX - frame
    far.body += b" "
    refused(endpoint, PermanentError, "MDL-002", f"{ANSWER_BYTES_MAX:,}")


def test_a_packed_answer_is_not_unpacked(far: Answers, endpoint: Endpoint) -> None:
    far.says(FAITHFUL + " " * 10**8)  # packed, it is within the limit
    far.body = gzip.compress(far.body)
    assert len(far.body) < ANSWER_BYTES_MAX
    far.headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    tracemalloc.start()
    refused(endpoint, PermanentError, "MDL-002")
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()
    assert far.seen[0][1]["Accept-Encoding"] == "identity"


def test_an_endless_answer_is_cut(far: Answers, endpoint: Endpoint) -> None:
    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b" " * 65_536)
        except OSError:
            return  # the other side has hung up, as it should

    far.send = send
    refused(endpoint, PermanentError, "MDL-002", f"{ANSWER_BYTES_MAX:,}")


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nX-Long: ", WHOLE_HEAD])
def test_one_who_drips_is_not_waited_for(
    far: Answers, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, head: bytes
) -> None:
    """Its bytes come often enough for a socket's own time-out, and never to an end."""
    over = threading.Event()
    monkeypatch.setattr(model_endpoint, "TIMEOUT_S", 0.5)

    def send(handler: BaseHTTPRequestHandler) -> None:
        try:
            handler.wfile.write(head)
            while not over.wait(0.05):
                handler.wfile.write(b" " if head else b"")
        except OSError:
            return  # the other side has hung up, as it should

    far.send = send
    refused(endpoint, TransientError, "MDL-001")
    over.set()


@pytest.mark.parametrize("said", [WHOLE_HEAD + b'{"choices": [', b"secret words\r\n\r\n"])
def test_half_an_answer_and_what_is_no_http_are_no_answer(
    far: Answers, endpoint: Endpoint, said: bytes
) -> None:
    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(said)

    far.send = send
    refused(endpoint, TransientError, "MDL-001")


def test_a_certificate_that_nobody_vouches_for_is_sent_no_key(tmp_path: Path) -> None:
    certificate(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / f"{NAME}.pem", tmp_path / f"{NAME}.key")
    with completions(tls) as far:
        far.says(FAITHFUL)
        refused(Endpoint(url=far.url, name="tiny", key=KEY), TransientError, "MDL-001")
        assert far.seen == []


def test_nobody_there_is_no_answer() -> None:
    with completions() as gone:
        url = gone.url
    refused(Endpoint(url=url, name="tiny", key=KEY), TransientError, "MDL-001")


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"total_tokens": 5000}, 5000),
        ({"total_tokens": 0}, None),
        ({"total_tokens": -9}, None),
        ({"total_tokens": "many"}, None),
        ({"total_tokens": True}, None),
        (None, None),
        ([], None),
        ({"total_tokens": 10**30}, model_endpoint.TOKENS_MAX),
    ],
)
def test_the_tokens_are_the_providers_where_it_says_more(
    chosen: Answers, usage: Any, counted: int | None
) -> None:
    chosen.says(FAITHFUL, usage=usage)
    found = model_adapters.ask_once("endpoint", VIEW, b"", 8_192)
    words = f"{INSTRUCTION}{FAITHFUL}".encode()
    assert found.tokens == (counted or model_adapters.tokens(VIEW, words))


def test_the_answer_may_have_what_the_question_leaves_of_its_tokens(chosen: Answers) -> None:
    chosen.says(FAITHFUL)
    asked = model_adapters.tokens(VIEW, INSTRUCTION.encode())
    for most in (8_192, asked + 1):
        model_adapters.ask_once("endpoint", VIEW, b"", most)
        assert chosen.asked[-1]["max_tokens"] == most - asked
    for model, most in (("endpoint", asked), ("endpoint", 1), ("faithful", 5)):
        with pytest.raises(PermanentError, match="not sent") as caught:
            model_adapters.ask_once(model, VIEW, b"", most)
        assert caught.value.code == "MDL-003"
    assert len(chosen.asked) == 2


def test_a_question_above_the_reservation_is_not_sent_and_its_run_fails(
    house: House, chosen: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = INVOICES.source().replace(b'"model.propose"\n', b'"model.propose"\ntokens_max = 9\n')
    monkeypatch.setattr(INVOICES, "source", lambda: few)
    run = house.run(invoice(), model="endpoint")
    assert (run.state, reason(run), chosen.asked) == (life.FAILED, "MDL-003", [])
    assert snapshot(run).used.get("tokens", 0) == 0


TOKENS_LIMIT = '[[budgets]]\nscope = "agent"\nunit = "tokens"\nmax = %d\n'


def test_a_provider_that_reports_ten_times_the_tokens_exhausts_its_own_agent_alone(
    house: House, chosen: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Booked in full; its run's next call finds the agent suspended, until the limit is raised."""
    file = tmp_path / "policy.toml"
    monkeypatch.setattr(settings, "NANOVM_POLICY", file)
    file.write_text(POLICY % (TOKENS_LIMIT % 20_000, "workspace", 10**9))
    other = house.paused().workspace_id
    chosen.says(FAITHFUL, usage={"total_tokens": 81_920})
    run = house.run(invoice(), model="endpoint")
    found = agents.read(log := run.workspace_id)
    assert found.accounts["agent/tokens@payer"] == (0, 81_920)
    assert (run.state, reason(run), snapshot(run).step) == (life.PAUSED, "CAP-040", "charge")
    assert (found.agents["payer"].state, found.agents["payer"].code) == (life.EXHAUSTED, "BUD-004")
    assert "overdrawn by 61920" in found.alerts["agent/payer"].text
    assert agents.read(other).agents["payer"].state == "running"
    [said] = [each for each in bodies(str(run.id)) if each.get("outcome") == "proposed"]
    taken = {"agent/tokens@payer": 81_920 - 8_192}
    assert said["budget"]["reserved"] == taken
    assert said["budget"]["left"] == {"agent/tokens@payer": 20_000 - 81_920}
    again = house.run(invoice(), workspace=run.workspace, model="endpoint")
    assert (reason(again), len(chosen.asked), payments(run)) == ("CAP-040", 1, [])
    assert agents.resume(log, "payer", by="operator").code == "AGT-001"
    file.write_text(POLICY % (TOKENS_LIMIT % 200_000, "workspace", 10**9))
    house.new(workspace=run.workspace)
    assert agents.resume(log, "payer", by="operator").code == ""
    assert (house.drive(run).state, succeeded(run)) == (life.COMPLETED, [(12000, "eur")])
    assert audit().damage == ()


def test_it_is_offered_only_where_set(chosen: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "endpoint" in model_adapters.offered()
    monkeypatch.setattr(settings, "NANOVM_MODEL", None)
    assert "endpoint" not in model_adapters.offered()
    with pytest.raises(PermanentError, match="NANOVM_MODEL_URL"):
        model_adapters.ask_once("endpoint", VIEW, b"", 8_192)


def test_its_faithful_call_is_paid_and_neither_a_value_nor_the_key_gets_out(
    house: House, chosen: Answers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    chosen.says(FAITHFUL)
    run = house.run(invoice(), model="endpoint", file_name="canary-file-name.pdf")
    assert run.state == life.COMPLETED, reason(run)
    assert succeeded(run) == [(12000, "eur")]
    house.drive(run)  # what it said is recorded: nobody asks again
    assert len(chosen.asked) == 1
    sent = json.dumps(chosen.asked, ensure_ascii=False)
    assert "{{payee}}" in sent
    never = ["canary-file-name", "vault://", str(run.id), run.code, *hidden(run)]
    assert [value for value in never if value in sent] == []
    chosen.body = b"no JSON"
    assert house.run(invoice(), model="endpoint").state == life.FAILED
    assert KEY not in caplog.text
    assert [path for path, data in house.files() if KEY.encode() in data] == []


def hidden(run: Run) -> list[str]:
    """The personal values of a run whose slots the model is not shown in the clear."""
    slots = snapshot(run).slots
    names = ("seller", "iban", "invoice_number", "seller_email", "payee", "memo")
    opened = secret_store.read_all([str(slots[name]) for name in names if name in slots])
    assert len(opened) >= 4
    return [value for value in opened.values() if value]


@pytest.mark.parametrize(("status", "tries"), [(500, drive.TRIES_MAX), (401, 1), (302, 1)])
def test_without_an_answer_the_run_fails_and_pays_nothing(
    house: House, chosen: Answers, status: int, tries: int
) -> None:
    chosen.status = status
    run = house.run(invoice(), model="endpoint")
    assert (run.state, reason(run)) == (life.FAILED, "MDL-001")
    assert payments(run) == []
    assert len(chosen.asked) == tries
