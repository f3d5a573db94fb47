"""Which amount a page asks for: the labels must agree and the sums must add up, or it is open."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final

from reader.page_text.totals import Candidate, Kind, Sums

_STEPS_MAX: Final = 8  # sums that may lie between two totals
_ALIGNED: Final = 2  # columns: sums of one block end together
_ROWS_AFTER: Final = 6  # in which a sum still belongs to the block above
_POINTS_APART: Final = 60.0  # between the rows of one block
_PARTS_MIN: Final = 3
_GOALS: Final[tuple[Kind, ...]] = ("due", "total")
_LARGER: Final = 1.15  # times as high: typed to be seen first


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The candidate to pay; ``certain`` is False where the page leaves any doubt."""

    candidate: Candidate | None
    certain: bool


def judge(sums: Sums) -> Verdict:
    """Choose the amount to pay now, if the labels agree on one and the sums around it add up."""
    if any(item.value is None or item.value for item in sums.of("earlier")):
        return Verdict(candidate=_some(sums), certain=False)
    if not sums.of("due") and not sums.of("total"):
        return Verdict(candidate=None, certain=False)
    verdict = _judge_due(sums) if sums.of("due") else _judge_total(sums)
    return replace(verdict, certain=verdict.certain and not _contradicted(sums))


def _contradicted(sums: Sums) -> bool:
    """Whether no sum without tax leads to a total by the taxes and all else that is printed.

    One that is higher than the totals has to, by what the labels take off.
    """
    nets = [item.value for item in sums.of("net") if item.value]
    goals = [item.value for kind in _GOALS for item in sums.of(kind) if item.value]
    steps = _steps(sums, ("net", "tax", "off", "round", "adjust"), strays=True)
    reached = {net: _reached(net, steps) for net in nets}
    if any(net > max(goals, default=net) and not reached[net] & {*goals} for net in nets):
        return True
    printed = {*goals} | {goal + each for goal in goals for each in sums.every}
    taxed = any(item.value for item in sums.of("tax"))
    return taxed and bool(nets) and not any(each & printed for each in reached.values())


def _judge_due(sums: Sums) -> Verdict:
    """What is due must be one amount, and the total or what the sums around it leave of it."""
    dues = sums.of("due")
    certain = (
        len(sums.values("due")) == 1
        and dues[0].value is not None
        and _plain(dues[0], sums)
        and not _overshadowed(dues, sums)
        and _adds_up(dues[0].value, sums)
    )
    return Verdict(candidate=dues[0], certain=certain)


def _adds_up(due: Decimal, sums: Sums) -> bool:
    steps = _steps(sums, ("off", "round", "adjust", "tax"), strays=True)
    others = sums.values("total") - {due}
    if others:
        return all(_explains(value, steps, due) for value in others)
    later = [item for item in (*sums.of("off"), *sums.of("round")) if item.value != 0]
    if totals := sums.of("total"):
        return not any(item.place > max(each.place for each in totals) for item in later)
    nets = sums.values("net")
    taken = sums.of("off") or sums.of("round")
    return any(_explains(value, steps, due) for value in nets) or not (nets or taken)


def _judge_total(sums: Sums) -> Verdict:
    """The last total, if all others lead to it, and what is taken off does."""
    best = sums.of("total")[-1]
    steps = _steps(sums, ("off", "tax", "adjust", "round"), strays=False)
    others = sums.values("total") - {best.value}
    led = best.value is not None and all(_explains(each, steps, best.value) for each in others)
    if best.value is None or not led or not _plain(best, sums):
        return Verdict(candidate=_some(sums), certain=False)
    certain = not (
        _empty_label(best, sums)
        or _overshadowed([item for item in sums.of("total") if item.value == best.value], sums)
        or _is_net(best.value, sums)
        or not _takes_off(best.value, sums)
    )
    return Verdict(candidate=best, certain=certain)


def _takes_off(total: Decimal, sums: Sums) -> bool:
    """Whether all that is taken off or rounded leads to the total."""
    if all(item.value == 0 for item in (*sums.of("off"), *sums.of("round"))):
        return True
    used = [step[1:] for step in _steps(sums, ("off", "round"), strays=False)]
    steps = [*_steps(sums, ("tax", "adjust"), strays=False), *used]
    bases = (sums.values("net") | sums.values("total")) - {total}
    return any(_explains(base, steps, total) for base in bases)


