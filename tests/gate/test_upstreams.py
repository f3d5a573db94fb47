"""What an upstream may do to a call: each verdict, and how often its tool really ran."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings

from engine.errors import EffectError, NotSentError, OutcomeUnknownError, PermanentError
from engine.models import AdapterCall, Run
from engine.ops.processes import free_port
from engine.runtime import agents, api
from engine.worker import effects
from engine.worker.drive import drive, drive_patiently
from gate import calls, identity, upstreams
from gate.replies import DONE, RUNNING, UNKNOWN
from gate.upstreams import listed, wires
from gate.upstreams.listed import Upstream
from nanovm_core.core.authority.capabilities import ArgSpec, Tool
from nanovm_core.errors import ProgramError
from tests.gate.conftest import Desk

PERFORM = upstreams.perform  # which the desk puts another one in place of
KEY, ARGS = "k" * 64, b'{"amount":98.70,"note":"\xc3\xa9"}'


class Running:
    """An upstream's process; ``said``: what each run of a tool was given."""

    def __init__(self, folder: Path, port: int, child: subprocess.Popen[bytes]) -> None:
        self.folder, self.url, self.child = folder, f"http://127.0.0.1:{port}", child

    def at(self, kind: str, timeout_ms: int = 20_000) -> Upstream:
        path = "/mcp" if kind == "mcp" else "/plain"
        return Upstream(kind=kind, url=self.url + path, timeout_ms=timeout_ms)

    def said(self) -> list[Any]:
        file = self.folder / "ran"
        found = (
            [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        )
        file.unlink(missing_ok=True)
        return found


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    port = free_port()
    command = [sys.executable, "-m", "tests.gate.upstream", str(port), str(folder)]
    with subprocess.Popen(command) as child:
        try:
            until = monotonic() + 60
            while monotonic() < until and child.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                sleep(0.05)
            yield Running(folder, port, child)
        finally:
            child.kill()


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("upstream")) as found:
        yield found


def pin_of(upstream: Upstream, tool: str) -> str:
    """What the operator reads where a tool is not pinned."""
    with pytest.raises(PermanentError, match=r"GAT-008.* pins nothing; nothing was sent") as caught:
        wires.perform(upstream, wires.Call(tool, "", ARGS, KEY))
    return "".join(re.findall("[0-9a-f]{64}", caught.value.text)[:1])


def perform(upstream: Upstream, tool: str, args: bytes = ARGS, **more: bool) -> bytes:
    pin = pin_of(upstream, tool) if upstream.kind == "mcp" else ""
    return wires.perform(upstream, wires.Call(tool, pin, args, KEY, **more))


VERDICTS: dict[tuple[str, str], tuple[type[EffectError], str, int]] = {
    ("mcp", "hang"): (OutcomeUnknownError, "GAT-009", 1),
    ("mcp", "big"): (OutcomeUnknownError, "GAT-012", 1),
    ("mcp", "fails"): (PermanentError, "GAT-021", 1),
    ("mcp", "moves"): (PermanentError, "GAT-008", 0),
    ("mcp", "twice"): (PermanentError, "GAT-008", 0),
    ("http", "hang"): (OutcomeUnknownError, "GAT-009", 1),
    ("http", "big"): (OutcomeUnknownError, "GAT-012", 1),
    ("http", "200"): (OutcomeUnknownError, "GAT-012", 1),  # NaN
    ("http", "500"): (OutcomeUnknownError, "GAT-009", 1),
    ("http", "301"): (OutcomeUnknownError, "GAT-009", 1),
    ("http", "302"): (OutcomeUnknownError, "GAT-009", 1),
    ("http", "303"): (OutcomeUnknownError, "GAT-009", 1),
    ("http", "404"): (PermanentError, "GAT-021", 1),
    ("http", "deep"): (OutcomeUnknownError, "GAT-012", 1),
    ("http", "429"): (PermanentError, "GAT-021", 1),
    ("http", "elsewhere"): (PermanentError, "GAT-021", 0),
}


