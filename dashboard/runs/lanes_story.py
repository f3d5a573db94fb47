"""What a run's events say, as items and ticks of the swim lanes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dashboard.runs import lanes_svg as svg
from dashboard.runs.lanes_svg import Dot, Item, Tick, length
from dashboard.templatetags.show import kind_words, money
from engine.queries.event_stream import Call, Moment
from engine.queries.log import EventRow
from engine.queries.record import DELIVERY
from engine.queries.runs import RunHead
from pipeline.queries.money import CHARGE

STEP_LANE = {"propose": svg.MODEL, "authorize": svg.GATE, "charge": svg.STRIPE}
REASONS = {
    "CAP-001": "not granted",
    "FSM-001": "not asked for",
    "FSM-002": "not allowed now",
    "PRG-011": "changed program",
    "POL-020": "needs a person",
}
FAMILIES = {"CAP": "bad call", "BUD": "over budget", "POL": "policy", "PII": "personal data"}
STOPS, COPIER = ("refused", "ignored"), "attacker:double_exec"
TOOLS, PROPOSES = {CHARGE: "pay"}, "proposes"
TOOL_CHARS, SUM_CHARS, STEP_WIDTH = 15, 20, 52
SEVERAL = 3  # equal stops in a row that are drawn one by one
# How close to draw: the first that fits. Stops are taken together more and more.
ROOMY, TIGHT, GROUPED, JOINED, PACKED = range(5)


@dataclass(slots=True, kw_only=True)
class Story:
    """Items and ticks, collected event by event."""

    run: RunHead
    places: Mapping[str, int]
    grain: int
    copies: int
    ticks: list[Tick] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    open: Item | None = None  # the step at work
    still: Item | None = None  # the pause that goes on
    at_ms: int = 0
    sum: str = ""  # of the payment
    said_copies: bool = False

    def tell(self, moments: Sequence[Moment]) -> None:
        groups = _grouped(moments, self.grain)
        newest = next((g for g in reversed(groups) if _are_copies(g)), None)
        for group in groups:
            row = group[0].row
            if row.kind in STOPS:
                self._stopped(group, newest=group is newest)
            elif row.kind == "intent":
                self._intent(group[0])
            elif row.kind == "integrity":
                self._damage(row)
            else:
                self._moved(group[0])
            self._halts(group[-1].row)
        self._goes_on()

    def _goes_on(self) -> None:
        """Give what has not ended yet a place at the right end. No model thinks in a pause."""
        going = [item for item in (self.open, self.still) if item is not None]
        going = [item for item in going if not self.still or item.shape != "proposal"]
        end = self._tick(()) if going else 0
        for item in going:
            said = (svg.wide(item.text) + 6) * (self.grain == ROOMY)
            self.items.append(replace(item, until=end, width=max(60, item.width, said)))

    def _tick(self, rows: Iterable[EventRow], room: int = 0, at_ms: int = 0) -> int:
        """Add a moment; damaged clocks do not run backwards."""
        dots = tuple(
            Dot(number=row.number, title=_said(row), tone=_tone(row), href=self._event(row))
            for row in rows
        )
        self.at_ms = max(self.at_ms, at_ms, *(row.at_ms for row in rows), 0)
        self.ticks.append(Tick(at_ms=self.at_ms, room=room, dots=dots))
        return len(self.ticks) - 1

    def _intent(self, moment: Moment) -> None:
        row, begun_ms = moment.row, moment.begun_ms
        since = self._tick((row,))
        if self.run.pace_ms and begun_ms and begun_ms - row.at_ms >= self.run.pace_ms // 2:
            until = self._tick((), at_ms=begun_ms)
            self.items.append(self._pause(row, since, until))
            since = until
        elif begun_ms and begun_ms > row.at_ms:
            since = self._tick((), at_ms=begun_ms)
        text = _sum(moment.call)
        if row.tool == CHARGE:
            self.sum = text
            allowed = [n for n, item in enumerate(self.items) if item.shape == "allowed"]
            for place in allowed[-1:]:  # from the gate a line leads to the payment
                self.items[place] = replace(self.items[place], leads=since)
        self.open = Item(
            shape="proposal" if row.step == "propose" else "bar",
            lane=STEP_LANE.get(row.step, svg.DOCUMENT),
            since=since,
            until=None,
            title=f"{row.step}: in progress",
            href=self._step(row),
            text={"charge": "paying", "propose": "thinks"}.get(row.step, row.step),
            tone="now",
            under=text if row.tool == CHARGE else "",
            width=80 if row.tool == CHARGE else STEP_WIDTH,
        )

    def _moved(self, moment: Moment) -> None:
        row = moment.row
        if row.kind == "result" and row.outcome == "proposed":
            asked = self.open is not None and row.actor == "model"
            self._proposed(moment, self._tick((row,), room=40 if asked else 110), tone="info")
        elif row.verdict in ("ACCEPTED", "HELD") and row.kind in ("result", "suspended"):
            self._decided(row)
        elif self.open is not None and row.kind in ("result", "failed", "suspended", "terminal"):
            self._closed(moment, self._tick((row,)))
        else:
            self._tick((row,))

    def _closed(self, moment: Moment, until: int) -> None:
        """The step's end. A pause that a person asked for does not end what is under way."""
        row, now = moment.row, self.open
        asked = row.kind == "suspended" and row.outcome == "user_paused"
        if now is None or asked or row.outcome == "waiting":
            return
        took = length(self.ticks[until].at_ms - self.ticks[now.since].at_ms)
        word, tone = _ended(moment)
        paying = now.lane == svg.STRIPE
        text = f"{word} {took}" if paying else now.text
        name = row.step or now.text
        self.items.append(
            Item(
                shape="bar",
                lane=now.lane,
                since=now.since,
                until=until,
                title=f"{name}: {word or 'done'}, {took}" + f", {self.sum}" * paying,
                href=now.href,
                text=text,
                tone=tone,
                under=self.sum if paying else (f"failed {took}" if tone == "failed" else took),
                width=self._bar_width(text, self.sum * paying),
            )
        )
        self.open = None

    def _bar_width(self, text: str, under: str) -> int:
        least = STEP_WIDTH if self.grain == ROOMY else 34
        return max(least, svg.wide(text) + (8 if self.grain == ROOMY else 3), svg.wide(under))

    def _box_width(self, text: str) -> int:
        return max(64, svg.wide(text) + 12)

    def _proposed(self, moment: Moment, place: int, tone: str, text: str = "") -> None:
        """The model's box, up to ``place``; one without a question has a place of its own."""
        row, asked = moment.row, self.open
        inside = asked is None or asked.shape != "proposal" or row.actor != "model"
        tool, text = _tool(moment.call), text or _sum(moment.call) or PROPOSES
        self.items.append(
            Item(
                shape="proposal",
                lane=svg.MODEL,
                since=place if inside or asked is None else asked.since,
                until=place,
                title=f"{row.actor} proposes {tool} {_sum(moment.call)}".strip(),
                href=self._event(row) if inside else self._step(row),
                text=text,
                tone=tone,
                over=tool[:TOOL_CHARS],
                inside=inside,
                width=self._box_width(text),
            )
        )
        if not inside:
            self.open = None

    def _decided(self, row: EventRow) -> None:
        """The gate's answer, drawn under the proposal where it directly follows one."""
        held, place = row.verdict == "HELD", len(self.ticks) - 1
        word = "approved" if row.state_event == "Approved" else "allowed"
        last = next((item for item in reversed(self.items) if item.shape != "pause"), None)
        asked = next((it for it in reversed(self.items) if it.over and it.tone == "info"), None)
        under = last is not None and last.shape == "proposal" and last.until == place
        text = f"on hold: {_reason(row)}" if held and self.grain == ROOMY else "on hold"
        box = last.width if last is not None and under else 0
        shift = (box if held else 34) * under
        if last is not None and last.inside and under:  # its box takes room after the tick
            shift -= box
        room = max(10, box - shift, (svg.wide(text) + 16 if held else svg.ALLOWED + 4) - shift)
        if under:
            self.ticks[place] = replace(self.ticks[place], room=room)
        else:
            place = self._tick((), room=room)
        self._tick((row,))
        self.items.append(
            Item(
                shape="stop" if held else "allowed",
                lane=svg.GATE,
                since=place,
                until=place,
                title=f"Gate: {'on hold, ' + row.rule if held else word}",
                href=self._event(row) if held else self._step(row),
                text=text if held else f"{word} ✓",
                under=row.rule,
                tone="warn" if held else "ok",
                inside=True,
                called=under,
                asked=None if under else asked,
                shift=shift,
            )
        )

    def _stopped(self, group: Sequence[Moment], *, newest: bool) -> None:
        """A message that the gate stopped, or several that are drawn as one."""
        rows, row = [moment.row for moment in group], group[-1].row
        calls = [moment for moment in group if moment.call is not None]
        sums = [_sum(moment.call) for moment in calls] if len(group) == 1 else [""]
        asked = self.open is not None and self.open.shape == "proposal" and row.actor == "model"
        box = self._box_width(sums[0] or PROPOSES) if calls else 0
        text, under = self._words(rows, newest=newest)
        shift = box if asked else 0
        over = svg.wide(_tool(calls[-1].call)[:TOOL_CHARS]) + 6 if calls else 0
        need = max(54, svg.wide(text) + 12, svg.wide(under), box, over)
        place = self._tick(rows, room=max(10, need + 4 - shift))
        if calls:
            self._proposed(calls[-1], place, tone="held", text=sums[0] or PROPOSES)
        self.items.append(
            Item(
                shape="stop",
                lane=svg.GATE,
                since=place,
                until=place,
                title="; ".join(_said(row) for row in rows[:6]),
                href=self._event(row),
                text=text,
                under=under,
                tone="held",
                inside=True,
                called=bool(calls),
                shift=shift,
            )
        )

    def _words(self, rows: Sequence[EventRow], *, newest: bool) -> tuple[str, str]:
        """What the gate did, and by which rule."""
        row, roomy = rows[-1], self.grain == ROOMY
        rules = {each.rule for each in rows}
        rule = row.rule if len(rules) == 1 else f"{len(rules)} rules"
        if all(map(_copied, rows)):
            rule = rule if row.state_event == DELIVERY else ""  # a command's is another one
            self.said_copies = self.said_copies or (newest and self.copies > 0)
            copies = f"{self.copies} copies" if newest and self.copies else "copies"
            return (f"{copies} ignored", rule) if roomy else (copies, "ignored")
        word = "ignored" if all(each.kind == "ignored" for each in rows) else "stopped"
        if len(rows) > 1:
            return f"{len(rows)} {word}", rule
        reason = "run ended" if word == "ignored" else _reason(row)
        return f"{word}: {reason}" if roomy else word, rule

    def _damage(self, row: EventRow) -> None:
        place = self._tick((row,), room=88)
        self.items.append(
            Item(
                shape="damage",
                lane=svg.LOG,
                since=place,
                until=place,
                title=_said(row),
                href=self._event(row),
                text="damage found",
                tone="failed",
                inside=True,
            )
        )

    def _halts(self, row: EventRow) -> None:
        """Begin or end a pause, by the state that the event leads to."""
        suspended, here = row.state_to.startswith("suspended."), len(self.ticks) - 1
        if suspended and self.still is None:
            self.still = self._pause(row, here, None)
        elif self.still is not None and row.state_to and not suspended:
            self.items.append(self._ended_pause(self.still, here))
            self.still = None
            if self.open is not None and self.open.shape == "proposal":
                self.open = replace(self.open, since=here)

    def _ended_pause(self, still: Item, until: int) -> Item:
        took = length(self.ticks[until].at_ms - self.ticks[still.since].at_ms)
        text = f"{still.short} {took}"
        width = svg.wide(took) if self.grain == ROOMY else 28
        return replace(still, until=until, title=text, text=text, short=took, width=width)

    def _pause(self, row: EventRow, since: int, until: int | None) -> Item:
        word = "on hold" if row.outcome not in ("user_paused", "") else "paused"
        item = Item(
            shape="pause",
            lane=0,
            since=since,
            until=None,
            title=f"{word} since {clock(row.at_ms)}",
            href=self._event(row),
            text=f"{word} since {clock(row.at_ms)}",
            short=word,
            tone="warn" if word == "on hold" else "",
            width=28,
        )
        return item if until is None else self._ended_pause(item, until)

    def _event(self, row: EventRow) -> str:
        return f"/runs/{self.run.code}/events/{row.number}/"

    def _step(self, row: EventRow) -> str:
        place = self.places.get(row.step)
        return f"/runs/{self.run.code}/steps/{place}/" if place else self._event(row)


