"""Loading: every fault of a file with its place, and no file that exhausts its reader."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nanovm_core.core.canonical import INTEGER_MAX
from nanovm_core.errors import ProgramError
from nanovm_core.loading import SOURCE_BYTES_MAX, load_program, schema, strict_toml
from nanovm_core.loading.schema import DAYS_30_MS
from tests.core.kit.desk import DESK, changed, error_of

LINE = re.compile(r"line (\d+), column (\d+): ")


def verdict(source: bytes) -> str:
    """The hash of the program that loads, or what is wrong; a fault has its place."""
    try:
        return load_program(source).hash
    except ProgramError as error:
        text, line = error.text, error.line or 0
    match = LINE.match(text)
    assert match, text
    assert int(match[1]) == line <= source.count(b"\n") + 1
    return text


def test_all_faults_are_told_by_their_places_and_the_first_is_the_text() -> None:
    text = changed(
        *('agent = "desk"', "agent = 5"),
        *('is_vip = { type = "boolean" }', 'is_vip = { kind = "boolean" }'),
        *('next = "sort"', 'next = "srot"'),
        *('fills = ["receipt"]', 'fills = ["recipe"]'),
        *('text = "answer" }', 'txt = "answer" }'),
    )
    error = error_of(text)
    places = [(fault.line, fault.column) for fault in error.faults]
    assert places == sorted(places)
    assert error.text == f"line 4, column 1: {error.faults[0].text}"
    assert {fault.code for fault in error.faults} == {"PRG-001", "PRG-002"}
    told = " ".join(fault.text for fault in error.faults)
    for word in ("agent", "'kind'", "'srot'", "'recipe'", "'txt'", "'text'"):
        assert word in told
    assert "unreachable" not in told  # nobody knows, while a target is unknown


def test_no_more_faults_are_told_than_a_person_mends_at_once() -> None:
    for count in (20, 21):
        extra = "".join(f"x{number:02} = 1\n" for number in range(count))
        error = error_of(changed("[limits]", f"{extra}[limits]"))
        assert len(error.faults) == strict_toml.FAULTS_MAX == 20
        assert error.faults[-1].text.startswith("program: unknown key 'x19'")


@settings(max_examples=40)
@given(st.integers(0, len(DESK.encode()) - 1), st.integers(1, 255))
def test_any_changed_byte_is_another_program_or_refused_with_a_place(at: int, mask: int) -> None:
    source = bytearray(DESK.encode())
    source[at] ^= mask
    assert verdict(bytes(source)) != load_program(DESK.encode()).hash


@settings(max_examples=40)
@given(st.lists(st.integers(0, DESK.count("\n") - 1), min_size=1, max_size=4))
def test_any_missing_line_is_another_program_or_refused_with_a_place(gone: list[int]) -> None:
    lines = DESK.splitlines(keepends=True)
    kept = "".join(line for number, line in enumerate(lines) if number not in gone)
    assert verdict(kept.encode()) != load_program(DESK.encode()).hash


@pytest.mark.parametrize(("source", "expected", "said"), [
    (b"", (1, 1), "expected v"), (b"v = 1", (1, 1), "expected v"),
    (b'# \xc3\xa9\nv = "\xff"', (2, 6), "not UTF-8 from here on"), (b"v = ", (1, 5), "is not TOML"),
    (b"\n\n[[[", (3, 3), "is not TOML"),
    (b"v = 1\nv = 2", (2, 6), "is not TOML: Cannot overwrite a value"),
    (b'v = """abc', (1, 11), "is not TOML: Unterminated string"),
    (b"v = 2000-02-30", (1, 5), "is not TOML"),
    (b"x = " + b"[" * 17, (1, 21), "over 16 levels, 16 parts in a key or 64 digits"),
    (b"x = " + b"{a=" * 100_000, (1, 53), "over 16 levels"),
    (b"a" + b".a" * 16 + b" = 1", (1, 32), "over 16 levels, 16 parts"),
    (b"[a" + b".a" * 1_000_000 + b"]", (1, 33), "over 16 levels, 16 parts"),
    (b"x = 1" + b"0" * 64, (1, 5), "64 digits in a number"),
    (b"x = 1" + b"_0" * 2_000_000, (1, 5), "64 digits in a number"),
])  # fmt: skip
def test_bytes_that_are_no_program(source: bytes, expected: tuple[int, int], said: str) -> None:
    with pytest.raises(ProgramError) as caught:
        load_program(source)
    error = caught.value
    assert (error.code, error.line, error.column) == ("PRG-001", *expected), error.text
    assert said in error.text
    assert LINE.match(error.text)


