"""The signer asks a witness for its cosignature, and keeps that alone."""

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from nanovm_core import verify
from nanovm_core.proof import notes
from nanovm_core.proof.notes import Head
from pipeline.evidence import bundles, signer
from pipeline.evidence.signer import cosigning
from pipeline.evidence.witness import Witness, WitnessServer
from pipeline.models import Workspace
from pipeline.store import workspaces
from pipeline.store.state_file import file_name
from tests.pipeline.evidence.test_witness import NAME, OTHER_KEY, connected, request
from tests.pipeline.house import House
from tests.pipeline.trees import grown


@pytest.fixture
def log(house: House) -> Workspace:
    """A log of five envelopes, signed before there was a witness."""
    log = grown(workspaces.create(), 4)
    signer.checkpoint(log.id)
    return log


@pytest.fixture
def cosigner(
    log: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[WitnessServer]:
    """A witness of that log, which the signer is told to ask."""
    party = Witness(NAME, tmp_path / "cosigner", signer.verifiers(log.origin))
    with WitnessServer(("127.0.0.1", 0), party) as found:
        threading.Thread(target=found.serve_forever, args=(0.05,), daemon=True).start()
        monkeypatch.setenv("NANOVM_WITNESS", f"{found.url} {party.verifier.vkey}")
        yield found
        found.shutdown()


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
    process = house.starts("witness", "--listen", "127.0.0.1:0", "--log", vkey)
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        row = signer.checkpoint(log.id)
        connection = connected(ready["url"])
        connection.request("POST", "/add-checkpoint", request(0, [], bytes(row.note)))
        answer = connection.getresponse()
        assert answer.status == 200
        note = bytes(row.note) + answer.read()
        assert notes.open_note(note, [notes.parse_vkey(ready["vkey"])]).verified
        connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.communicate()
    assert (house.folder / "witness" / file_name(log.origin)).exists()
    for words in (
        ["--listen", "x", "--log", vkey],
        ["--listen", "127.0.0.1:0", "--log", "x"],
        ["--listen", "127.0.0.1:0", "--log", ready["vkey"]],
    ):
        assert house.command("witness", *words).returncode == 2
    wrong = house.process("signer", "--witness", "ftp://x", ready["vkey"])
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
