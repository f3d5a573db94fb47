"""The verifier of the pages decides like verify.py: verdicts, words, sentences and stages."""

import base64
import hashlib
import re
import struct
import zipfile
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any
from zlib import Z_SYNC_FLUSH

import pytest
from playwright.sync_api import Page

from tests.core.proof import bundles as kit
from tests.core.proof import test_verify as good_and_bad
from tests.core.proof import test_verify_attacks as attacks
from tests.core.proof import test_verify_packing as packing

KEY, WITNESS = kit.LOG_KEY.vkey, kit.WITNESS.vkey
LOG, RUN = good_and_bad.LOG, good_and_bad.RUN
VERDICTS = """async files => {
  const { verify } = await import("/static/js/verify/verify.js");
  const fileOf = text => new File([Uint8Array.from(atob(text), it => it.charCodeAt(0))], "it");
  const found = [];
  for (const [data, keys, receipt, flip] of files) {
    const options = { keys, flip, receipt: receipt && fileOf(receipt) };
    found.push(await verify(fileOf(data), options));
  }
  return found;
}"""
# Which stage a sentence of verify.py belongs to; the first that is found in it.
STAGES = {
    "tree": r"its proof|proofs\.json: |root|signed log goes on|hash is not there",
    "checkpoint": r"checkpoint: |the key is another",
    "values": r"disclos",
    "bytes": r"malformed|stands here|seq \d+: .* missing|a line is larger|cut off|more than there",
    "chain": r"next n of|prev is|next envelope of its|may stand|length of|seals|log or run",
    "form": r"",
}
Case = tuple[bytes, Sequence[str]]


class Anybody(kit.Signer):
    """A key of small order: one signature holds for every message, and needs no secret."""

    def __init__(self, public: bytes) -> None:
        super().__init__()
        typed = b"\1" + public
        self.id = hashlib.sha256(self.name.encode() + b"\n" + typed).digest()[:4]
        self.vkey = f"{self.name}+{self.id.hex()}+{base64.b64encode(typed).decode()}"

    def signature(self, message: bytes) -> bytes:
        return bytes.fromhex("58" + "66" * 31) + bytes([1]) + bytes(31)


def of(log: kit.Log) -> bytes:
    return kit.packed(kit.log_members(log))


def cases() -> Iterator[Case]:
    """Good files under the right, the wrong and no key, and each known defect."""
    for data in good_and_bad.GOOD.values():
        yield from ((data, keys) for keys in ([KEY], [], [kit.OTHER_KEY.vkey], ["x"], [WITNESS]))
    yield kit.packed(kit.log_members(LOG, kit.LOG_KEY, kit.WITNESS)), [KEY, WITNESS]
    yield good_and_bad.GOOD["log"], [KEY, WITNESS]
    yield from ((data, [KEY]) for data in (*damaged(), *hostile()))
    for signers in ([SAME_NAME], [SAME_ID], [SAME_ID, kit.LOG_KEY], [WITNESSING], [kit.WITNESS]):
        data = kit.packed(kit.log_members(LOG, *signers))
        yield from ((data, keys) for keys in ([KEY], [], [signers[0].vkey], [KEY, WITNESS]))
    for public in (bytes([1]) + bytes(31), b"\xee" + b"\xff" * 30 + b"\x7f"):
        anybody = Anybody(public)
        yield kit.packed(kit.log_members(LOG, anybody)), [anybody.vkey]
    yield good_and_bad.GOOD["log"], [KEY + "A" * 400_000]


def damaged() -> Iterator[bytes]:
    """The files that the tests of verify.py make, damaged in one way each."""
    yield from (of(good_and_bad.with_envelope(each)) for each in fields())
    for chain in (*good_and_bad.GOOD_CHAINS, *good_and_bad.BAD_CHAINS):
        yield from (of(chain), kit.packed(kit.run_members(chain, RUN)))
    members, whole = kit.run_members(LOG, RUN), kit.log_members(LOG)
    for data in good_and_bad.BAD_DISCLOSURES.values():
        yield from (kit.packed({**each, "disclosures.ndjson": data}) for each in (whole, members))
    yield from (attacks.manifested(members, **each) for each in attacks.BAD_MANIFESTS)
    for name in members:
        yield kit.packed(attacks.without(members, name))
        yield kit.packed({**members, name: members[name] + b"\n"})
    yield from (kit.packed({**whole, name: b"{}"}) for name in ("notes.txt", "proofs.json"))
    yield kit.packed({**whole, packing.NAME: bytes(2**21)})  # a zip bomb
    packed = packing.deflated(packing.WHOLE[packing.NAME])
    yield from map(packing.with_stored, (packed, packed + packing.MORE, packed[:-4], b""))
    yield packing.with_stored(packed, {packing.NAME: packing.NAME.upper()})
    yield from others()