def test_what_the_reader_can_take_is_read_on() -> None:
    deep = "[" * 16 + "]" * 16
    dotted = ".".join("a" * 16)
    digits = "1" * 64
    text = changed("[limits]", f"x = {deep}\n{dotted} = 1\ny = {digits}\nz = '{digits}1'\n[limits]")
    assert len(error_of(text).faults) == 4  # unknown keys, no more


@pytest.mark.parametrize("unclosed", ['"""\\', "'''x", '"a\n', "'a\n", '"\\', "1_", '#"', "a"])
def test_what_never_ends_costs_its_length(unclosed: str) -> None:
    text = unclosed * (400_000 // len(unclosed))
    with pytest.raises(ProgramError):
        load_program(text.encode())


def test_size_is_limited_at_the_byte() -> None:
    padding = b"#" * (SOURCE_BYTES_MAX - len(DESK.encode()))
    assert load_program(DESK.encode() + padding).name == "refund_desk"
    with pytest.raises(ProgramError, match="the program is over 4194304 bytes") as caught:
        load_program(DESK.encode() + padding + b"#")
    assert caught.value.line == DESK.count("\n") + 1


def test_lines_that_end_as_on_windows_are_the_same_lines() -> None:
    text = changed('next = "sort"', 'next = "srot"')
    here, there = error_of(text), error_of(text.replace("\n", "\r\n"))
    assert here.text == there.text


@pytest.mark.parametrize(("at", "row", "has", "most"), [
    ("[tools.", 's{} = {{ type = "ref" }}\n', 6, schema.SLOTS_MAX),
    ("[[grants]]", "[tools.t{}]\n", 4, schema.TOOLS_MAX),
    ("[[grants]]", 'a{} = {{ type = "ref" }}\n', 1, schema.ARGS_MAX),
    ('  { to = "ask" },\n', '{{ when = "$run.calls > {}", to = "ask" }},', 3, schema.BRANCHES_MAX),
])  # fmt: skip
def test_how_many_there_may_be(at: str, row: str, has: int, most: int) -> None:
    unused = DESK.replace('tool = "refunds.tell"\nargs = { text = "answer" }', 'tool = "model.ask"')
    for count, fits in ((most - has, True), (most - has + 1, False)):
        text = unused.replace(at, "".join(row.format(n) for n in range(count)) + at, 1)
        if fits:
            load_program(text.encode())
        else:
            assert f"there are {most + 1} " in error_of(text).text
            assert f"at most {most} are taken" in error_of(text).text


@pytest.mark.parametrize(("old", "fits", "too_much"), [
    ("attempts_max = 3", "attempts_max = 100", "attempts_max = 101"),
    ("timeout_ms = 60_000", f"timeout_ms = {DAYS_30_MS}", f"timeout_ms = {DAYS_30_MS + 1}"),
    ("proposals_max = 2", "proposals_max = 1000", "proposals_max = 1001"),
    ("max = 1_000_000", f"max = {INTEGER_MAX}", f"max = {INTEGER_MAX + 1}"),
    ("max = 1_000_000", "max = 0", "max = -1"),
    ("length_max = 80", "length_max = 65536", "length_max = 65537"),
    ("Something is wrong; a person should look.", "S" * 1024, "S" * 1025),
    ('"calm"', f'"{"c" * 128}"', f'"{"c" * 129}"'), ("is_vip", "c" * 64, "c" * 65),
    ("note", "n" * 64, "n" * 65), ("calls_1m", "n" * 64, "n" * 65),
])  # fmt: skip
def test_a_limit_holds_at_its_number(old: str, fits: str, too_much: str) -> None:
    load_program(DESK.replace(old, fits).encode())
    error_of(DESK.replace(old, too_much))
