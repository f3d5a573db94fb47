"""The witness cosigns what continues what it saw, and the signer asks it."""

import http.client
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from nanovm_core.proof import merkle, notes
from nanovm_core.proof.merkle import EMPTY_ROOT, Place
from nanovm_core.proof.notes import Head
from pipeline.evidence import witness
from pipeline.evidence.witness import Answer, Witness, WitnessServer
from pipeline.store.state_file import Slot, file_name
from tests.core.proof.bundles import vectors
from tests.pipeline.house import failing_once

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


def status(answer: Answer) -> int:
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


def test_wrong_old_size_is_told_the_right_one(party: Witness) -> None:
    assert party.add_checkpoint(step(5, 8)) == (409, "0\n", "text/x.tlog.size")
    party.add_checkpoint(step(0, 5))
    assert party.add_checkpoint(step(0, 8)) == (409, "5\n", "text/x.tlog.size")
    assert party.add_checkpoint(step(4, 5)) == (409, "5\n", "text/x.tlog.size")
    assert status(party.add_checkpoint(step(5, 8))) == 200


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


def test_unknown_logs_and_keys_are_refused(party: Witness) -> None:
    unknown = note(head(5, origin="nanovm.localhost/bbbb"))
    assert status(party.add_checkpoint(request(0, [], unknown))) == 404
    assert status(party.add_checkpoint(request(0, [], note(head(5), OTHER_KEY)))) == 403
    changed = note(head(5)).replace(b"\n5\n", b"\n6\n")
    assert status(party.add_checkpoint(request(0, [], changed))) == 403


MALFORMED = [
    *(b"", b"\n", b"old 0\n", b"old 0\n\n", b"old 0\n\nx", b"new 0\n\n", b"\xff\n\n"),
    *(request(old, [], note(head(5))) for old in ("00", "-1", "x", "", 9)),
    *(request(0, [bytes(31)], note(head(5))), b"old 0\nAAAA\n\n" + note(head(5))),
    request(0, [bytes(32)], note(head(5))).replace(b"A=\n\n", b"B=\n\n"),
    request(0, [bytes(32)] * 64, note(head(5))),
    *(request(0, [], notes.sign("a text\n", LOG, [KEY])), request(0, [], note(head(5))[:-1])),
]


def test_malformed_requests_are_refused(party: Witness) -> None:
    answers = [status(party.add_checkpoint(body)) for body in MALFORMED]
    assert answers == [400] * len(MALFORMED)


def test_the_published_update_is_answered_as_it_says(tmp_path: Path) -> None:
    published = vectors("checkpoint_witness.json")["witness_update"]
    party = Witness(NAME, tmp_path / "state", [notes.parse_vkey(published["log_vkey"])])
    init, new = published["init"].encode(), published["next"].encode()
    hashes = [bytes.fromhex(each) for each in published["consistency_proof_hex"]]
    assert status(party.add_checkpoint(request(0, [], init))) == 200
    assert status(party.add_checkpoint(request(0, [], new))) == 409
    assert status(party.add_checkpoint(request(5, [], new))) == 422
    assert status(party.add_checkpoint(request(5, hashes[::-1], new))) == 422
    assert status(party.add_checkpoint(request(5, hashes, new))) == 200
    assert status(party.add_checkpoint(request(8, [], init))) == 400
    assert status(party.add_checkpoint(request(5, hashes, new))) == 409


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
        patch.setattr(Slot, "replace", failing_once(Slot.replace, OSError("disk full")))
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
    fork = request(
        5,
        merkle.consistency(5, 8, lambda places: {each: table[each] for each in places}),
        note(head(8, root=merkle.root(edge))),
    )
    with ThreadPoolExecutor(2) as pool:
        for _ in range(4):
            answers = [each.status for each in pool.map(party.add_checkpoint, [step(5, 8), fork])]
            assert sum(answer == 200 for answer in answers) <= 1
    assert status(party.add_checkpoint(step(8, 8))) + status(
        party.add_checkpoint(request(8, [], note(head(8, root=merkle.root(edge)))))
    ) == (200 + 422)


# --- over HTTP -----------------------------------------------------------------------------


@pytest.fixture
def server(party: Witness) -> Iterator[WitnessServer]:
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


def test_server_speaks_add_checkpoint_over_one_connection(server: WitnessServer) -> None:
    with closing(connected(server.url)) as connection:
        said = [asked(connection, body) for body in (step(0, 5), step(0, 8), step(5, 8))]
    good = (200, "text/plain; charset=utf-8", "\u2014".encode())
    assert said == [good, (409, "text/x.tlog.size", b"5\n"), good]


def test_server_bounds_what_it_reads(server: WitnessServer) -> None:
    for path, headers, expected in (
        ("/add-checkpoint", {"Content-Length": "65537"}, 413),
        ("/add-checkpoint", {"Content-Length": "9" * 30}, 400),
        ("/add-checkpoint", {"Content-Length": "-1"}, 400),
        ("/add-checkpoint", {"Transfer-Encoding": "chunked"}, 400),
        ("/elsewhere", {"Content-Length": "0"}, 404),
    ):
        with closing(connected(server.url)) as connection:
            connection.putrequest("POST", path)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            assert connection.getresponse().status == expected


def test_server_answers_so_many_at_a_time_and_closes_on_silence(
    party: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witness._Handler, "timeout", 1)
    with WitnessServer(("127.0.0.1", 0), party) as server:
        server.places = threading.BoundedSemaphore(1)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname or "", address.port or 0), 20) as silent:
            silent.sendall(b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: 9\r\n\r\n")
            while server.places._value:  # until its place is taken
                pass
            with closing(connected(server.url)) as connection:
                assert asked(connection, step(0, 5))[0] == 503
            assert silent.recv(100) == b""
        with closing(connected(server.url)) as connection:
            assert asked(connection, step(0, 5))[0] == 200
        server.shutdown()
