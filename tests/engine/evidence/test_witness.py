"""The witness cosigns what continues what it saw, and the signer asks it."""

import http.client
import signal
import threading
from base64 import b64encode
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from engine.evidence import bundles, signer, witness
from engine.evidence.signer import cosigning
from engine.evidence.witness import Reply, Witness, WitnessServer
from engine.models import Workspace
from engine.runtime import chains
from engine.store.state_file import StateFile, file_name
from nanovm_core import verify
from nanovm_core.proof import merkle, notes
from nanovm_core.proof.merkle import EMPTY_ROOT, Place
from nanovm_core.proof.notes import Head
from tests.core.proof.bundles import vectors
from tests.kit.house import House, failing_once
from tests.kit.trees import grown

LOG = "nanovm.localhost/aaaa"
NAME = "witness.example/w"
KEY, OTHER_KEY = (Ed25519PrivateKey.from_private_bytes(bytes(range(n, n + 32))) for n in (0, 1))
LEAVES = [merkle.leaf_hash(bytes([each])) for each in range(12)]
NODES: dict[Place, bytes] = {(at, to): n for at, to, n in merkle.append((), 0, LEAVES)[1]}


def head(size: int, *, origin: str = LOG, root: bytes = b"") -> Head:
    """The log's tree at a size."""
    edge = (NODES[place] for place in merkle.edge_places(size))
    return Head(origin=origin, size=size, root=root or merkle.root([*edge]))


def note(said: Head, key: Ed25519PrivateKey = KEY) -> bytes:
    return notes.sign(said.text, said.origin, [key])


def proof(old: int, new: int) -> list[bytes]:
    return merkle.consistency(old, new, lambda places: {each: NODES[each] for each in places})


def request(old: object, hashes: Sequence[bytes], checkpoint: bytes) -> bytes:
    lines = [f"old {old}", *(b64encode(each).decode() for each in hashes)]
    return "".join(f"{line}\n" for line in lines).encode() + b"\n" + checkpoint


def step(old: int, new: int) -> bytes:
    """The request that goes on from one size to another."""
    return request(old, proof(old, new), note(head(new)))


@pytest.fixture
def party(tmp_path: Path) -> Witness:
    return Witness(NAME, tmp_path / "state", [notes.verifier(LOG, KEY)])


def status(answer: Reply) -> int:
    """The status of an answer, which is one line of text."""
    assert answer.text.find("\n") == len(answer.text) - 1
    return answer.status


def test_first_checkpoint_and_those_that_continue_it_are_cosigned(party: Witness) -> None:
    for old, new in ((0, 5), (5, 5), (5, 8), (8, 12)):
        answer = party.add_checkpoint(step(old, new))
        assert status(answer) == 200
        cosigned = note(head(new)) + answer.text.encode()
        opened = notes.open_note(cosigned, [party.verifier])
        assert opened.verified[0].time > 1_700_000_000
    for old, new in ((0, 12), (5, 8), (11, 12)):
        assert party.add_checkpoint(step(old, new)) == (409, "12\n", "text/x.tlog.size")


def test_bad_proof_is_refused_and_moves_nothing(party: Witness, tmp_path: Path) -> None:
    party.add_checkpoint(step(0, 5))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    good = proof(5, 8)
    bad = [
        request(5, [], note(head(8))),
        request(5, good[:-1], note(head(8))),
        request(5, [*good, bytes(32)], note(head(8))),
        request(5, [bytes(32), *good[1:]], note(head(8))),
        request(5, good, note(head(8, root=bytes(32)))),
        request(5, [], note(head(5, root=bytes(32)))),
        request(5, good, note(head(5))),
    ]
    assert [status(party.add_checkpoint(each)) for each in bad] == [422] * len(bad)
    assert {path: path.read_bytes() for path in before} == before


def test_first_checkpoint_takes_no_proof_and_an_empty_tree_has_its_root(party: Witness) -> None:
    assert status(party.add_checkpoint(request(0, [bytes(32)], note(head(5))))) == 422
    assert status(party.add_checkpoint(request(0, [], note(head(0, root=bytes(32)))))) == 422
    assert status(party.add_checkpoint(request(0, [], note(head(0, root=EMPTY_ROOT))))) == 200
    assert status(party.add_checkpoint(step(0, 5))) == 200


MALFORMED = [
    *(b"", b"\n", b"old 0\n", b"old 0\n\n", b"old 0\n\nx", b"new 0\n\n", b"\xff\n\n"),
    *(request(old, [], note(head(5))) for old in ("00", "-1", "x", "", 9)),
    *(request(0, [bytes(31)], note(head(5))), b"old 0\nAAAA\n\n" + note(head(5))),
    request(0, [bytes(32)], note(head(5))).replace(b"A=\n\n", b"B=\n\n"),
    request(0, [bytes(32)] * 64, note(head(5))),
    *(request(0, [], notes.sign("a text\n", LOG, [KEY])), request(0, [], note(head(5))[:-1])),
]


