"""Policy files: what they may say, and that what they must not say has a place and a reason."""

import tomllib
from pathlib import Path

import pytest

from nanovm_core.core.authority.budget import Budget
from nanovm_core.core.authority.policy import UNKNOWN_OUTCOME
from nanovm_core.core.program import Program
from nanovm_core.errors import ProgramError
from nanovm_core.loading import POLICY_BYTES_MAX, load_policy, load_program
from nanovm_core.loading.schema import BUDGETS_MAX, EXAMPLES_MAX, RULES_MAX, WINDOWS_MAX
from tests.core.kit.desk import DESK, check

FOLDER = Path(__file__).resolve().parents[3] / "pipeline"
POLICY = """\
v = "nanovm-policy/1"
name = "desk"
lifts = ["calm"]

[[rules]]
id = "small"
at = "authorize"
outcome = "allow"
tools = ["refunds.pay"]
when = "$proposal.amount_minor <= 100 and $history.refused < 3"
why = "Small refunds need nobody."

[[rules]]
id = "vip"
at = "admission"
outcome = "hold"
approvable = true
when = "$slots.is_vip"
why = "A person greets them."

[[facts]]
name = "odd"
when = "$slots.total_minor > 50"

[[facts]]
name = "fresh"
when = "$fact.odd or $history.refused == 0"

[[windows]]
name = "refused"
counts = "refusals"
within_ms = 60_000

[[windows]]
name = "row"
counts = "failures_in_a_row"
scope = "agent"

[[budgets]]
scope = "agent"
unit = "tokens"
max = 5_000

[[examples]]
name = "a small refund"
expect = "allow"
rule = "small"
[examples.given]
tool = "refunds.pay"
agent = "desk"
slots = { total_minor = 90, is_vip = false, answer = "yes" }
proposal = { amount_minor = 90 }
history = { refused = 2 }
workspace = { left_minor = 5 }

[[examples]]
name = "a guest"
at = "admission"
expect = "hold"
given = {}
"""


def changed(old: str, new: str) -> str:
    assert old in POLICY
    return POLICY.replace(old, new, 1)


def error_of(text: str, program: Program | None = None) -> ProgramError:
    """What the loader says of a policy, by itself or for a program."""
    with pytest.raises(ProgramError) as caught:
        load_policy(text.encode(), program)
    return caught.value


def test_a_policy_is_what_its_file_says() -> None:
    loaded = load_policy(POLICY.encode(), load_program(DESK.encode()))
    assert (loaded.name, loaded.lifts) == ("desk", ("calm",))
    small, vip = loaded.rules
    assert (small.id, small.level, small.approvable) == ("small", "soft", False)
    assert (vip.id, vip.level, vip.approvable) == ("vip", "soft", True)
    assert (small.tools, vip.tools) == (frozenset({"refunds.pay"}), frozenset())
    windows = [(each.within_ms, each.scope) for each in loaded.windows]
    assert windows == [(60_000, "workspace"), (0, "agent")]
    assert loaded.budgets == (Budget(scope="agent", unit="tokens", max=5_000),)
    first, second = loaded.examples
    assert (first.expect, first.rule, first.at) == ("allow", "small", "authorize")
    assert first.given == tomllib.loads(POLICY)["examples"][0]["given"]
    assert (second.given, second.rule, second.at) == ({}, "", "admission")
    assert loaded.hash != load_policy((POLICY + "#").encode()).hash


@pytest.mark.parametrize("name", ["default", "no_limits"])
def test_shipped_policies_fit_the_shipped_program(name: str) -> None:
    program = load_program((FOLDER / "invoice_payment.toml").read_bytes())
    policy = load_policy((FOLDER / "policies" / f"{name}.toml").read_bytes(), program)
    assert program.under(policy).policy == policy
    own = {rule.id for rule in policy.rules}
    assert own <= {example.rule for example in policy.examples}
    assert [(each.scope, each.unit, each.max) for each in policy.budgets] == [
        ("workspace", "money", 100_000_000)
    ]


def test_the_policy_that_the_program_names_is_the_default_one() -> None:
    program = load_program((FOLDER / "invoice_payment.toml").read_bytes())
    policy = load_policy((FOLDER / program.policy_file).read_bytes())
    assert policy.name == "default"
    rules = {rule.id for rule in (*program.rules, *policy.rules)}
    assert rules <= {example.rule for example in policy.examples}