def _empty_label(best: Candidate, sums: Sums) -> bool:
    """Whether a label below asks for a sum that is not seen; a translated label does not."""
    kinds = {kind for kind, _ in sums.unfilled}
    after = range(best.place + 1, best.place + _ROWS_AFTER)
    translated = bool(kinds & {"net", "tax"})
    last = any(kind == "total" and place in after for kind, place in sums.unfilled)
    return "due" in kinds or (last and not translated)


def _steps(sums: Sums, kinds: tuple[Kind, ...], *, strays: bool) -> list[tuple[Decimal, ...]]:
    """What may lie between two sums, each amount once, as the values that it can add."""
    items = [item for kind in kinds for item in sums.of(kind) if item.value]
    items += [item for item in sums.strays if item.value] if strays else []
    seen: dict[tuple[Kind, Decimal], tuple[Decimal, ...]] = {}
    for item in items:
        seen.setdefault((item.kind, abs(item.value or Decimal(0))), _options(item))
    return list(seen.values())[:_STEPS_MAX]


def _options(step: Candidate) -> tuple[Decimal, ...]:
    value = step.value or Decimal(0)
    zero = Decimal(0)
    if step.kind == "stray":
        return (zero, value, -value)
    return (zero, -abs(value) if step.kind == "off" else value)


def _explains(
    base: Decimal | None, steps: Iterable[tuple[Decimal, ...]], target: Decimal | None
) -> bool:
    """Whether some of the steps lead from one sum to the other."""
    return base is not None and target in _reached(base, steps)


def _reached(base: Decimal, steps: Iterable[tuple[Decimal, ...]]) -> set[Decimal]:
    """Every sum that some of the steps lead to."""
    reached = {base}
    for step in steps:
        reached = {value + added for value in reached for added in step}
    return reached


def _overshadowed(chosen: list[Candidate], sums: Sums) -> bool:
    """Whether another sum of unknown meaning comes last in their block, or is larger in type."""
    values = {item.value for item in chosen}
    last = max(item.place for item in chosen)
    others = [item for item in sums.strays if item.value not in values]
    after = [item for item in others if item.place > last and item.value]
    if (
        len(after) >= _PARTS_MIN
        and after[0].place > last + 1
        and sum(item.value for item in after if item.value) in values
    ):
        return False  # under a heading of their own, they say what it is made of
    tallest = max((_height(item) for item in chosen), default=0.0)
    return any(
        any(_below(item, other) for item in chosen) or _height(other) > tallest * _LARGER > 0
        for other in others
    )


def _below(item: Candidate, other: Candidate) -> bool:
    """Whether the other sum ends the block of this one."""
    if other.row.page != item.row.page or not 0 < other.place - item.place <= _ROWS_AFTER:
        return False
    box, below = item.cell.box, other.cell.box
    if box is not None and below is not None and below.top - box.bottom > _POINTS_APART:
        return False
    if None not in (item.amount.mark, other.amount.mark) and item.amount.mark != other.amount.mark:
        return False  # in another currency it is an equivalent
    ends = abs(item.cell.end - other.cell.end) <= _ALIGNED
    begin = abs(item.row.cells[0].start - other.row.cells[0].start) <= 1
    return ends or begin or abs(item.cell.start - other.cell.start) <= 1


def _height(item: Candidate) -> float:
    return item.cell.box.height if item.cell.box else 0.0


def _is_net(value: Decimal, sums: Sums) -> bool:
    """Whether a tax is listed that, added to this total, gives an amount of the document too."""
    return any(tax and tax > 0 and value + tax in sums.every for tax in sums.values("tax"))


def _plain(candidate: Candidate, sums: Sums) -> bool:
    """Whether the amount is clearly money, and not a count followed by an amount."""
    tail = candidate.amount.tail
    if tail is None or tail not in sums.every:
        return candidate.amount.firm or (sums.whole and _alone(candidate))
    repeated = [item for item in sums.candidates if item.value == candidate.value]
    added = {net + tax for net in sums.values("net") for tax in sums.values("tax") if net and tax}
    return len(repeated) > 1 or candidate.value in added


def _alone(candidate: Candidate) -> bool:
    """Whether the cell holds the number and nothing else."""
    return not (
        candidate.cell.text[: candidate.amount.start] + candidate.cell.text[candidate.amount.end :]
    ).strip()


def _some(sums: Sums) -> Candidate | None:
    """Any amount to show beside a verdict of doubt; never paid."""
    usable = [*sums.of("due"), *sums.of("total"), *sums.of("earlier")]
    return next((item for item in usable if item.value is not None), next(iter(usable), None))