def _grouped(moments: Sequence[Moment], grain: int) -> list[list[Moment]]:
    """Events that are drawn as one: copies always, other stops in a row as ``grain`` says."""
    groups: list[list[Moment]] = []
    for moment in moments:
        if groups and _joins(groups[-1][-1], moment, grain):
            groups[-1].append(moment)
        else:
            groups.append([moment])
    return [part for group in groups for part in _parted(group, grain)]


def _joins(before: Moment, moment: Moment, grain: int) -> bool:
    left, right = before.row, moment.row
    if left.kind not in STOPS or right.kind not in STOPS:
        return False
    if grain == PACKED or (_copied(left) and _copied(right)):
        return True
    if grain == JOINED or (grain == GROUPED and not _copied(left) and not _copied(right)):
        return before.call is None and moment.call is None
    if _copied(left) or _copied(right):
        return False
    same = (left.rule, left.state_event, left.actor) == (right.rule, right.state_event, right.actor)
    return same and before.call == moment.call


def _parted(group: list[Moment], grain: int) -> list[list[Moment]]:
    """A few equal stops in a row are drawn one by one where there is room."""
    few = grain < GROUPED and len(group) <= SEVERAL and not _are_copies(group)
    return [[moment] for moment in group] if few else [group]


def _are_copies(group: Sequence[Moment]) -> bool:
    return all(_copied(moment.row) for moment in group)


