"""The verifier's arithmetic against published vectors, and against a naive recursive tree."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from nanovm_core import verify
from nanovm_core.verify import (
    COSIGNATURE,
    ED25519,
    Frontier,
    canonical,
    check_consistency,
    check_inclusion,
    cosigned_s,
    ed25519_verify,
    leaf_hash,
    node_hash,
    open_note,
    parse_checkpoint,
    parse_key,
    root_of,
)
from tests.core.kit.builders import ROOT
from tests.core.proof import bundles
from tests.core.proof.bundles import LOG_KEY, OTHER_KEY, WITNESS, Log, Signer

FOLDER = ROOT.parent / "shared/data/vectors"
KINDS = (ED25519, COSIGNATURE)


def vectors(name: str) -> Any:
    """A file of vectors; the test is skipped where it is not there."""
    if not (FOLDER / name).exists():
        pytest.skip(f"the published vectors ({name}) are not beside the checkout")
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def holds(check: Callable[..., object], *arguments: object) -> bool:
    """Whether a check that raises ValueError passes."""
    try:
        check(*arguments)
    except ValueError:
        return False
    return True


def raw(text: str | None) -> bytes:
    return base64.b64decode(text or "")


# --- Ed25519 ---------------------------------------------------------------------------------


def test_wycheproof() -> None:
    held = vectors("wycheproof_ed25519_test.json")
    seen = 0
    for group in held["testGroups"]:
        public = bytes.fromhex(group["publicKey"]["pk"])
        for each in group["tests"]:
            seen += 1
            good = ed25519_verify(public, bytes.fromhex(each["msg"]), bytes.fromhex(each["sig"]))
            assert good == (each["result"] == "valid"), each["tcId"]
    assert seen == held["numberOfTests"] == 151


@pytest.mark.parametrize("length", [0, 1, 33, 1000])
def test_signatures_of_cryptography_verify_and_no_flip_of_them_does(length: int) -> None:
    message = bytes(length)
    signature = LOG_KEY.signature(message)
    assert ed25519_verify(LOG_KEY.public, message, signature)
    assert not ed25519_verify(OTHER_KEY.public, message, signature)
    assert not ed25519_verify(LOG_KEY.public, message + b"\0", signature)
    for at in (0, 31, 32, 63):
        flipped = bytearray(signature)
        flipped[at] ^= 1
        assert not ed25519_verify(LOG_KEY.public, message, bytes(flipped))


@pytest.mark.parametrize(
    "public",
    [
        bytes([1]) + bytes(31),  # the neutral point: R = [S]B holds for every message
        bytes(32),  # of order 4
        bytes([1]) + bytes(30) + b"\x80",  # x = 0 with a sign
        b"\xee" + b"\xff" * 30 + b"\x7f",  # y = p + 1: a second encoding of the neutral point
        bytes([2]) + bytes(31),  # not on the curve
    ],
)
def test_keys_that_anybody_could_sign_for_are_refused(public: bytes) -> None:
    base = bytes.fromhex("58" + "66" * 31)
    assert not ed25519_verify(public, b"", base + bytes([1]) + bytes(31))
    assert not ed25519_verify(public, b"", public + bytes(32))


def test_points_have_one_encoding() -> None:
    """RFC 8032 §5.1.3: y is below p, also where p + y would be a point like any other."""
    p = 2**255 - 19
    points = [y for y in range(19) if verify._decompress(y.to_bytes(32, "little"))]
    assert len(points) > 3
    for y in range(19):
        assert verify._decompress((p + y).to_bytes(32, "little")) is None


def test_s_is_below_the_order_of_the_group() -> None:
    """RFC 8032 §8.4: else whoever has a signature can make a second one."""
    signature = LOG_KEY.signature(b"x")
    s = int.from_bytes(signature[32:], "little") + 2**252 + 27742317777372353535851937790883648493
    assert not ed25519_verify(LOG_KEY.public, b"x", signature[:32] + s.to_bytes(32, "little"))


# --- the tree --------------------------------------------------------------------------------


def test_reference_tree() -> None:
    held = vectors("rfc6962_tree.json")
    leaves = [leaf_hash(bytes.fromhex(each)) for each in held["leaf_inputs_hex"]]
    assert [each.hex() for each in leaves] == held["node_hashes_hex_by_level"][0]
    for size, root in enumerate(held["root_hash_hex_by_tree_size"]):
        assert root_of(leaves[:size]).hex() == root
    for data, found in held["hasher"]["leaf"]:
        assert leaf_hash(bytes.fromhex(data)).hex() == found
    for left, right, found in held["hasher"]["node"]:
        assert node_hash(bytes.fromhex(left), bytes.fromhex(right)).hex() == found


@pytest.mark.parametrize("good", [False, True])
def test_inclusion_probes(good: bool) -> None:
    held = vectors("merkle_inclusion_probes.json")["want_ok" if good else "want_error"]
    assert len(held) == (6 if good else 92)
    for each in held:
        proof = [raw(part) for part in each["proof"] or []]
        place = (each["leafIdx"], each["treeSize"])
        found = check_inclusion(raw(each["leafHash"]), *place, proof, raw(each["root"]))
        assert found == good, each["file"]


@pytest.mark.parametrize("good", [False, True])
def test_consistency_probes(good: bool) -> None:
    held = vectors("merkle_consistency_probes.json")["want_ok" if good else "want_error"]
    assert len(held) == (6 if good else 92)
    for each in held:
        proof = [raw(part) for part in each["proof"] or []]
        roots = (raw(each["root1"]), raw(each["root2"]))
        found = check_consistency(each["size1"], each["size2"], *roots, proof)
        assert found == good, each["file"]


def test_trees_up_to_33_leaves_agree_with_the_recursive_definition() -> None:
    leaves = [bundles.leaf(bytes([number])) for number in range(33)]
    roots = [bundles.root(leaves[:size]) for size in range(34)]
    tree = Frontier(*range(34))
    for leaf in leaves:
        tree.append(leaf)
    assert [tree.roots[size] for size in range(34)] == roots
    for size in range(1, 34):
        for index in range(size):
            proof = bundles.path(index, leaves[:size])
            assert check_inclusion(leaves[index], index, size, proof, roots[size])
            for other in range(size + 1):
                found = check_inclusion(leaves[index], other, size, proof, roots[size])
                assert found == (other == index)
        for old in range(1, size + 1):
            proof = bundles.growth(old, leaves[:size])
            assert check_consistency(old, size, roots[old], roots[size], proof)
            assert not check_consistency(old, size, roots[old - 1], roots[size], proof)
            assert not check_consistency(old, size, roots[old], roots[size - 1], proof)
            assert not check_consistency(old, size, roots[old], roots[size], [*proof, leaves[0]])


# --- notes -----------------------------------------------------------------------------------


def test_signed_notes() -> None:
    held = vectors("signed_note.json")
    for each in held["open"]:
        keys = [parse_key(vkey, ED25519) for vkey in each["vkeys"]]
        data = each["note"].encode()
        assert holds(open_note, data, keys) == (each["want"] == "ok"), each["name"]
        if each["want"] == "ok":
            assert len(open_note(data, keys)[1]) == each["verified"], each["name"]
    bad = held["also_invalid_utf8"]
    keys = [parse_key(vkey, ED25519) for vkey in bad["vkeys"]]
    assert not holds(open_note, bytes.fromhex(bad["note_hex"]), keys)


def test_keys_of_the_vectors() -> None:
    held = vectors("signed_note.json")
    real = vectors("checkpoint_witness.json")["real_world_vkeys"]
    for vkey in (*held["vkeys_good"], *real):
        assert holds(parse_key, vkey, ED25519)
        assert not holds(parse_key, vkey, COSIGNATURE)
        for start in range(len(vkey)):
            for end in range(start, len(vkey) + (start > 0)):
                assert not holds(parse_key, vkey[start:end], *KINDS)
        for at in range(len(vkey)):
            other = vkey[:at] + chr(ord(vkey[at]) + 1) + vkey[at + 1 :]
            assert not holds(parse_key, other, *KINDS), other
    for vkey in held["vkeys_bad"]:
        assert not holds(parse_key, vkey, *KINDS)


def test_checkpoints_of_another_log_and_its_growth() -> None:
    held = vectors("checkpoint_witness.json")["witness_update"]
    key = parse_key(held["log_vkey"], ED25519)
    old, new = (parse_checkpoint(held[name].encode()) for name in ("init", "next"))
    for each in (old, new):
        assert open_note(each.note, [key])[1] == [key]
    proof = [bytes.fromhex(each) for each in held["consistency_proof_hex"]]
    assert (old.size, new.size) == (5, 8)
    assert check_consistency(5, 8, old.root, new.root, proof)
    assert not check_consistency(4, 8, old.root, new.root, proof)
    assert not check_consistency(5, 8, new.root, new.root, proof)
    assert not holds(open_note, old.note, [parse_key(held["other_log_vkey"], ED25519)])


def test_malformed_checkpoints() -> None:
    held = vectors("checkpoint_witness.json")
    go = held["go_sumdb_tree"]
    signer = Signer("go.sum_database_tree")
    bad = [each["checkpoint"] for each in held["unmarshal_bad"]] + go["bad"][1:]
    for text in bad:
        note = (text + "\n" + signer.line(text)).encode()
        assert not holds(parse_checkpoint, note), text
    text = go["text"].replace(" ", "_")
    assert parse_checkpoint((text + "\n" + signer.line(text)).encode()).size == go["size"]


@pytest.mark.parametrize("lines", [
    "log.example/abc\n01\nROOT\n",  # a leading zero
    "log.example/abc\n+1\nROOT\n", "log.example/abc\n1 \nROOT\n",
    "log.example/abc\n1\nROOT\nmore\n",  # our format ends with the root
    "log.example/abc\n1\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=\n",  # bits left over
    "log.example/abc\n1\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuA==\n",  # 31 bytes
    "log.example/other\n1\nROOT\n",  # signed in another name
    "log.example/abc\n9007199254740992\nROOT\n",
])  # fmt: skip
def test_checkpoints_have_one_form(lines: str) -> None:
    good = "log.example/abc\n1\nROOT\n".replace("ROOT", bundles.b64(bytes(32)))
    text = lines.replace("ROOT", bundles.b64(bytes(32)))
    assert parse_checkpoint((good + "\n" + LOG_KEY.line(good)).encode()).size == 1
    assert not holds(parse_checkpoint, (text + "\n" + LOG_KEY.line(text)).encode())


@pytest.mark.parametrize("name", ["log\x01", "log\x1b[2J", "log\x00"])
def test_no_control_character_stands_in_a_note(name: str) -> None:
    text = f"{name}\n1\n{bundles.b64(bytes(32))}\n"
    assert not holds(parse_checkpoint, (text + "\n" + Signer(name).line(text)).encode())


def test_a_cosignature_binds_time_text_and_witness() -> None:
    log = Log()
    log.add("log", "genesis")
    checkpoint = parse_checkpoint(log.note(LOG_KEY, WITNESS))
    key = parse_key(WITNESS.vkey, COSIGNATURE)
    assert cosigned_s(checkpoint, key) == 1_700_000_000
    assert cosigned_s(parse_checkpoint(log.note(LOG_KEY)), key) is None
    assert cosigned_s(checkpoint._replace(text=checkpoint.text + "x\n"), key) is None
    stamped = checkpoint.signatures[1]
    later = stamped._replace(data=b"\1" + stamped.data[1:])
    assert cosigned_s(checkpoint._replace(signatures=(later,)), key) is None
    impostor = parse_key(Signer(WITNESS.name, 4, 4).vkey, COSIGNATURE)
    assert cosigned_s(checkpoint, impostor) is None
    forged = stamped._replace(id=impostor.id)
    assert cosigned_s(checkpoint._replace(signatures=(forged,)), impostor) is None


def test_cosignature_key_of_the_vectors() -> None:
    held = vectors("checkpoint_witness.json")["cosignature_v1"]
    key, data = parse_key(held["vkey_alg4"], COSIGNATURE), raw(held["signature_b64"])
    assert key.kind == COSIGNATURE
    assert int.from_bytes(data[4:12], "big") == held["timestamp"]
    assert len(data) == 4 + 72


# --- canonical JSON --------------------------------------------------------------------------


def test_published_canonical_forms() -> None:
    """Those within our profile are read; those with floats or keys beyond ASCII are not."""
    read = {}
    for each in vectors("jcs_rfc8785.json")["cases"]:
        read[each["name"]] = holds(canonical, bytes.fromhex(each["output_hex"]))
        if each["input_utf8"].encode() != bytes.fromhex(each["output_hex"]):
            assert not holds(canonical, each["input_utf8"].encode()), each["name"]
    assert sorted(name for name, good in read.items() if good) == [
        "arrays",
        "structures",
        "unicode",
    ]


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":1}', '{"b":1,"a":1}', '{"a": 1}', ' {"a":1}', '{"a":1}\n', '{"a":1.0}',
        '{"a":1e2}', '{"a":-0}', '{"a":NaN}', '{"a":Infinity}', '{"a":9007199254740992}',
        '{"a":-9007199254740992}', '{"a":01}', '{"\\u00e9":1}', '{"é":1}', '[{"a":{"é":1}}]',
        '"\\u0041"', '"\\ud800"', '"\\/"', '"\\u001F"', '"\t"', "[1,]", "", "nul", "{", "\ufeff1",
        "[" * 65 + "]" * 65, "[" * 100_000, "1" * 100_000, '{"a":' * 65 + "1" + "}" * 65,
    ],
)  # fmt: skip
def test_bytes_beyond_the_profile(text: str) -> None:
    assert not holds(canonical, text.encode())


@pytest.mark.parametrize(
    "text",
    [
        '{"a":[true,false,null],"b":{"c":9007199254740991}}', '"é\u2028"', '"\\u001f\\n\\"\\\\"',
        "-9007199254740991", "[" * 64 + "]" * 64, '"' + "[" * 100 + '"', '"😀"', '"\x7f"',
    ],
)  # fmt: skip
def test_bytes_within_the_profile(text: str) -> None:
    assert canonical(text.encode()) == json.loads(text)


@pytest.mark.parametrize("data", [b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\x80"', b"\xff\xfe1\0"])
def test_bytes_that_are_not_utf_8(data: bytes) -> None:
    assert not holds(canonical, data)