def test_malformed_requests_and_unknown_logs_and_keys_are_refused(party: Witness) -> None:
    answers = [status(party.add_checkpoint(body)) for body in MALFORMED]
    assert answers == [400] * len(MALFORMED)
    unknown = note(head(5, origin="nanovm.localhost/bbbb"))
    changed = note(head(5)).replace(b"\n5\n", b"\n6\n")
    for each, expected in ((unknown, 404), (note(head(5), OTHER_KEY), 403), (changed, 403)):
        assert status(party.add_checkpoint(request(0, [], each))) == expected


def test_the_published_update_is_answered_as_it_says(tmp_path: Path) -> None:
    published = vectors("checkpoint_witness.json")["witness_update"]
    party = Witness(NAME, tmp_path / "state", [notes.parse_vkey(published["log_vkey"])])
    init, new = published["init"].encode(), published["next"].encode()
    hashes = [bytes.fromhex(each) for each in published["consistency_proof_hex"]]
    asked = [(0, [], init), (0, [], new), (5, [], new), (5, hashes[::-1], new), (5, hashes, new)]
    asked += [(8, [], init), (5, hashes, new)]
    said = [status(party.add_checkpoint(request(*each))) for each in asked]
    assert said == [200, 409, 422, 422, 200, 400, 409]


