"""The verifier's rules: what a good file is, and each thing that makes it a bad one."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from nanovm_core.verify import main
from tests.core.kit.builders import ROOT
from tests.core.proof import bundles as kit

KEY = ("--key", kit.LOG_KEY.vkey)
RUN = kit.run_id(0)
LOG = kit.whole_log()
LONG = b"".join(kit.leaf(b"%d" % number).hex().encode() for number in range(17_000))


def verdict(data: bytes, *arguments: str) -> tuple[int, str]:
    return kit.judged(data, *KEY, *arguments)


def of(log: kit.Log) -> tuple[int, str]:
    return verdict(kit.packed(kit.log_members(log)))


GOOD = {
    "log": kit.packed(kit.log_members(LOG)),
    "log, disclosed": kit.packed(kit.log_members(LOG, disclosures=kit.disclosed())),
    "run": kit.packed(kit.run_members(LOG, RUN)),
    "run, disclosed": kit.packed(kit.run_members(LOG, RUN, disclosures=kit.disclosed())),
    "run log": kit.packed(kit.run_members(LOG, "log")),
    "export": kit.export(LOG.lines, LOG.note()),
    "receipt": kit.receipt(LOG, 3),
}


@pytest.mark.parametrize("name", GOOD)
def test_good_files_pass_under_the_key_and_say_what_they_do_not_prove(name: str) -> None:
    code, text = verdict(GOOD[name])
    assert (code, text.splitlines()[:2]) == (0, ["PASS", "grade: SIGNED"])
    assert "What this does not prove:\n- that what was recorded is true" in text


@pytest.mark.parametrize("name", GOOD)
def test_what_no_key_or_another_key_pins_does_not_pass(name: str) -> None:
    code, text = kit.judged(GOOD[name])
    assert (code, text.splitlines()[0]) == (3, "UNPINNED")
    assert "says nothing against the operator" in text
    for key in (kit.OTHER_KEY, kit.Signer("log.example/other")):
        code, text = kit.judged(GOOD[name], "--key", key.vkey)
        assert (code, text.splitlines()[0]) == (1, "INVALID")
    assert kit.judged(GOOD[name], "--key", kit.OTHER_KEY.vkey, *KEY)[0] == 0


def test_a_key_of_another_name_may_sign_beside_but_not_instead() -> None:
    other = kit.Signer("log.example/other", 2)
    data = kit.packed(kit.log_members(LOG, kit.LOG_KEY, other))
    assert verdict(data)[0] == 0
    code, text = kit.judged(data, "--key", other.vkey)
    assert (code, "another log's" in text) == (1, True)


def test_the_run_of_a_bundle_may_go_on() -> None:
    log = kit.whole_log()
    kit.begin(log, kit.run_id(7))
    code, text = verdict(kit.packed(kit.run_members(log, kit.run_id(7))))
    assert (code, "it has not ended" in text) == (0, True)
    assert "nothing was left out at the run's end" in text


def test_a_witness_must_have_cosigned() -> None:
    asked = ("--witness", kit.WITNESS.vkey)
    second = kit.Signer("witness.example/second", 5, 4)
    data = kit.packed(kit.log_members(LOG, kit.LOG_KEY, kit.WITNESS))
    code, text = verdict(data, *asked)
    assert (code, text.splitlines()[:2]) == (0, ["PASS", "grade: WITNESSED"])
    assert f"{kit.WITNESS.name} cosigned it at " in text
    assert kit.judged(data, *asked)[0] == 3
    for args in (asked, (*asked, "--witness", second.vkey)):
        code, text = verdict(GOOD["log"], *args)
        assert (code, text.splitlines()[0]) == (3, "UNWITNESSED")
    assert verdict(data, *asked, "--witness", second.vkey)[0] == 3


def with_envelope(change: Mapping[str, Any], less: str = "") -> kit.Log:
    """A log, signed as it is, whose seq 5 was made differently from the start."""
    log = kit.Log()
    log.add("log", "genesis")
    log.add(RUN, "genesis")
    for _ in range(4):
        log.add(RUN, "refused", rule="CAP-001")
    envelope = {**json.loads(log.lines.pop()), **change}
    envelope.pop(less, None)
    log.put({"run": RUN, "n": 4, **envelope})
    log.lines[-1] = kit.dumps(envelope)
    return log


SECRET = {"slot": "payee", "ref": kit.REF, "c": kit.HASH}
BAD_FIELDS: dict[str, tuple[Any, ...]] = {
    "v": ("nanovm-envelope/1", "nanovm-envelope/3", 2, ["nanovm-envelope/2"]),
    "log": ("log.example/other", 1),
    "seq": (4, "5", True),
    "run": (kit.run_id(1), "../../x", "01990000-0000-7000-8000-00000000000A"),
    "n": (5, 3, -1, True),
    "kind": ("paid", ["refused"], "genesis", "key"),
    "at_ms": ("now", -1),
    "prev": (kit.ZEROS, kit.HASH.upper(), 0),
    "step": (None, 1),
    "state": ("running", {"from": "a", "to": "b", "via": "c"}, {"from": 1}),
    "decision": ({"verdict": "BLOCKED", "rules": "CAP-001"},),
    "warrant": ({"id": kit.HASH, "expires_ms": "1"},),
    "budget": ({"gone": 1},),
    "program": ("sha256:" + kit.HASH,),
    "policy": (kit.HASH[:63],),
    "snapshot": (kit.HASH + "\n",),
    "rule": (1,),
    "secrets": ({}, ["payee"], [{"slot": "payee", "ref": kit.REF}], [{**SECRET, "value": "x"}]),
    "secrets of another form": ([{**SECRET, "ref": "vault://secret/x"}], [{**SECRET, "c": "1"}]),
    "why": ("because",),
    "length": (5,),
    "at": (1,),
    "in": (None, {"amount": 1.5}, 2**53, {"é": 1}, json.loads("[" * 70 + "]" * 70)),
}


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_bad_envelope(name: str) -> None:
    """It is signed like any other, so that nothing but the rule itself can find it."""
    assert of(with_envelope({}))[0] == 0
    for value in BAD_FIELDS[name]:
        code, text = of(with_envelope({name.partition(" ")[0]: value}))
        assert (code, text.splitlines()[0]) == (1, "INVALID"), value
        assert text.splitlines()[1].startswith("seq 5: "), value


def test_an_unknown_version_is_named() -> None:
    for version in ("nanovm-envelope/1", "nanovm-envelope/3"):
        code, text = of(with_envelope({"v": version}))
        assert (code, f"malformed: the version {version} is unknown" in text) == (1, True)


def test_of_two_envelopes_that_do_not_fit_the_older_is_named() -> None:
    code, text = of(with_envelope({"prev": kit.HASH}))
    assert (code, text.splitlines()[1][:7]) == (1, "seq 4: ")


@pytest.mark.parametrize("name", ["v", "log", "seq", "run", "n", "kind", "at_ms", "prev"])
def test_needed_field(name: str) -> None:
    code, text = of(with_envelope({}, name))
    assert (code, text.splitlines()[1][:7]) == (1, "seq 5: ")


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"{}", b"null", b"\xff", b"{" * 100_000, b" " + LOG.lines[1]]
)
def test_a_line_that_is_no_envelope(line: bytes) -> None:
    log = kit.whole_log()
    log.lines[2] = line
    code, text = of(log)
    assert (code, text.splitlines()[1][:7]) == (1, "seq 2: ")
    assert f"found: {kit.leaf(line).hex()}" in text


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (LOG.lines[:-1], f"seq {len(LOG.lines) - 1}: this envelope is missing"),
        (LOG.lines[1:], "seq 0: another envelope stands here"),
        ([*LOG.lines, LOG.lines[-1]], f"seq {len(LOG.lines)}: an envelope more"),
        ([*LOG.lines[:4], LOG.lines[5], LOG.lines[4], *LOG.lines[6:]], "seq 4: another envelope"),
        ([*LOG.lines, LONG], "a line is larger than"),
    ],
)
def test_lines_too_few_too_many_or_too_long(lines: list[bytes], said: str) -> None:
    members = kit.log_members(LOG)
    data = b"".join(line + b"\n" for line in lines)
    code, text = verdict(kit.packed({**members, "envelopes.ndjson": data}))
    assert (code, text.splitlines()[1][: len(said)]) == (1, said)


@pytest.mark.parametrize("rest", [b"x", LOG.lines[0]])
def test_nothing_follows_the_last_newline(rest: bytes) -> None:
    members = kit.log_members(LOG)
    code, text = verdict(
        kit.packed({**members, "envelopes.ndjson": members["envelopes.ndjson"] + rest})
    )
    assert (code, "something was cut off" in text) == (1, True)


def chain(*kinds: str, **last: Any) -> kit.Log:
    log = kit.Log()
    log.add(RUN, "genesis")
    for kind in kinds[:-1]:
        log.add(RUN, kind)
    log.add(RUN, kinds[-1], **last)
    return log


GOOD_CHAINS = [
    chain("intent", "result", "terminal"),
    chain("terminal", "refused", "ignored", "erasure_requested", "erasure_done", why="words"),
    chain("terminal", "erasure_requested", "erasure_refused", ground="§ 147 AO", until_ms=1),
]
BAD_CHAINS = [
    chain("terminal", "intent"),
    chain("terminal", "terminal"),
    chain("terminal", "refused", "result"),
    chain("terminal", length=1),
    chain("terminal", length=3),
    chain("terminal", length=None),
    chain("genesis"),
    chain("intent", "integrity", prev=kit.ZEROS, at=1, expected=kit.HASH, found=kit.HASH),
    chain("intent", "integrity", at=1),
    chain("terminal", "integrity", prev=kit.ZEROS, at=0),
]


def test_good_chains() -> None:
    assert [of(each)[0] for each in GOOD_CHAINS] == [0, 0, 0]


@pytest.mark.parametrize("number", range(len(BAD_CHAINS)))
def test_bad_chain(number: int) -> None:
    assert of(BAD_CHAINS[number])[0] == 1
    assert verdict(kit.packed(kit.run_members(BAD_CHAINS[number], RUN)))[0] == 1


@pytest.mark.parametrize("run", [RUN, "log"])
@pytest.mark.parametrize("first", [{"kind": "intent"}, {"n": 1}, {"prev": kit.HASH}])
def test_a_run_begins_with_its_genesis(run: str, first: dict[str, Any]) -> None:
    log = kit.whole_log(0)
    log.add(run, **{"kind": "genesis", "n": 0, "prev": kit.ZEROS, **first})
    assert of(log)[0] == 1


@pytest.mark.parametrize("kind", ["capability", "policy", "budget", "key", "restore"])
def test_what_belongs_to_the_log_alone(kind: str) -> None:
    for run, code in (("log", 0), (RUN, 1)):
        log = kit.whole_log()
        log.add(run, kind, vkey=kit.OTHER_KEY.vkey)
        assert of(log)[0] == code


def test_sealed_damage_names_the_damaged_envelope() -> None:
    """The log goes on, and its bundle is INVALID at that place for ever."""
    log = kit.whole_log(0)
    for kind in ("genesis", "intent", "result"):
        log.add(RUN, kind)
    whole, damaged = log.lines[4], log.lines[4].replace(b"result", b"failed")
    log.add(RUN, "integrity", prev=kit.ZEROS, at=2, expected=kit.leaf(whole).hex(), found=kit.HASH)
    log.add(RUN, "terminal", outcome="failed")
    members = kit.log_members(log)
    members["envelopes.ndjson"] = members["envelopes.ndjson"].replace(whole, damaged)
    code, text = verdict(kit.packed(members))
    assert (code, text.splitlines()[1][:29]) == (1, "seq 4: the log itself seals, ")
    assert f"expected: {kit.leaf(whole).hex()}\nfound: {kit.leaf(damaged).hex()}\n" in text
    assert verdict(kit.packed(kit.run_members(log, "log")))[0] == 0  # other runs' proofs still hold


BAD_DISCLOSURES = {
    "another value": kit.disclosed(kit.VALUE + "."),
    "another r": kit.disclosed(r=bytes(32)),
    "unknown ref": kit.disclosed(ref=kit.REF[:-1] + "2"),
    "twice": kit.disclosed() * 2,
    "spaces": json.dumps(json.loads(kit.disclosed())).encode() + b"\n",
    "escapes": kit.disclosed().replace("ë".encode(), b"\\u00eb"),
    "more": kit.dumps({**json.loads(kit.disclosed()), "slot": "payee"}) + b"\n",
    "less": kit.dumps({"ref": kit.REF, "value": kit.VALUE}) + b"\n",
    "short r": kit.dumps({"ref": kit.REF, "value": kit.VALUE, "r": kit.b64(bytes(31))}) + b"\n",
    "types": kit.dumps({"ref": kit.REF, "value": 1, "r": kit.HASH}) + b"\n",
    **{text: f"{text}\n".encode() for text in ("[]", "x", kit.disclosed().decode())},
}


@pytest.mark.parametrize("name", BAD_DISCLOSURES)
def test_bad_disclosure(name: str) -> None:
    for members in (kit.log_members(LOG), kit.run_members(LOG, RUN)):
        code, text = verdict(kit.packed({**members, "disclosures.ndjson": BAD_DISCLOSURES[name]}))
        assert (code, text.splitlines()[0]) == (1, "INVALID")


def test_a_disclosure_may_hold_r_in_base64() -> None:
    line = kit.dumps({"ref": kit.REF, "value": kit.VALUE, "r": kit.b64(bytes(range(32)))}) + b"\n"
    assert verdict(kit.packed(kit.log_members(LOG, disclosures=line)))[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--key", bad] for bad in ("x", kit.WITNESS.vkey, kit.LOG_KEY.vkey[:-1])),
        *(["--witness", bad] for bad in (kit.LOG_KEY.vkey, "")),
    ],
)
def test_wrong_use(arguments: list[str]) -> None:
    code, text = kit.judged(GOOD["log"], *arguments)
    assert (code, text.splitlines()[0]) == (2, "UNREADABLE")
    assert main([str(ROOT)]) == 2


def test_it_runs_alone(tmp_path: Any) -> None:
    """Isolated, from another folder, on an ASCII terminal; and wrong use is 2."""
    program = (sys.executable, "-I", str(ROOT / "nanovm_core/verify.py"))
    file = tmp_path / "bundle.zip"
    file.write_bytes(GOOD["run, disclosed"])
    codes = {(str(file), *KEY): 0, (str(tmp_path / "nowhere"),): 2, (): 2}
    for arguments, code in codes.items():
        found = subprocess.run(
            [*program, *arguments], cwd=tmp_path, capture_output=True, env={}, check=False
        )
        assert found.returncode == code, found
        assert b"Traceback" not in found.stderr


def test_foreign_text_does_not_steer_the_terminal() -> None:
    log = kit.whole_log(0)
    log.add("log", "refused", **{"\x1b[2J": 1})
    members = kit.log_members(log)
    manifest = json.loads(members["manifest.json"]) | {"log": "\x1b]0;x\x07" + kit.ORIGIN}
    for data in (
        kit.packed(members),
        kit.packed({**members, "manifest.json": kit.dumps(manifest)}),
    ):
        code, text = verdict(data)
        assert code == 1
        assert "\x1b" not in text
        assert "\\x1b" in text