@pytest.mark.parametrize(("kind", "tool"), VERDICTS)
def test_what_comes_of_a_call_is_known_or_said_to_be_unknown(
    upstream: Running, kind: str, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    expected, code, times = VERDICTS[kind, tool]
    with pytest.raises(EffectError) as caught:
        perform(upstream.at(kind, 3_000 if tool == "hang" else 20_000), tool)
    assert (type(caught.value), caught.value.code) == (expected, code)
    if expected is PermanentError:  # of a call that moves money nobody's word is enough
        with pytest.raises(OutcomeUnknownError if code == "GAT-021" else expected):
            perform(upstream.at(kind), tool, pays=True)
        times *= 2
    assert "4111" not in caught.value.text + caplog.text
    assert ("ReadError" in caplog.text) is ((kind, tool) == ("http", "big"))  # cut off, not awaited
    assert [(each[0], each[1]) for each in upstream.said()] == [(tool, KEY)] * times


@pytest.mark.parametrize("kind", ["mcp", "http"])
def test_an_upstream_that_dies_may_have_acted_and_one_that_is_away_has_not(
    tmp_path: Path, kind: str
) -> None:
    with running(tmp_path) as dying:
        with pytest.raises(OutcomeUnknownError, match="GAT-009"):
            perform(dying.at(kind), "die")
        assert len(dying.said()) == 1
        dying.child.wait(60)  # its port may be open a moment longer than its connections
        with pytest.raises(NotSentError, match="GAT-009"):
            wires.perform(dying.at("http"), wires.Call("pay", "", ARGS, KEY))
        with pytest.raises(NotSentError, match="GAT-009"):
            wires.perform(dying.at("mcp"), wires.Call("pay", "p", ARGS, KEY))
        assert dying.said() == []


def test_arguments_arrive_exact_and_the_environment_leads_no_call_elsewhere(
    upstream: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert perform(upstream.at("http"), "pay") == b'{"number":1,"text":"x"}'
    assert perform(upstream.at("mcp"), "pay") == b'{"number": 2}'
    assert perform(upstream.at("mcp"), "lies") == b'{"total": "many"}'  # no schema of theirs is run
    sent, by_mcp, _ = upstream.said()
    assert sent == ["pay", KEY, ARGS.decode()]
    assert by_mcp == ["pay", KEY, {"amount": 98.7, "note": "é"}]
    moved = Upstream(kind="mcp", url=upstream.at("http").url + "/mcp")
    for pays, expected in ((False, NotSentError), (True, OutcomeUnknownError)):
        with pytest.raises(expected, match="GAT-009"):
            perform(upstream.at("http"), "429", repeats=True, pays=pays)
    assert len(upstream.said()) == 2
    with pytest.raises(PermanentError, match="HTTP 307"):
        wires.perform(moved, wires.Call("pay", "p", ARGS, KEY))
    with pytest.raises(PermanentError, match="more digits"):
        perform(upstream.at("mcp"), "pay", b'{"amount":90071992547409.91}')
    assert perform(upstream.at("http"), "pay", b'{"amount":90071992547409.91}')
    assert [each[2] for each in upstream.said()] == ['{"amount":90071992547409.91}']


FAULTS = {
    "[upstreams.a]\nkind = 'ftp'\nurl = 'https://a'": (2, "kind = 'ftp' is none of mcp, http"),
    "[upstreams.a]\nkind = 'mcp'\nurl = 'http://bank.example'": (3, "url must be https"),
    "[upstreams.a]\nkind = 'mcp'\nurl = 'https://me:word@a'": (3, "url must be https"),
    "[upstreams.a]\nkind = 'mcp'\nurl = 'https://a:b'": (3, "url must be https"),
    "[upstreams.a]\nkind = 'mcp'": (1, "url must be a text"),
    "[upstreams.a]\nkind = 'mcp'\nurl = 'https://a'\ntimeout_ms = 0": (4, "must be an integer"),
    "[upstreams.a]\nkind = 'mcp'\nurl = 'https://a'\ntoken = 'x'": (4, "unknown key 'token'"),
    "[upstream.a]": (1, "unknown key 'upstream'"),
}


@pytest.mark.parametrize("source", FAULTS)
def test_a_list_of_upstreams_with_a_fault_is_refused_at_its_place(source: str) -> None:
    with pytest.raises(ProgramError) as caught:
        listed.load(source.encode())
    line, text = FAULTS[source]
    assert (caught.value.code, caught.value.line) == ("GAT-020", line)
    assert text in caught.value.text


def test_an_upstream_is_the_operators_and_its_token_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "NANOVM_GATE", None)
    with pytest.raises(PermanentError, match="GAT-020: NANOVM_GATE names no folder"):
        listed.named("bank")
    monkeypatch.setattr(settings, "NANOVM_GATE", tmp_path)
    with pytest.raises(PermanentError, match=r"GAT-020: upstreams.toml: No such file"):
        listed.named("bank")
    file = tmp_path / "upstreams.toml"
    file.write_text("[upstreams.bank]\nkind = 'http'\nurl = 'https://a'\ntoken_env = 'BANK'\n")
    for token in ("", "a\nb", "é"):
        monkeypatch.setenv("BANK", token)
        with pytest.raises(PermanentError, match="GAT-020: BANK has no token"):
            wires.perform(listed.named("bank"), wires.Call("pay", "", ARGS, KEY))
    monkeypatch.setenv("BANK", "open")
    assert listed.named("bank").headers == {"Authorization": "Bearer open"}
    with pytest.raises(PermanentError, match=r"GAT-020: upstreams.toml lists no upstream 'bonk'"):
        listed.named("bonk")


@pytest.fixture
def bank(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Puts an upstream into the operator's list, for the desk's tool ``send``."""
    monkeypatch.setattr(upstreams, "perform", PERFORM)
    monkeypatch.setattr(settings, "NANOVM_GATE", tmp_path)

    def put(url: str, more: str = "") -> None:
        entry = f"[upstreams.bank]\nkind = 'http'\nurl = '{url}/plain'\n{more}"
        (tmp_path / "upstreams.toml").write_text(entry)

    return put


def test_a_call_is_performed_once_though_its_upstream_was_away(
    desk: Desk, bank: Callable[..., Any], upstream: Running
) -> None:
    bank(f"http://127.0.0.1:{free_port()}")
    former = desk._replace(token=identity.issue(desk.log.id, "former", "desk", by="visitor"))
    for each in (former, desk):
        assert each.ask(tool="send").verdict == RUNNING
        drive(str(each.run().id))
        assert calls.answer(each.holder, "1").verdict == RUNNING
    run, other = desk.run(), former.run()
    agents.kill(desk.log.id, "former", by="visitor")
    identity.issue(desk.log.id, "former", "desk", by="visitor")
    bank(upstream.url)
    drive_patiently(str(other.id))  # nothing was sent for the killed one, and nothing will be
    drive_patiently(str(run.id))
    answer = calls.answer(desk.holder, "1")
    assert (answer.verdict, answer.result["text"]) == (DONE, "x")
    [(tool, key, args)] = upstream.said()
    assert (tool, args) == ("send", '{"cents":120,"to":"ada"}')
    assert AdapterCall.objects.filter(run=run, key=key, outcome="NotSentError").count() == 1


def test_a_worker_that_lost_its_lease_says_nothing_of_the_next_ones_try(
    desk: Desk, bank: Callable[..., Any], upstream: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank(upstream.url)
    desk.ask(tool="send")
    run, real = desk.run(), effects.perform

    def stalls(work: Any) -> Any:
        monkeypatch.setattr(effects, "perform", real)
        real(work)  # it acts, and its answer is lost
        Run.objects.filter(id=run.id).update(until_ms=0)
        assert api.take(str(run.id))[1] is not None  # by another worker, which is killed
        raise OutcomeUnknownError("GAT-009", "lost")

    monkeypatch.setattr(effects, "perform", stalls)
    drive(str(run.id))
    Run.objects.filter(id=run.id).update(until_ms=0, due_ms=0)
    drive_patiently(str(run.id))
    assert calls.answer(desk.holder, "1").verdict == UNKNOWN
    assert len(upstream.said()) == 1


@pytest.mark.whole
@pytest.mark.parametrize(("then", "repeats", "verdict", "times"), [
    ("", "pay", UNKNOWN, 1), ("", "send", DONE, 2), ("/404", "send", UNKNOWN, 1),
    ("gone", "", UNKNOWN, 1),
])  # fmt: skip
def test_a_call_whose_answer_was_lost_is_made_again_only_where_somebody_says_so(
    desk: Desk, bank: Callable[..., Any], upstream: Running,
    then: str, repeats: str, verdict: str, times: int,
) -> None:  # fmt: skip
    bank(upstream.url)
    desk.ask(tool="send")
    run = desk.run()
    begun = api.take(str(run.id))[1]
    assert begun is not None
    effects.perform(effects.work_of(begun))  # and the process is killed
    bank(upstream.url + then, f"repeats = ['{repeats}']" if then != "gone" else "[")
    Run.objects.filter(id=run.id).update(until_ms=0)
    drive_patiently(str(run.id))
    assert desk.ask(tool="send").verdict == calls.answer(desk.holder, "1").verdict == verdict
    ran = upstream.said()
    assert (len(ran), len({key for _, key, _ in ran})) == (times, 1)
    bank(upstream.url)
    for dies in (True, False) if verdict == UNKNOWN else ():
        api.approve(str(run.id), "visitor")  # who looked, and it was not made
        if dies:  # before it sends, which nobody knows
            assert api.take(str(run.id))[1] is not None
            Run.objects.filter(id=run.id).update(until_ms=0)
        drive_patiently(str(run.id))
        assert desk.ask(tool="send").verdict == (UNKNOWN if dies else DONE)
        assert [key for _, key, _ in upstream.said()] == [ran[0][1]] * (not dies)


def test_arguments_are_written_as_the_program_types_them() -> None:
    specs = {
        "amount": ArgSpec(type="decimal", currency="EUR"),
        "yen": ArgSpec(type="decimal", currency="JPY"),
        "parts": ArgSpec(type="list", of="decimal", digits=3),
        "names": ArgSpec(type="list", of="string"),
        "body": ArgSpec(type="ref"),
        "count": ArgSpec(type="integer"),
        "sure": ArgSpec(type="boolean"),
        "note": ArgSpec(type="string", optional=True),
    }
    tools = {"pay": Tool(name="pay", args=specs)}
    args = {
        "amount": -9_870,
        "yen": 98,
        "parts": (1, -1_000),
        "names": ("é", '"'),
        "body": "vault://",
    }
    effect = SimpleNamespace(tool="pay", args={**args, "count": 7, "sure": True})
    program, opened = SimpleNamespace(tools=tools), "Grüße".encode()
    work: Any = SimpleNamespace(effect=effect, program=program, opened=lambda _: opened)
    assert upstreams.written(work).decode() == (
        '{"amount":-98.70,"body":"Grüße","count":7,"names":["é","\\""],'
        '"parts":[0.001,-1.000],"sure":true,"yen":98}'
    )