@pytest.mark.parametrize(("old", "new", "at", "said", "code"), [
    ('policy/1"', 'policy/2"', "v =", "expected v = 'nanovm-policy/1'", "PRG-003"),
    ('name = "desk"', "", "v =", "policy: name must be a text", "PRG-003"),
    ('lifts = ["calm"]', 'lifts = "calm"', "lifts", "lifts must be a list of names", "PRG-003"),
    ('id = "small"', 'id = "small"\nlevel = "hard"', "level", "unknown key 'level'", "PRG-003"),
    ('id = "small"', "", 'rules]]\n\nat = "auth', "rule 1: id must be a text", "PRG-003"),
    ('id = "small"', 'id = "s m"', "id = ", "is no name", "PRG-003"),
    ('id = "small"', 'id = "vip"', 'id = "vip"\nat = "adm', "another rule has the id", "PRG-002"),
    ('id = "small"', f'id = "{UNKNOWN_OUTCOME}"', "id =", "the runtime's own hold", "PRG-003"),
    ('at = "authorize"', 'at = "always"', "at =", "is none of admission, authorize", "PRG-003"),
    ('outcome = "allow"', 'outcome = "permit"', "outcome", "none of allow, hold, sus", "PRG-003"),
    ('outcome = "hold"', 'outcome = "suspend"', "approvable", "this rule says suspend", "PRG-003"),
    *[('at = "authorize"\noutcome = "allow"', f'at = "outcome"\noutcome = "{each}"',
       f'outcome = "{each}"', "at outcome a rule can only suspend", "PRG-003")
      for each in ("allow", "hold", "deny")],
    *[('at = "admission"\nexpect = "hold"', f'at = "outcome"\nexpect = "{each}"',
       f'expect = "{each}"', "can only suspend, or allow to go on", "PRG-003")
      for each in ("hold", "deny")],
    ('name = "fresh"', 'name = "fr-esh"', 'name = "fr-', "is no name", "PRG-003"),
    ('name = "fresh"', 'name = "odd"', 'name = "odd"\nwhen = "$fact', "another fact", "PRG-002"),
    ('outcome = "hold"', 'outcome = "deny"', "approvable", "and this rule says deny", "PRG-003"),
    ("approvable = true", 'approvable = "yes"', "approvable", "be true or false", "PRG-003"),
    ('tools = ["refunds.pay"]', "tools = []", "tools", "names the tools that a rule", "PRG-003"),
    ('at = "authorize"', 'at = "admission"', "tools", "names the tools that a rule", "PRG-003"),
    ("<= 100 and", "=< 100 and", "=< 100", "rule small: when: an unknown character", "PRG-004"),
    ('when = "$slots.is_vip"', "", 'rules]]\nid = "vip"', "when must be a text", "PRG-003"),
    ('name = "refused"', 'name = "re-fused"', 'name = "re-', "is no name", "PRG-003"),
    ('name = "row"', 'name = "refused"', 'name = "refused"\ncounts = "failures_', "rename",
     "PRG-002"),
    ('"refusals"', '"no"', 'counts = "no"', "none of calls, failures, refusals,", "PRG-003"),
    ("within_ms = 60_000", "", 'windows]]\nname = "ref', "within_ms must be an int", "PRG-003"),
    ("within_ms = 60_000", "within_ms = 0", "within_ms", "of 1 to 2592000000", "PRG-003"),
    ('"refusals"', '"spent"', 'windows]]\nname = "ref', "spent needs a currency", "PRG-003"),
    ('"refusals"', '"calls"\ncurrency = "EUR"', "currency", "counts no money has", "PRG-003"),
    ('"refusals"', '"spent"\ncurrency = "Euro"', "currency", "is no name", "PRG-003"),
    ('"refusals"', '"refusals"\ntool = "to.it"', 'tool = "to.it"', "may name any", "PRG-003"),
    ('scope = "agent"\n\n', "within_ms = 5\n\n", "within_ms = 5", "reads the end of", "PRG-003"),
    ('scope = "agent"\n\n', 'scope = "run"\n\n', 'scope = "run"', "none of workspace,", "PRG-003"),
    ('unit = "tokens"', 'unit = "euros"', "unit", "none of money, calls, steps, tokens", "PRG-003"),
    ('"agent"\nunit = "tokens"', '"global"\nunit = "wall_ms"', 'scope = "global"', "a clock is",
     "PRG-003"),
    ("max = 5_000", "max = 5.0", "max = 5.0", "max must be an integer of 0 to", "PRG-003"),
    ("max = 5_000", 'max = 1\ncurrency = "EUR"', "currency", "only money has a", "PRG-003"),
    ('unit = "tokens"\nmax = 5_000', 'unit = "money"\ncurrency = "eur"\nmax = 1', "currency",
     "is no name: it must match [A-Z]{3}", "PRG-003"),
    ('name = "a guest"', 'name = "a small refund"', 'name = "a small refund"\nat', "rename",
     "PRG-002"),
    ('expect = "hold"', 'expect = "held"', 'expect = "held"', "none of allow, hold,", "PRG-003"),
    ('at = "admission"\nexpect', 'at = "x"\nexpect', 'at = "x"', "none of admission,", "PRG-003"),
    ("given = {}", "given = 5", "given = 5", "given must be a table", "PRG-003"),
    ("given = {}", "given = { slot = {} }", "slot = {", "unknown key 'slot'", "PRG-003"),
    ("given = {}", "given = { slots = { a = 1.5 } }", "a = 1.5", "a must be a text,", "PRG-003"),
    ("given = {}", "given = { slots = [] }", "slots = []", "slots must be a table", "PRG-003"),
])  # fmt: skip
def test_what_a_policy_may_not_say(old: str, new: str, at: str, said: str, code: str) -> None:
    text = changed(old, new)
    check(text, at, said, code, error=error_of(text))


