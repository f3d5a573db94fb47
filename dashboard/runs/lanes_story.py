"""What a run's events say, as the columns of the swim lanes: the earlier on the left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dashboard.runs.lanes_groups import STOPS, are_copies, copied, grouped
from dashboard.templatetags.show import FAR_MS, event_words, length, money, on_the_clock
from engine.queries.event_stream import RequestedCall, RunEvent
from engine.queries.log import EventRow
from engine.queries.record import DELIVERY
from engine.queries.runs import RunHead
from pipeline.labels import CHARGE
from pipeline.queries.holds import advised

AGENT, DOCUMENT, MODEL, GATE, STRIPE, LOG = "agent", "document", "model", "gate", "stripe", "log"
STEP_LANE = {"advise": MODEL, "propose": MODEL, "authorize": GATE, "charge": STRIPE}
REASONS = {
    "CAP-001": "not granted",
    "FSM-001": "not asked for",
    "FSM-002": "not allowed now",
    "PRG-011": "changed program",
    "POL-020": "needs a person",
}
FAMILIES = {"CAP": "bad call", "BUD": "over budget", "POL": "policy", "PII": "personal data"}
TOOLS, PROPOSES = {CHARGE: "pay"}, "proposes"
GOING = {"advise": "asked", "charge": "paying", "propose": "thinks"}  # a step at work
TOOL_CHARS, SUM_CHARS = 15, 20
LONG_MS = 1_000  # an idle time from here on says its length
GROW_MAX = 4  # the widest of the classes in lanes.css


@dataclass(frozen=True, slots=True)
class Mark:
    """One link of the drawing: a box or a line in a lane, and the words in, over and under it.

    ``shape``: bar, proposal, stop, allowed, damage or pause.
    """

    shape: str
    lane: str
    text: str
    title: str
    href: str
    tone: str = ""
    over: str = ""
    under: str = ""
    called: bool = False  # a decision on the proposal above, and not on another message


@dataclass(slots=True, kw_only=True)
class Column:
    """What happened in one moment, and the events that say so.

    A line between two columns leaves the first, passes those between and enters the last, in the
    lane that each names.
    """

    since_ms: int
    until_ms: int
    rows: list[EventRow]
    marks: list[Mark]
    waited: str = ""  # the idle time before it
    during: str = ""  # the lane of the step that goes on meanwhile
    still: str = ""  # paused or on hold
    agent: Mark | None = None  # who acts in it, where the run has several agents
    leaves: str = ""
    passes: str = ""
    enters: str = ""

    @property
    def grow(self) -> int:
        """How wide it gets, by its duration: one more is 16 times as long."""
        return min(GROW_MAX, (self.until_ms - self.since_ms).bit_length() // 4)

    @property
    def shown(self) -> EventRow:
        """The event that its dot links to."""
        return next((row for row in reversed(self.rows) if _tone(row)), self.rows[0])

    @property
    def tone(self) -> str:
        return _tone(self.shown)

    @property
    def title(self) -> str:
        """What its dot stands for."""
        said = ", ".join(map(_title, self.rows[:6]))
        numbers = f"Events {self.rows[0].number} to {self.rows[-1].number}: "
        return numbers * (len(self.rows) > 1) + said


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingStep:
    """The step at work, from when its worker took it up."""

    mark: Mark
    since_ms: int


@dataclass(slots=True, kw_only=True)
class LaneStory:
    """Columns, collected event by event. Packed, all stops in a row are one."""

    run: RunHead
    places: Mapping[str, int]
    copies: int
    roomy: bool
    packed: bool
    agent: Mark | None = None  # who acts now
    columns: list[Column] = field(default_factory=list)
    loose: list[EventRow] = field(default_factory=list)  # those that no column has yet
    open: WorkingStep | None = None
    pause: Column | None = None  # where the pause that goes on began
    at_ms: int = 0
    idle_ms: int = 0  # when the last thing ended
    asked: int | None = None  # the column of the newest proposal that was not refused at once
    allowed: int | None = None  # that of the newest call that the gate allowed, until it is paid
    sum: str = ""  # of the payment
    said_copies: bool = False

    def tell(self, moments: Sequence[RunEvent]) -> None:
        groups = grouped(moments, self.packed)
        newest = next((g for g in reversed(groups) if are_copies(g)), None)
        for group in groups:
            row = group[0].row
            self._reach(*(moment.row for moment in group))
            if row.kind in STOPS:
                self._stopped(group, newest=group is newest)
            elif row.kind == "intent":
                self._intent(group[0])
            elif row.kind == "message":
                said = f"{event_words(row)}: {row.step}"
                self.agent = Mark("agent", AGENT, row.handed[1], said, self._event(row))
            elif row.kind == "integrity":
                where = (_title(row), self._event(row))
                self._column(Mark("damage", LOG, "damage found", *where, tone="failed"))
            elif row.kind == "result" and row.outcome == "proposed":
                self._column(self._proposed(group[0], tone="info"), since_ms=self._begun(row))
                self.asked = len(self.columns) - 1
            elif row.verdict in ("ACCEPTED", "HELD") and row.kind in ("result", "suspended"):
                self._decided(row)
            elif row.kind in ("result", "failed", "suspended", "terminal"):
                self._closed(group[0])
                if row.kind == "terminal":
                    self._settle()
            self._halts(group[-1].row)
        self._goes_on()

    def _reach(self, *rows: EventRow) -> None:
        """Come to these events; damaged clocks do not run backwards."""
        self.loose.extend(rows)
        self.at_ms = min(max(self.at_ms, *(row.at_ms for row in rows)), FAR_MS)
        self.idle_ms = self.idle_ms or self.at_ms

    def _goes_on(self) -> None:
        """What has not ended yet. No model thinks in a pause."""
        work = self.open
        if work and not (self.pause and work.mark.shape == "proposal"):
            self.open = None
            self._work(work.mark, work.since_ms)
        else:
            self._settle()

    def _settle(self) -> None:
        """Give the events that no column has to the newest."""
        column = self.columns[-1] if self.columns else self._column()
        column.rows += self.loose
        self.loose, self.idle_ms = [], self.at_ms

    def _column(self, *marks: Mark, since_ms: int | None = None) -> Column:
        """Add a column up to now, with the events since the last one."""
        since = self.at_ms if since_ms is None else since_ms
        waited, work = since - self.idle_ms, self.open
        if self.pause and work and work.mark.lane == MODEL:
            work = None  # no model thinks in a pause
        idle = not work and not self.pause and waited >= LONG_MS
        self.columns.append(
            Column(
                since_ms=since,
                until_ms=max(since, self.at_ms),
                rows=self.loose,
                marks=[*marks],
                waited=length(waited) if idle else "",
                during=work.mark.lane if work else "",
                still=self.pause.still if self.pause else "",
                agent=self.agent,
            )
        )
        self.loose, self.idle_ms = [], self.at_ms
        return self.columns[-1]

    def _lead(self, first: int, lane: str) -> None:
        """Draw a line in a lane from a column to the newest."""
        self.columns[first].leaves = self.columns[-1].enters = lane
        for column in self.columns[first + 1 : -1]:
            column.passes = lane

    def _intent(self, moment: RunEvent) -> None:
        row, since_ms = moment.row, self.at_ms
        begun_ms = min(moment.begun_ms or 0, FAR_MS)
        if self.run.pace_ms and begun_ms - row.at_ms >= self.run.pace_ms // 2:
            self.at_ms = max(begun_ms, since_ms)
            self._end(self._pause(row, since_ms))
        text = _sum(moment.call) if row.tool == CHARGE else ""
        self.sum = text or self.sum
        shape = "proposal" if row.step == "propose" else "bar"
        lane, name = STEP_LANE.get(row.step, DOCUMENT), GOING.get(row.step, row.step)
        title = f"{row.step}: in progress"
        mark = Mark(shape, lane, name, title, self._step(row), tone="now", under=text)
        self.open = WorkingStep(mark=mark, since_ms=max(since_ms, begun_ms))

    def _work(self, mark: Mark, since_ms: int) -> None:
        """Draw a step; from the gate a line leads to the payment."""
        self._column(mark, since_ms=since_ms)
        if mark.lane == STRIPE and self.allowed is not None:
            self._lead(self.allowed, GATE)
            self.allowed = None

    def _closed(self, moment: RunEvent) -> None:
        """The step's end. A pause that a person asked for does not end what is under way."""
        row, work = moment.row, self.open
        asked = row.kind == "suspended" and row.outcome == "user_paused"
        if work is None or asked or row.outcome == "waiting":
            return
        took = length(self.at_ms - work.since_ms)
        word, tone = _ended(moment)
        paying, name = work.mark.lane == STRIPE, row.step or work.mark.text
        mark = replace(
            work.mark,
            shape="bar",
            title=f"{name}: {word or 'done'}, {took}" + f", {self.sum}" * paying,
            text=f"{word} {took}" if paying else work.mark.text,
            tone=tone,
            under=self.sum if paying else f"failed {took}" if tone == "failed" else took,
        )
        self.open = None
        self._work(
            _advised(mark, moment.out) if "risk_score" in moment.out else mark, work.since_ms
        )

    def _begun(self, row: EventRow) -> int | None:
        """When the model began to think, whose answer this is: its step ends here."""
        work = self.open
        if work is None or work.mark.shape != "proposal" or row.actor != "model":
            return None
        self.open = None
        return work.since_ms

    def _proposed(self, moment: RunEvent, tone: str, text: str = "") -> Mark:
        """The model's box. One that was asked for links to the step."""
        row, work, call = moment.row, self.open, moment.call
        own = work is not None and work.mark.shape == "proposal" and row.actor == "model"
        title = f"{row.actor} proposes {_tool(call)} {_sum(call)}".strip()
        href = self._step(row) if own else self._event(row)
        said, tool = text or _sum(call) or PROPOSES, _tool(call)[:TOOL_CHARS]
        return Mark("proposal", MODEL, said, title, href, tone=tone, over=tool)

    def _decided(self, row: EventRow) -> None:
        """The gate's answer, drawn under the proposal where it directly follows one."""
        held, reason = row.verdict == "HELD", f": {_reason(row)}" if self.roomy else ""
        word = "approved" if row.state_event == "Approved" else "allowed"
        told = [each for each in self.loose if each.kind != "message"]
        under = told == [row] and self.asked == len(self.columns) - 1
        mark = (
            Mark("stop", GATE, f"on hold{reason}", f"Gate: on hold, {row.rule}", self._event(row))
            if held
            else Mark("allowed", GATE, f"{word} ✓", f"Gate: {word}", self._step(row))
        )
        mark = replace(mark, tone="warn" if held else "ok", under=row.rule, called=under)
        if under:
            self.columns[-1].marks.append(mark)
            self._settle()
        else:
            self._column(mark)
            if self.asked is not None:
                self._lead(self.asked, MODEL)
        self.allowed = None if held else len(self.columns) - 1

    def _stopped(self, group: Sequence[RunEvent], *, newest: bool) -> None:
        """A message that the gate stopped, or several that are drawn as one."""
        rows, row = [moment.row for moment in group], group[-1].row
        called = [moment for moment in group if moment.call is not None][-1:]
        plain = PROPOSES if len(group) > 1 else ""
        proposed = [self._proposed(moment, "held", plain) for moment in called]
        text, under = self._words(rows, newest=newest)
        title, href = "; ".join(map(_title, rows[:6])), self._event(row)
        stop = Mark("stop", GATE, text, title, href, tone="held", under=under, called=bool(called))
        self._column(*proposed, stop, since_ms=self._begun(row) if called else None)

    def _words(self, rows: Sequence[EventRow], *, newest: bool) -> tuple[str, str]:
        """What the gate did, and by which rule."""
        row, rules = rows[-1], {each.rule for each in rows}
        rule = row.rule if len(rules) == 1 else f"{len(rules)} rules"
        if all(map(copied, rows)):
            rule = rule if row.state_event == DELIVERY else ""  # a command's is another one
            self.said_copies = self.said_copies or (newest and self.copies > 0)
            copies = f"{self.copies} copies" if newest and self.copies else "copies"
            return (f"{copies} ignored", rule) if self.roomy else (copies, "ignored")
        word = "ignored" if all(each.kind == "ignored" for each in rows) else "stopped"
        if len(rows) > 1:
            return f"{len(rows)} {word}", rule
        reason = "run ended" if word == "ignored" else _reason(row)
        return f"{word}: {reason}" if self.roomy else word, rule

    def _halts(self, row: EventRow) -> None:
        """Begin or end a pause, by the state that the event leads to."""
        suspended = row.state_to.startswith("suspended.")
        if suspended and self.pause is None:
            self.pause = self._pause(row, self.at_ms)
        elif self.pause is not None and row.state_to and not suspended:
            self._end(self.pause)
            self.pause = None
            if self.open is not None and self.open.mark.shape == "proposal":
                self.open = replace(self.open, since_ms=self.at_ms)

    def _pause(self, row: EventRow, since_ms: int) -> Column:
        word = "on hold" if row.outcome not in ("user_paused", "") else "paused"
        said, tone = f"{word} since {on_the_clock(row.at_ms)}", "warn" if word == "on hold" else ""
        mark = Mark("pause", "top", said, said, self._event(row), tone=tone)
        column = self._column(mark, since_ms=since_ms)
        column.still = word
        if column.during == MODEL:
            column.during = ""
        return column

    def _end(self, pause: Column) -> None:
        """A pause is over. One in which something happened has room for words."""
        pause.until_ms = self.idle_ms = self.at_ms
        took = length(pause.until_ms - pause.since_ms)
        title = f"{pause.still} {took}"
        text = took if pause is self.columns[-1] else title
        pause.marks = [replace(pause.marks[0], title=title, text=text)]

    def _event(self, row: EventRow) -> str:
        return f"/runs/{self.run.code}/events/{row.number}/"

    def _step(self, row: EventRow) -> str:
        place = self.places.get(row.step)
        return f"/runs/{self.run.code}/steps/{place}/" if place else self._event(row)