def fields() -> Iterator[dict[str, Any]]:
    for name, values in good_and_bad.BAD_FIELDS.items():
        yield from ({name.partition(" ")[0]: value} for value in values)


def others() -> Iterator[bytes]:
    """Exports, receipts, files that were cut off, and files of other kinds."""
    lines, run = LOG.lines, [LOG.lines[seq] for seq in LOG.of(RUN)]
    for some in (lines, lines[:-1], lines[1:], lines[::-1], run, run[1:], [*run, run[-1]]):
        yield from (kit.export(some, note) for note in (LOG.note(), LOG.note(size=5), None))
    for trailer in ({"head": kit.HASH}, {"count": "9"}, {"first": 3}, {"filter": "rule"}):
        yield kit.export(lines, LOG.note(), **trailer)
    said: dict[str, Any]
    for said in ({"seq": 4}, {"n": 99}, {"n": 4}, {"proof": []}, {"more": 1}, {"run": "x"}):
        yield kit.receipt(LOG, 3, **said)
    yield from (b"", b"seq,run\n1,2\n", b"{", b"PK\5\6" + bytes(18), kit.packed({"x": b""}))
    for data in (of(LOG), kit.export(lines, None), kit.receipt(LOG, 3)):
        yield from (data[:end] for end in range(0, len(data), 200))


RULE, AT = b'"CAP-001"', b"1700000000005"
# Bytes of an envelope that are signed as they are, and what stands for them.
TEXTS = [
    (RULE, RULE + b',"rule":"CAP-001"'), (b'"rule":', b'"ru\\u006ce":"","rule":'),
    (b'"n":4', b'"n":4.0'), (b'"n":4', b'"n":4e0'), (AT, b"-0"), (AT, b"9007199254740993"),
    (AT, b"9007199254740991"), (AT, b"1e400"), (AT, b"NaN"), (RULE, b'"\\u0043AP"'),
    (RULE, b'"\\/"'), (RULE, b'"\\ud800"'), (RULE, b'"\xed\xa0\x80"'),
    (RULE, b'"\\u0000\\u001f\\b\x7f"'), (RULE, b'"\0"'), (RULE, b'"\\u001F"'),
    (RULE, b'"\xc1\x81"'), (b"{", b"\xef\xbb\xbf{"), (b"{", b'{"__proto__":{"x":1},'),
    (b"}", b"}{}"), (b"{", b'{"constructor":"x",'), (b'"refused"', b'"constructor"'),
    (b"}", b"}\0"), (b"}", b"}\r"),
]  # fmt: skip
# The same of a receipt, and of the trailer of an export.
WORDS = [
    (b'"seq": 3', b'"seq": 3.0'), (b'"seq": 3', b'"seq": -0'),
    (b'"seq": 3', b'"seq": 3, "s\\u0065q": 3'), (b'"seq": 3', b'"seq": 3, "\\ud800": 3'),
    (b'"seq": 3', b'"__proto__": {"seq": 3}'), (b"}", b"}\0"),
    (b'"proof": [', b'"proof": ["\\ud800",'), (b'"checkpoint": "', b'"checkpoint": "\\ud800'),
    (b'"proof": [', b'"proof": ["' + b"A" * 400_000 + b'",'), (b"{", b"\xef\xbb\xbf{"),
    (b"}", b"} \t\v\f"), (b'"proof": [', b'"proof": [' + b"[" * 63 + b"]" * 63 + b","),
    (b'"count":', b'"count":1,"count":'), (b'"head"', b'"first":null,"head"'),
    (b'"head"', b'"__proto__":{"first":3},"head"'), (b"}\n", b"}\r\n"),
]  # fmt: skip
SAME_NAME, SAME_ID = kit.Signer(seed=9), kit.Signer(seed=9)
WITNESSING = kit.Signer(kit.ORIGIN, 3, 4)
SAME_ID.id = kit.LOG_KEY.id