def test_memory_survives_and_is_written_before_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [notes.verifier(LOG, KEY)]
    first = Witness(NAME, tmp_path / "state", logs)
    first.add_checkpoint(step(0, 5))
    again = Witness(NAME, tmp_path / "state", logs)
    assert again.verifier == first.verifier
    assert status(again.add_checkpoint(step(0, 8))) == 409
    with monkeypatch.context() as patch:
        patch.setattr(StateFile, "replace", failing_once(StateFile.replace, OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            again.add_checkpoint(step(5, 8))
    assert status(again.add_checkpoint(step(5, 8))) == 200
    (tmp_path / "state" / file_name(LOG)).write_bytes(b"")  # damaged, it is no empty one
    assert status(again.add_checkpoint(step(0, 8))) == 500


def test_of_two_forks_at_once_one_is_cosigned(party: Witness) -> None:
    party.add_checkpoint(step(0, 5))
    other = [*LEAVES[:5], *(merkle.leaf_hash(b"other%d" % each) for each in range(3))]
    edge, nodes = merkle.append((), 0, other)
    table = {(level, index): node for level, index, node in nodes}
    grown = merkle.consistency(5, 8, lambda places: {each: table[each] for each in places})
    forked = note(head(8, root=merkle.root(edge)))
    both = [step(5, 8), request(5, grown, forked)]
    with ThreadPoolExecutor(2) as pool:
        answers = [each.status for _ in range(4) for each in pool.map(party.add_checkpoint, both)]
    assert answers.count(200) == 1
    later = [step(8, 8), request(8, [], forked)]
    assert {status(party.add_checkpoint(each)) for each in later} == {200, 422}


@contextmanager
def serving(party: Witness) -> Iterator[WitnessServer]:
    """The witness behind a port of this machine."""
    with WitnessServer(("127.0.0.1", 0), party) as found:
        threading.Thread(target=found.serve_forever, args=(0.05,), daemon=True).start()
        yield found
        found.shutdown()


def connected(url: str) -> http.client.HTTPConnection:
    address = urlsplit(url)
    return http.client.HTTPConnection(address.hostname or "", address.port, timeout=20)


def asked(connection: http.client.HTTPConnection, body: bytes) -> tuple[int, str | None, bytes]:
    """Status, content type and the beginning of an answer."""
    connection.request("POST", "/add-checkpoint", body)
    answer = connection.getresponse()
    return answer.status, answer.getheader("Content-Type"), answer.read()[:3]


def test_server_speaks_add_checkpoint_over_one_connection(party: Witness) -> None:
    with serving(party) as server, closing(connected(server.url)) as connection:
        said = [asked(connection, body) for body in (step(0, 5), step(0, 8), step(5, 8))]
    good = (200, "text/plain; charset=utf-8", "\u2014".encode())
    assert said == [good, (409, "text/x.tlog.size", b"5\n"), good]


@pytest.mark.parametrize(
    ("path", "header", "expected"),
    [
        ("/add-checkpoint", ("Content-Length", "65537"), 413),
        ("/add-checkpoint", ("Content-Length", "9" * 30), 400),
        ("/add-checkpoint", ("Content-Length", "-1"), 400),
        ("/add-checkpoint", ("Transfer-Encoding", "chunked"), 400),
        ("/elsewhere", ("Content-Length", "0"), 404),
    ],
)
def test_server_bounds_what_it_reads(
    party: Witness, path: str, header: tuple[str, str], expected: int
) -> None:
    with serving(party) as server, closing(connected(server.url)) as connection:
        connection.request("POST", path, headers=dict([header]))
        assert connection.getresponse().status == expected


def test_server_answers_so_many_at_a_time_and_closes_on_silence(
    party: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witness._Handler, "timeout", 1)
    with serving(party) as server:
        server.places = threading.BoundedSemaphore(1)
        with closing(connected(server.url)) as silent:
            silent.putrequest("POST", "/add-checkpoint")
            silent.putheader("Content-Length", "9")
            silent.endheaders()
            while server.places._value:  # until its place is taken
                pass
            with closing(connected(server.url)) as connection:
                assert asked(connection, step(0, 5))[0] == 503
            assert silent.sock.recv(100) == b""
        with closing(connected(server.url)) as connection:
            assert asked(connection, step(0, 5))[0] == 200


@pytest.fixture
def log(house: House) -> Workspace:
    """A log of five envelopes, signed before there was a witness."""
    log = grown(chains.create(), 4)
    signer.checkpoint(log.id)
    return log


@pytest.fixture
def cosigner(
    log: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[WitnessServer]:
    """A witness of that log, which the signer is told to ask."""
    party = Witness(NAME, tmp_path / "cosigner", signer.verifiers(log.origin))
    with serving(party) as found:
        monkeypatch.setenv("NANOVM_WITNESS", f"{found.url} {party.verifier.vkey}")
        yield found


def judged(log: Workspace, by: WitnessServer, file: Path) -> int:
    """What the stranger says who asks for the witness."""
    row = bundles.newest(log)
    assert row is not None
    bundles.write_bundle(log, None, file, row)
    key = signer.verifiers(log.origin)[0].vkey
    return verify.main([str(file), "--key", key, "--witness", by.witness.verifier.vkey])


def test_signer_obtains_the_cosignature(
    log: Workspace, cosigner: WitnessServer, tmp_path: Path
) -> None:
    assert judged(log, cosigner, tmp_path / "b.zip") == 3
    signer.checkpoint(log.id)  # the same size: nothing is signed anew, the witness is asked
    assert judged(log, cosigner, tmp_path / "b.zip") == 0
    row = signer.checkpoint(log.id)
    for count in (1, 6, 3):
        row = signer.checkpoint(grown(log, count).id)
        assert judged(log, cosigner, tmp_path / "b.zip") == 0
        assert signer.checkpoint(log.id).id == row.id
    assert row.size == 15


def test_log_goes_on_while_its_witness_is_silent(
    log: Workspace, cosigner: WitnessServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:  # nobody listens there
        patch.setenv("NANOVM_WITNESS", f"http://127.0.0.1:1 {cosigner.witness.verifier.vkey}")
        assert signer.checkpoint(grown(log, 2).id).size == 7
        assert judged(log, cosigner, tmp_path / "b.zip") == 3
    signer.checkpoint(grown(log, 2).id)
    assert judged(log, cosigner, tmp_path / "b.zip") == 0


def test_of_an_answer_the_witness_s_own_signature_alone_is_kept(
    log: Workspace, cosigner: WitnessServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    true, dash = cosigning._post, "\u2014 ".encode()

    def more(*args: Any) -> tuple[int, bytes]:
        status, body = true(*args)
        return status, body + notes.cosign("x\n", "other.example/w", OTHER_KEY, 1).line.encode()

    monkeypatch.setattr(cosigning, "_post", more)
    note = bytes(signer.checkpoint(grown(log, 1).id).note)
    assert (note.count(dash), b"other.example/w" in note) == (2, False)
    other = notes.verifier(NAME, OTHER_KEY, notes.COSIGNATURE)  # somebody else is asked for
    monkeypatch.setenv("NANOVM_WITNESS", f"{cosigner.url} {other.vkey}")
    assert bytes(signer.checkpoint(grown(log, 1).id).note).count(dash) == 1


def test_witness_that_saw_a_fork_does_not_cosign(
    log: Workspace, cosigner: WitnessServer, tmp_path: Path
) -> None:
    key = Ed25519PrivateKey.from_private_bytes((tmp_path / "signer" / "key").read_bytes())
    fork = notes.sign(Head(origin=log.origin, size=9, root=bytes(32)).text, log.origin, [key])
    assert cosigner.witness.add_checkpoint(request(0, [], fork)).status == 200
    signer.checkpoint(grown(log, 8).id)
    assert judged(log, cosigner, tmp_path / "b.zip") == 3


def test_command_serves_and_ends_cleanly(house: House, log: Workspace) -> None:
    vkey = signer.verifiers(log.origin)[0].vkey
    words = ("witness", "--listen", "127.0.0.1:0", "--log", vkey)
    row = signer.checkpoint(log.id)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with house.running(*words) as (_, ready), closing(connected(ready["url"])) as connection:
        assert asked(connection, request(0, [], bytes(row.note)))[0] == 200
    assert (house.folder / "witness" / file_name(log.origin)).exists()
    for listen, key in (("x", vkey), ("127.0.0.1:0", "x"), ("127.0.0.1:0", ready["vkey"])):
        assert house.command("witness", "--listen", listen, "--log", key).returncode == 2
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == blocked  # one that did not start
    wrong = house.command("signer", "--witness", "ftp://x", ready["vkey"])
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