def _ended(moment: RunEvent) -> tuple[str, str]:
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


def _advised(mark: Mark, out: Mapping[str, object]) -> Mark:
    """An advisor's answer: its score, what it is about, and who said so, or why nobody did."""
    if mark.lane != MODEL:
        return mark  # what counts until the advisor is asked
    title = f"advise: {advised(out)}; it can hold the payment, never allow it"
    name = str(out.get("risk_source", "")).partition(":")[0]
    return replace(mark, text=f"risk {out['risk_score']}", title=title, under=name[:SUM_CHARS])


def _title(row: EventRow) -> str:
    """An event in a title: its number, kind, step and rule."""
    parts = (event_words(row), row.step, row.rule, f"by {row.actor}" * bool(row.actor))
    return f"Event {row.number}: " + " · ".join(filter(None, parts))


def _tone(row: EventRow) -> str:
    return "failed" if row.kind == "integrity" else row.tone


def _reason(row: EventRow) -> str:
    return REASONS.get(row.rule) or FAMILIES.get(row.rule.partition("-")[0], "refused")


def _tool(call: RequestedCall | None) -> str:
    return TOOLS.get(call.tool, call.tool) if call else ""


def _sum(call: RequestedCall | None) -> str:
    if call is None or call.amount is None:
        return ""
    shown = money(call.amount, call.currency) if call.minor else f"{call.currency} {call.amount:,}"
    return shown if len(shown) <= SUM_CHARS else "too large"
