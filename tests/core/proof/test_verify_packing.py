"""What a container declares and what it holds: nothing behind it, and no more than declared."""

import io
import json
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Mapping

import pytest

from nanovm_core.verify import DEPTH_MAX, LINE_BYTES_MAX, parse, parse_key
from tests.core.proof import bundles as kit

KEY = ("--key", kit.LOG_KEY.vkey)
LOG = kit.whole_log(1)
WHOLE = kit.log_members(LOG)
NAME = "envelopes.ndjson"
BOMB_BYTES = 64 * LINE_BYTES_MAX
MORE = b"forged envelope lines\n" * 100


def said(data: bytes) -> tuple[int, str]:
    return kit.judged(data, *KEY)


def deflated(data: bytes, end: int = zlib.Z_FINISH) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush(end)


def archived(members: Mapping[str, tuple[bytes, bytes]], local: Mapping[str, str]) -> bytes:
    """A zip in which each member declares the first bytes and is stored as the second."""
    out = directory = b""
    for name, (declared, stored) in members.items():
        sizes = (zlib.crc32(declared), len(stored), len(declared))
        head = struct.pack("<5H3I2H", 20, 0, 8, 0, 33, *sizes, len(name), 0)
        directory += b"PK\1\2" + struct.pack("<H", 20) + head
        directory += struct.pack("<3H2I", 0, 0, 0, 0, len(out)) + name.encode()
        out += b"PK\3\4" + head + local.get(name, name).encode() + stored
    end = struct.pack("<4H2IH", 0, 0, len(members), len(members), len(directory), len(out), 0)
    return out + directory + b"PK\5\6" + end


def with_stored(stored: bytes, local: Mapping[str, str] | None = None) -> bytes:
    """The bundle of the whole log, its envelopes declared as they are and stored so."""
    members = {name: (data, deflated(data)) for name, data in WHOLE.items()}
    return archived({**members, NAME: (WHOLE[NAME], stored)}, local or {})


class Pipe(io.BytesIO):
    """A file without a position: an archive in it has each member's sizes behind the member."""

    def tell(self) -> int:
        raise OSError


def test_a_bundle_that_holds_what_it_declares_passes() -> None:
    assert said(with_stored(deflated(WHOLE[NAME])))[0] == 0
    with zipfile.ZipFile(pipe := Pipe(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in WHOLE.items():
            archive.writestr(name, data)
    assert said(pipe.getvalue())[0] == 0


@pytest.mark.parametrize(
    "stored",
    [
        deflated(WHOLE[NAME]) + MORE,
        deflated(WHOLE[NAME] + MORE),
        deflated(WHOLE[NAME] + b"\n" * 8 * LINE_BYTES_MAX),
        deflated(WHOLE[NAME])[:-4],
        deflated(WHOLE[NAME], zlib.Z_SYNC_FLUSH),
        deflated(WHOLE[NAME].replace(b'"at_ms":1', b'"at_ms":2', 1)),
        b"",
    ],
    ids=[
        "behind the stream",
        "in the stream",
        "a bomb",
        "cut off",
        "no end",
        "other bytes",
        "nothing",
    ],
)
def test_what_is_stored_beside_what_is_declared_never_passes(stored: bytes) -> None:
    assert said(with_stored(stored))[0] in (1, 2)


def test_no_more_than_declared_is_unpacked() -> None:
    members = {name: (data, deflated(data)) for name, data in WHOLE.items()}
    bomb = deflated(b" " * BOMB_BYTES)
    data = archived({**members, "manifest.json": (WHOLE["manifest.json"], bomb)}, {})
    tracemalloc.start()
    code, _ = said(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert code == 2
    assert peak < BOMB_BYTES // 4


def test_a_member_whose_own_header_names_another_is_refused() -> None:
    whole = deflated(WHOLE[NAME])
    code, text = said(with_stored(whole, {NAME: NAME.upper()}))
    assert (code, "a header that says something else" in text) == (2, True)


def test_proofs_of_more_parts_than_a_bundle_has_are_not_held() -> None:
    members = kit.run_members(LOG, kit.run_id(0))
    many = b"[" + b",".join([b"[]"] * 10_000) + b"]"
    code, text = said(kit.packed({**members, "proofs.json": many}))
    assert (code, "more than a bundle of this size has" in text) == (1, True)
    leaves = {**json.loads(members["manifest.json"]), "leaves": 10**9}
    lying = json.dumps(leaves, sort_keys=True, separators=(",", ":")).encode()
    code, text = said(kit.packed({**members, "manifest.json": lying, "proofs.json": many}))
    assert (code, "more leaves than" in text) == (1, True)


def test_an_unterminated_string_is_scanned_once() -> None:
    data = b'{"a":[' + b"[]," * DEPTH_MAX + b'[]],"b":"' + b'\\"' * 400_000
    with pytest.raises(ValueError, match="Unterminated string"):
        parse(data)  # a scan from every quote on would take hours


def test_nothing_follows_a_receipt() -> None:
    text = kit.receipt(LOG, 1)
    assert said(text)[0] == 0
    padded = text + b" " * (LINE_BYTES_MAX - len(text))
    assert said(padded)[0] == 0
    assert said(padded + b"\n{}")[0] == 2


def test_no_name_steers_a_terminal() -> None:
    name, rest = kit.LOG_KEY.vkey.split("+", 1)
    for steering in ("\x9b1F", "\u202e", "\x85"):
        with pytest.raises(ValueError, match="not a verification key"):
            parse_key(f"{name}{steering}+{rest}", 1)