def _copied(row: EventRow) -> bool:
    return row.kind in STOPS and (row.actor == COPIER or row.state_event == DELIVERY)


def _ended(moment: Moment) -> tuple[str, str]:
    """A step's end in a word, and its tone."""
    row = moment.row
    if row.kind == "result":
        paid = str(moment.out.get("payment_status", "")).replace("succeeded", "paid") or (
            "paid" if row.tool == CHARGE else ""
        )
        return paid, "ok" if row.tool == CHARGE else "info"
    if row.kind == "failed":
        return "failed", "failed"
    return ("not confirmed", "warn") if row.kind == "suspended" else ("stopped", "warn")


def _said(row: EventRow) -> str:
    """An event in a title: its number, kind, step and rule."""
    parts = (kind_words(row.kind), row.step, row.rule, f"by {row.actor}" * bool(row.actor))
    return f"Event {row.number}: " + " · ".join(filter(None, parts))


def _tone(row: EventRow) -> str:
    return "failed" if row.kind == "integrity" else row.tone


def _reason(row: EventRow) -> str:
    return REASONS.get(row.rule) or FAMILIES.get(row.rule.partition("-")[0], "refused")


def _tool(call: Call | None) -> str:
    return TOOLS.get(call.tool, call.tool) if call else ""


def _sum(call: Call | None) -> str:
    if call is None or call.amount is None:
        return ""
    shown = money(call.amount, call.currency) if call.minor else f"{call.currency} {call.amount:,}"
    return shown if len(shown) <= SUM_CHARS else "too large"


def clock(at_ms: int) -> str:
    """The time of day, UTC."""
    seconds = at_ms // 1_000 % 86_400
    return f"{seconds // 3_600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
