"""Bad input at the HTTP door: a code and what to do, nothing executed, and never a bare error."""

import json
from typing import Any

from engine.models import Run
from gate.doors.wire import BODY_BYTES_MAX
from tests.gate.conftest import Desk
from tests.gate.doors.caller import CALL, Caller

SENT = json.dumps(CALL)


def with_args(args: str) -> bytes:
    return f'{{"request": "1", "tool": "send", "args": {args}}}'.encode()


UNREADABLE = {
    "nothing": b" ",
    "no JSON": b"{",
    "not UTF-8": SENT.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + SENT.encode(),
    "an array": b"[]",
    "a text": b'"call"',
    "a key less": {"request": "1", "tool": "mail"},
    "a key more": {**CALL, "agent": "payer"},
    "a key twice": b'{"request": "1", ' + SENT.encode()[1:],
    "an argument twice": with_args('{"to": "ada", "cents": 1, "cents": 2}'),
    "NaN": with_args('{"to": "ada", "cents": NaN}'),
    "10^30": with_args(f'{{"to": "ada", "cents": 1{"0" * 30}}}'),
    "half a pair": with_args('{"to": "\\ud800", "cents": 1}'),
    "a nesting of 1,000": with_args('{"to": ' + "[" * 1_000 + "]" * 1_000 + "}"),
    "a request of 10,000 characters": {**CALL, "request": "r" * 10_000},
    "a request of none": {**CALL, "request": ""},
    "a request of other characters": {**CALL, "request": "ä\n"},
    "a request that is a number": {**CALL, "request": 1},
    "a tool that is a list": {**CALL, "tool": []},
    "arguments that are a list": {**CALL, "args": []},
}
DONE = b'{"outcome":"done","result":%b}'
REPORTS = (
    *({}, {"outcome": "maybe"}, {"outcome": "failed", "code": "my code"}),
    *({"outcome": "failed", "code": "a" * 65}, {"outcome": "failed", "text": "a" * 1_025}),
    *({"outcome": "failed", "text": f"a{hidden}b"} for hidden in "\n\u202e\u200b\x1b"),
    *(DONE % each for each in (b"{", b"NaN", b"1e400", b"[" * 60_000)),
)
TOKEN = {"path": "calls?token=nvm1.x"}
REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    **{name: ({"body": body}, 400, "GAT-005") for name, body in UNREADABLE.items()},
    "2 MB": ({"body": b" " * 2_000_000}, 413, "GAT-006"),
    "a byte too many": ({"body": SENT.encode().ljust(BODY_BYTES_MAX + 1)}, 413, "GAT-006"),
    "a form": ({"kind": "application/x-www-form-urlencoded"}, 415, "GAT-011"),
    "text": ({"kind": "text/plain"}, 415, "GAT-011"),
    "another encoding": ({"kind": "application/json; charset=latin-1"}, 400, "GAT-005"),
    "no token": ({"Authorization": ""}, 401, "GAT-003"),
    "a password": ({"Authorization": "Basic YTpi"}, 401, "GAT-003"),
    "a forged token": ({"Authorization": "Bearer " + "nvm1.x"}, 401, "GAT-003"),
    "a token in the address": (TOKEN, 400, "GAT-005"),
    "a token in the address alone": ({**TOKEN, "Authorization": ""}, 401, "GAT-003"),
    "another site's page": ({"Origin": "https://evil.example"}, 403, "GAT-018"),
    "a page without an origin": ({"Origin": "null"}, 403, "GAT-018"),
    "a wait that is too long": ({"path": "calls?wait=26"}, 400, "GAT-005"),
    "a wait that is no number": ({"path": "calls?wait=-1"}, 400, "GAT-005"),
    "a read of all calls": ({"method": "GET"}, 405, "GAT-018"),
    "a PUT": ({"method": "PUT"}, 405, "GAT-018"),
    "another path": ({"path": "call"}, 404, "GAT-018"),
    "a call's own path": ({"path": "calls/1"}, 404, "GAT-018"),
    "a path with NUL": ({"path": "calls/%00"}, 400, "GAT-005"),
    "a report of no call": (
        {"path": "calls/1/report", "body": {"outcome": "done"}}, 404, "GAT-001",
    ),
    **{
        f"a report {number}": ({"path": "calls/1/report", "body": body}, 400, "GAT-005")
        for number, body in enumerate(REPORTS)
    },
    "a report of 65,537 bytes": (
        {"path": "calls/1/report", "body": (DONE % b"1").ljust(65_537)}, 413, "GAT-006",
    ),
    "an answer of no call": ({"path": "calls/1", "method": "GET"}, 404, "GAT-001"),
}  # fmt: skip


def test_what_no_run_is_made_of_is_refused_in_words(desk: Desk) -> None:
    caller = Caller(desk)
    for name, (sent, status, code) in REFUSED.items():
        answer = caller.send(**sent)
        assert (answer.status, answer.said["error"]["code"]) == (status, code), name
        assert all(answer.said["error"].values()), name
        assert ("WWW-Authenticate" in answer.headers) == (status == 401), name
        assert ("Allow" in answer.headers) == (status == 405), name
        assert caller.done_nothing(), name
    assert caller.send().said["verdict"] == "allowed"  # the same, unspoiled


SEALED: list[tuple[str, dict[str, Any], str, str]] = [
    ("rob", {}, "CAP-001", "No other tool"),
    ("agent.ask", {}, "CAP-001", "No other tool"),
    ("send", {"to": "ada", "cents": 1, "eve": "x"}, "CAP-003", "send takes to, cents."),
    ("send", {"to": "ada"}, "CAP-004", "send needs the argument 'cents'."),
    ("send", {"to": "ada", "cents": "1"}, "CAP-005", "cents: It is an integer of 1 to …."),
    ("send", {"to": "ada", "cents": 1.5}, "CAP-012", "cents: It is an integer of 1 to …."),
    ("send", {"to": "ada", "cents": 0}, "CAP-006", "cents: It is an integer of 1 to …."),
    ("send", {"to": ["ada"], "cents": 1}, "CAP-005", "to: It is a string of at most 256"),
    ("mail", {"to": "ada", "body": 7}, "CAP-005", "body: It is a text."),
    ("send" * 8_000, {}, "CAP-017", "is limited"),
]


def test_a_call_that_no_schema_takes_is_a_sealed_refusal(desk: Desk) -> None:
    caller = Caller(desk)
    for number, (tool, args, rule, why) in enumerate(SEALED, 1):
        answer = caller.send({"request": str(number), "tool": tool, "args": args})
        said = (answer.status, answer.said["verdict"], answer.said["rule"])
        assert said == (200, "refused", rule), tool
        assert why in answer.said["why"]
        assert "new request id" in answer.said["next"]
        assert "eve" not in answer.said["why"]
        assert Run.objects.exclude(ended_ms=None).count() == number
    assert desk.sent == []