def hostile() -> Iterator[bytes]:
    """Files that are made so that two readers may see different things in them."""
    for old, new in TEXTS:
        log = good_and_bad.with_envelope({})
        log.lines[5] = new.join(log.lines[5].rsplit(old, 1))
        yield of(log)
    whole, other = kit.log_members(LOG), kit.Log("")
    for old, new in WORDS:
        for data in (kit.receipt(LOG, 3), kit.export(LOG.lines, LOG.note())):
            yield new.join(data.rsplit(old, 1))
    for root in (kit.root([]), kit.root(LOG.leaves)):  # a log of no envelopes
        yield kit.export(LOG.lines, kit.note(0, root))
        yield kit.packed({**whole, "checkpoint": kit.note(0, root)})
    other.add("log", "genesis")
    other.add("log", "policy", log="x")
    yield kit.export(other.lines, None)
    mixed = kit.whole_log()
    mixed.add(kit.run_id(9), "genesis", log="log.example/other")
    yield from (of(mixed), kit.packed(kit.run_members(mixed, kit.run_id(9))))
    yield kit.packed({**whole, "disclosures.ndjson": kit.dumps({"r": "A" * 400_000})})
    lines = packing.WHOLE[packing.NAME]
    yield packing.with_stored(packing.deflated(lines) + bytes(40_000))
    yield packing.with_stored(packing.deflated(lines, Z_SYNC_FLUSH))
    more = ("__proto__", "constructor", "\xff", "../checkpoint")
    yield from (kit.packed({**whole, name: b"{}"}) for name in more)
    record = b"PK\6\6" + bytes(52) + b"PK\6\7" + struct.pack("<IQI", 0, 0, 1)  # of zip64
    for extra in (b"UT\5\0\3abcd", b"UT\xff\0", b"UT" + struct.pack("<H", len(record)) + record):
        yield zipped(whole, extra=extra)
    yield from (zipped(whole, extract_version=version) for version in (63, 64, 255))
    yield zipped(whole, b"lost")  # each place that it names is four bytes too far
    named = {**attacks.without(whole, "checkpoint"), "checkpoint_": whole["checkpoint"]}
    yield kit.packed(named).replace(b"checkpoint_", b"checkpoint\0")
    yield zipped(whole)[:-2] + b"\7\0"  # the length of a comment that is not there


def zipped(members: dict[str, bytes], less: bytes = b"", **said: Any) -> bytes:
    """A bundle that lost its first bytes, or whose members have a field out of the ordinary."""
    file = BytesIO(less)
    with zipfile.ZipFile(file, "a") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            for field, value in said.items():
                setattr(info, field, value)
            archive.writestr(info, data)
    return file.getvalue()[len(less) :]


def judged(page: Page, files: Sequence[Case]) -> list[dict[str, Any]]:
    sent = [[base64.b64encode(data).decode(), list(keys), None, None] for data, keys in files]
    found: list[dict[str, Any]] = page.evaluate(VERDICTS, sent)
    return found


def told(data: bytes, keys: Sequence[str]) -> tuple[int, list[str]]:
    """Exit code and lines of verify.py."""
    witnesses = WITNESS, WITNESSING.vkey
    named = ((f"--{'witness' if key in witnesses else 'key'}", key) for key in keys)
    code, text = kit.judged(data, *(word for pair in named for word in pair))
    return code, text.rstrip("\n").split("\n")


def test_each_file_is_judged_as_verify_py_judges_it(page: Page) -> None:
    page.goto("/verify/")
    files, agreed, seen = list(cases()), 0, set()
    for (data, keys), found in zip(files, judged(page, files), strict=True):
        code, (word, *lines) = told(data, keys)
        assert (found["code"], found["word"]) == (code, word), (lines, found)
        states = {each["name"]: each["state"] for each in found["stages"]}
        failed = [name for name, state in states.items() if state == "fail"]
        if code in (0, 3):
            assert (found["lines"], failed) == (lines, [])
        else:
            stage = next(name for name, sign in STAGES.items() if re.search(sign, lines[0]))
            assert failed == [stage if code == 1 else failed[0]], (lines, found["stages"])
            assert code != 1 or found["lines"][0].split(":")[0] == lines[0].split(":")[0]
            seen |= {*failed}
        agreed += 1
    assert (agreed > 250, seen) == (True, {*STAGES})


def test_a_stage_that_was_not_reached_does_not_pass(page: Page) -> None:
    page.goto("/verify/")
    bad = kit.whole_log()
    bad.lines[2] = b"{}"
    (found,) = judged(page, [(of(bad), [KEY])])
    states = {each["name"]: (each["state"], each["checks"]) for each in found["stages"]}
    assert states["bytes"] == ("fail", 3)
    assert states["chain"] == ("skip", 2)
    assert states["tree"] == ("skip", 0)
    assert (states["form"][0], states["checkpoint"]) == ("pass", ("pass", 1))


@pytest.mark.parametrize(
    ("log", "word", "says"),
    [
        (LOG, "PASS", "is in this log, unchanged."),
        (attacks.rewritten(LOG, 4), "DIVERGED", "another event is at its place"),
        (good_and_bad.chain("intent"), "STALE", "the log ends before its place"),
    ],
    ids=["unchanged", "rewritten", "cut off"],
)
def test_a_receipt_is_compared_with_the_log(page: Page, log: kit.Log, word: str, says: str) -> None:
    page.goto("/verify/")
    pair = [base64.b64encode(each).decode() for each in (of(log), kit.receipt(LOG, 6))]
    (found,) = page.evaluate(VERDICTS, [[pair[0], [KEY], pair[1], None]])
    assert (found["word"], says in found["says"]) == (word, True)
    assert found["says"].startswith(f"Your receipt's event #{LOG.places[6][1] + 1} ")
    (stage,) = [each for each in found["stages"] if each["name"] == "receipt"]
    assert stage["state"] == ("pass" if word == "PASS" else "fail")