@pytest.mark.parametrize(("old", "new", "at", "said", "code"), [
    ('lifts = ["calm"]', 'lifts = ["calm", "too-much"]', '"too-much"', "which is hard", "PRG-005"),
    ('lifts = ["calm"]', 'lifts = ["clam"]', '"clam"', "which is no rule of the prog", "PRG-005"),
    ('id = "small"', 'id = "too-much"', 'id = "too-much"', "bears the id of a rule", "PRG-005"),
    ('name = "row"', 'name = "calls_1m"', 'name = "calls_1m"', "bears the name of", "PRG-005"),
    ("<= 100", "<= '100'", "<= '100'", "its condition does not fit where refunds.pay", "PRG-004"),
    ("$slots.is_vip", "$slots.vip", "$slots.vip", "rule vip: its condition does not", "PRG-004"),
    ("$slots.is_vip", "$history.no > 5", "$history.no", "vip: its condition does not", "PRG-004"),
    ("$slots.is_vip", "$slots.total_minor", "$slots.total_m", "its condition does not", "PRG-004"),
    *[("$fact.odd or", f"{each} or", each, "fact fresh: its condition does not fit", "PRG-004")
      for each in ("$fact.fresh", "$fact.later", "$proposal.urgent", "$slots.no")],
    ("$slots.total_minor > 50", "$fact.fresh", "$fact.fresh", "fact odd: its cond", "PRG-004"),
    ('name = "fresh"', 'name = "large"', 'name = "large"', "the name of a fact of", "PRG-005"),
    ("$slots.is_vip", "$result.failed", "$result", "rule vip: its condition", "PRG-004"),
    ('tools = ["refunds.pay"]', 'tools = ["wire"]', "tools", "which is not granted", "PRG-004"),
    ('name = "row"', 'name = "row"\ntool = "wire"', "tool = \"wire\"", "is not granted", "PRG-004"),
])  # fmt: skip
def test_what_does_not_fit_a_program_is_pointed_at(
    old: str, new: str, at: str, said: str, code: str
) -> None:
    program = load_program(DESK.encode())
    text = changed(old, new)
    check(text, at, said, code, error=error_of(text, program))
    with pytest.raises(ProgramError) as late:
        program.under(load_policy(text.encode()))
    assert late.value.code == code
    assert late.value.text.startswith("policy desk: ")


def test_two_budgets_of_one_account_are_a_fault_and_of_two_are_none() -> None:
    more = '\n[[budgets]]\nscope = "agent"\nunit = "{}"\nmax = 1\n'
    assert "another budget has this scope" in error_of(POLICY + more.format("tokens")).text
    assert len(load_policy((POLICY + more.format("calls")).encode()).budgets) == 2


PAIRS = [f"X{first}{second}" for first in "ABCDEFGHIJ" for second in "ABCDEFGHIJ"]


@pytest.mark.parametrize(("row", "has", "most"), [
    ('[[rules]]\nid = "r{}"\nat = "admission"\noutcome = "deny"\nwhen = "true"\nwhy = "x"\n', 2,
     RULES_MAX),
    ('[[windows]]\nname = "w{}"\ncounts = "calls"\nwithin_ms = 1\n', 2, WINDOWS_MAX),
    ('[[examples]]\nname = "e{}"\nexpect = "deny"\n', 2, EXAMPLES_MAX),
    ('[[budgets]]\nscope = "global"\nunit = "money"\nmax = 1\ncurrency = "{}"\n', 1, BUDGETS_MAX),
])  # fmt: skip
def test_how_many_there_may_be(row: str, has: int, most: int) -> None:
    names = PAIRS if "currency" in row else [str(number) for number in range(most)]
    fits = POLICY + "".join(row.format(name) for name in names[: most - has])
    load_policy(fits.encode())
    assert f"there are {most + 1} " in error_of(fits + row.format("EUR")).text


def test_size_is_limited_at_the_byte() -> None:
    padding = b"#" * (POLICY_BYTES_MAX - len(POLICY.encode()))
    assert load_policy(POLICY.encode() + padding).name == "desk"
    with pytest.raises(ProgramError, match="the policy is over 262144 bytes") as caught:
        load_policy(POLICY.encode() + padding + b"#")
    assert caught.value.code == "PRG-003"
