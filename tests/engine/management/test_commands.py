"""The commands, as a person runs them: their JSON, their exit status, their one sentence."""

import argparse
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import chain, product
from pathlib import Path

import pytest
from django.core.management import BaseCommand, get_commands, load_command_class

from engine.errors import ErasureRefusedError
from engine.evidence.fsck.audit import audit
from engine.management import prepared
from engine.models import Checkpoint, Run, Secret, Workspace
from engine.ops import timings
from engine.privacy import erasure
from engine.runtime import api
from pipeline.ops import stripe_checks
from pipeline.steps.charge import gateway
from reader.holds import explained
from samples import generated, path
from tests.house.demo import ran
from tests.kit.house import House, lines, sql, succeeded
from tests.kit.pdf_builder import invoice_lines, text_pdf

KEYS = ["file", "run", "state", "decision", "reason", "invoice", "paid", "envelopes", "head"]
INVOICE = ["invoice_number", "seller", "currency", "total_due", "due_date", "iban"]


def sample(name: str) -> str:
    """The path of a sample, as an argument."""
    return str(path(name))


def test_run_invoice_says_of_each_file_what_became_of_it(house: House) -> None:
    names = ("plain", "over_limit", "broken")
    done = house.command("run_invoice", *map(sample, names), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    paid, held, rejected = said = lines(done)
    assert not any("timings" in line for line in said)
    for name, line in zip(names, said, strict=True):
        assert [key for key in KEYS if key in line] == KEYS
        assert list(line["invoice"]) == INVOICE
        assert line["file"] == sample(name)
        run = Run.objects.get(id=line["run"])
        assert (line["envelopes"], line["head"]) == (run.length, run.head)
        covered = Checkpoint.objects.filter(workspace=run.workspace_id).latest("size")
        assert covered.size == Workspace.objects.get(id=run.workspace_id).size  # signed, all of it
    assert (paid["state"], paid["decision"], paid["reason"]) == ("SUCCESS", "paid", None)
    assert set(paid["paid"]) == {"amount_minor", "currency", "payment_intent"}
    assert (paid["paid"]["amount_minor"], paid["invoice"]["total_due"]) == (128_450, "1284.50")
    assert succeeded(Run.objects.get(id=paid["run"])) == [(128_450, "eur")]
    assert (held["state"], held["decision"], held["paid"]) == ("SUSPENDED", "held", None)
    assert held["reason"]["code"] == "POL-020"
    assert (rejected["state"], rejected["decision"]) == ("FAILED", "rejected")
    assert set(rejected["reason"]) == {"code", "text"}
    assert set(rejected["invoice"].values()) == {None}
    assert len({Run.objects.get(id=line["run"]).workspace_id for line in said}) == 3


def test_run_invoice_names_what_a_document_has_against_its_payment(
    house: House, tmp_path: Path
) -> None:
    file = tmp_path / "negative.pdf"
    file.write_bytes(generated.generate(2, "negative_amount").pdf)
    [line] = lines(house.command("run_invoice", str(file), "--no-limits", "--json"))
    said = line["reason"]
    assert (line["decision"], said["code"], said["hold"]) == ("held", "POL-020", "negative_amount")
    assert said["text"] == explained("negative_amount")


def test_one_document_or_name_ends_no_batch_of_run_invoice(house: House, tmp_path: Path) -> None:
    """The register refuses our own company as a supplier; a name of other bytes is readable."""
    own = tmp_path / "own.pdf"
    page = ["Harbour Analytics Ltd                           INVOICE", *invoice_lines()[1:]]
    own.write_bytes(text_pdf(page))
    odd = tmp_path / "a\udcffb.pdf"
    odd.write_bytes(path("plain").read_bytes())
    done = house.command("run_invoice", str(own), str(odd), "--no-limits", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    held, paid = lines(done)
    assert (held["decision"], held["reason"]["code"]) == ("held", "SUP-002")
    assert held["reason"]["text"].endswith("name of Harbour Analytics Ltd.")
    assert (paid["decision"], paid["file"]) == ("paid", str(tmp_path / "a\ufffdb.pdf"))
    with pytest.raises(argparse.ArgumentTypeError, match="no UTF-8 text"):
        prepared.named("a\udcffb")


def test_run_invoice_in_one_workspace_and_without_limits(house: House) -> None:
    files = [sample("over_limit"), sample("broken")]
    done = house.command(
        "run_invoice", *files, "--same-workspace", "--no-limits", "--json", "--timings"
    )
    paid, rejected = lines(done)
    for line in (paid, rejected):
        *parts, rest, whole = line["timings"].values()
        assert [*line["timings"]] == [*timings.PARTS, "rest", "whole"]
        assert round(sum(parts) + rest, 3) == whole
        assert [*line][-2:] == ["head", "timings"]
    assert min(paid["timings"].values()) > 0
    assert rejected["timings"]["model"] == 0
    assert (done.returncode, rejected["decision"]) == (0, "rejected")
    assert (paid["decision"], paid["paid"]["amount_minor"]) == ("paid", 1_840_000)
    runs = Run.objects.filter(id__in=[paid["run"], rejected["run"]])
    assert len({run.workspace_id for run in runs}) == 1


def test_run_invoice_prepares_an_empty_folder_and_starts_the_counterpart_itself(
    tmp_path: Path,
) -> None:
    empty = tmp_path / "new" / "data"
    done = ran(empty, "manage.py", "run_invoice", sample("en16931"), "--timings")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{sample('en16931')}: paid, run " in done.stdout
    named = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert named == [*timings.PARTS, "rest", "whole"]
    with closing(sqlite3.connect(empty / "stripe_sandbox.sqlite3")) as far_side:
        assert far_side.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] > 0


@pytest.mark.parametrize(
    "words",
    [
        ("run_invoice", sample("plain"), "no_such.pdf", "--json"),
        ("run_invoice", "."),
        ("erase", "--run", "NONE-00", "--reason", "art17-1-a"),
        ("erase", "--run", "NONE-00", "--reason", "art17-1-z"),
    ],
)
def test_wrong_use_is_one_sentence_and_status_two(house: House, words: tuple[str, ...]) -> None:
    done = house.command(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()
    assert Run.objects.count() == 0


# These refuse the empty text by themselves.
READ_OTHERWISE = {"first", "learn", "listen", "log", "witness"}


def arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of a command and its subcommands that take a text."""
    for each in parser._actions:
        if isinstance(each, argparse._SubParsersAction):
            yield from chain.from_iterable(map(arguments, each.choices.values()))
        elif each.nargs != 0 and not each.choices and each.dest not in USUAL:
            yield each


USUAL = {each.dest for each in BaseCommand().create_parser("manage.py", "any")._actions}


def test_name_that_is_empty_is_not_taken_for_one_that_was_left_out() -> None:
    """As a shell passes on a variable that is not set."""
    own = [(app, name) for name, app in get_commands().items() if app in ("engine", "pipeline")]
    parsers = [load_command_class(app, name).create_parser("manage.py", name) for app, name in own]
    found = [each for parser in parsers for each in arguments(parser)]
    assert len(found) > 15
    other = {each.dest for each in found if each.type not in (prepared.named, prepared.named_file)}
    assert other == READ_OTHERWISE
    for read, text in product((prepared.named, prepared.named_file), ("", " ")):
        with pytest.raises(argparse.ArgumentTypeError, match="it is empty and names nothing"):
            read(text)


def test_fsck_tells_clean_unexplained_and_named_damage_apart(house: House) -> None:
    run = house.new()
    house.run(workspace=run.workspace)
    clean = house.command("fsck", "--json")
    assert (clean.returncode, lines(clean)[0]["clean"]) == (0, True)
    sql(("UPDATE pipeline_envelope SET bytes = 'x' WHERE run = %s AND n = 0", (str(run.id),)))
    damaged = house.command("fsck", "--json")
    (report,) = lines(damaged)
    assert (damaged.returncode, report["clean"]) == (1, False)
    last = report["damage"][-1]
    assert (last["run"], last["at"], last["code"]) == (str(run.id), 0, "LOG-001")
    api.check(str(run.id))
    named = house.command("fsck")
    assert named.returncode == 3
    assert "named: " in named.stdout
    assert "UNEXPLAINED" not in named.stdout


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE pipeline_secret SET erased_ms = 1 WHERE slot = 'seller'", "PII-003"),
        ("DELETE FROM pipeline_secret WHERE slot = 'seller'", "PII-003"),
        ("DELETE FROM pipeline_envelope WHERE run = 'log'", "LOG-004"),
    ],
)
def test_audit_finds_what_the_database_hides(house: House, statement: str, code: str) -> None:
    house.once(House.run)
    sql((statement, ()))
    report = audit()
    assert report.exit_status == 1
    assert code in {each.code for each in report.damage}


def test_erase_prints_one_certificate_however_often(house: House) -> None:
    run = house.once(House.run)
    ref = Secret.objects.get(run=run, slot="seller").ref
    one = house.command("erase", "--ref", ref, "--reason", "art17-1-a")
    assert (one.returncode, json.loads(one.stdout)["refs"]) == (0, [ref])
    with pytest.raises(ErasureRefusedError, match="PII-003"):
        erasure.erase_ref("vault://secret/none", "art17-1-a", "visitor")
    first = house.command("erase", "--run", run.code, "--reason", "art17-1-a")
    again = house.command("erase", "--run", str(run.id), "--reason", "art17-1-b")
    assert (first.returncode, again.returncode) == (0, 0)
    assert first.stdout == again.stdout
    certificate = json.loads(first.stdout)
    assert (certificate["state"], certificate["run"]) == ("done", str(run.id))
    assert certificate["reason"] == "art17-1-a"


def test_erase_that_leaves_a_file_behind_exits_with_one(house: House) -> None:
    run = house.once(House.run)
    document = next((house.folder / "media").iterdir())
    document.unlink()
    document.mkdir()  # which no removal of a file removes
    words = ("erase", "--run", run.code, "--reason", "art17-1-a")
    done = house.command(*words)
    assert (done.returncode, json.loads(done.stdout)["state"]) == (1, "incomplete")
    document.rmdir()
    again = house.command(*words)
    assert (again.returncode, json.loads(again.stdout)["state"]) == (0, "done")


def test_judge_numbers_lines_as_an_editor_does_and_judges_none_that_is_blank(
    house: House, tmp_path: Path
) -> None:
    desk = Path("examples/refund_desk")
    given = ["judge", "--program", str(desk / "program.toml"), "--proposals"]
    proposals = (desk / "proposals.jsonl").read_bytes().splitlines()
    spaced = tmp_path / "spaced.jsonl"
    spaced.write_bytes(b"\n \r\n".join([b"", *proposals, b"{", b"\t"]))
    said = lines(house.command(*given, str(spaced)))
    plain = lines(house.command(*given, str(desk / "proposals.jsonl")))
    there = {f"line {n}": f"line {2 * n + 1}" for n in range(1, len(proposals) + 1)}
    assert said[:-1] == [{**each, "id": there.get(each["id"], each["id"])} for each in plain]
    assert [each["id"] for each in plain if each["id"] in there] == ["line 22"]
    number = spaced.read_bytes().split(b"\n").index(b"{") + 1
    assert (len(plain), said[-1]["id"]) == (len(proposals), f"line {number}")


def test_stripe_check_says_what_is_the_same_and_what_differs(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = house.command("stripe_check")
    assert (done.returncode, done.stdout.count("\nsame "), done.stderr) == (0, 17, "")
    assert done.stdout.startswith("the local counterpart:\n")
    with monkeypatch.context() as changed:
        changed.setattr(stripe_checks, "AMOUNT", 1)  # no payment is that small
        broken = house.command("stripe_check", "--json")
    assert broken.returncode == 1
    assert "differs" in {each["verdict"] for each in lines(broken)}
    monkeypatch.setattr(stripe_checks, "GOOD", stripe_checks.OWNER)
    found = stripe_checks.run("a_good_card_pays_at_once", gateway.configured())
    assert found.verdict == stripe_checks.DIFFERS
    assert "'status': 'succeeded'" in found.text
    assert "'status': 'requires_action'" in found.text
    monkeypatch.setattr(stripe_checks, "GOOD", stripe_checks.DECLINED)
    refused = stripe_checks.run("a_key_pays_once", gateway.configured())
    assert "CardError 402 card_declined" in refused.text
