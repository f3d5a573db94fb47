"""When a child that ended is started again, which others with it, and when its supervisor gives up.

The words and the rules are those of OTP's supervisors; docs/supervision.md explains them and says
where they differ. A supervisor has children, left to right, and each has an incarnation, the number
of its start. Whoever starts the processes keeps two values for each supervisor, the incarnations
and the times of the failures that still count, gives them to ``decide`` with each end, carries out
the actions in their order and keeps what it returns. The same values give the same actions.

A child may be a supervisor itself. ``decide`` then asks for its start and stop as for any other
child: its start is ``begin``, its stop is ``end``. One that gave up has stopped its own children;
its parent decides about it as about a child that ended by ``SHUTDOWN``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

# Which children are stopped and started again with one that failed.
ONE_FOR_ONE: Final = "one_for_one"  # no other
ONE_FOR_ALL: Final = "one_for_all"  # all others
REST_FOR_ONE: Final = "rest_for_one"  # those to its right, which were started after it
SIMPLE_ONE_FOR_ONE: Final = "simple_one_for_one"  # no other; all are instances of one template
STRATEGIES: Final = (ONE_FOR_ONE, ONE_FOR_ALL, REST_FOR_ONE, SIMPLE_ONE_FOR_ONE)

# After which ends a child is started again.
PERMANENT: Final = "permanent"  # every one
TRANSIENT: Final = "transient"  # a failure
TEMPORARY: Final = "temporary"  # none, and none of a sibling's either
RESTARTS: Final = (PERMANENT, TRANSIENT, TEMPORARY)

# Why a child ended.
NORMAL: Final = "normal"
SHUTDOWN: Final = "shutdown"  # as it was asked to, or it is a supervisor that gave up
FAILED: Final = "failed"  # all else, a start that failed too

BACKOFF_MS: Final = 250  # before a restart; twice as long with each further one in the window,
BACKOFF_DOUBLINGS: Final = 4  # so often at the most: up to 4 s
RESTARTS_MAX: Final = 1_000  # the largest max_restarts: so many times are kept

Incarnations = Mapping[str, int]


class Child(NamedTuple):
    """A process that is supervised; it is killed ``shutdown_ms`` after it was asked to stop."""

    name: str
    restart: str = PERMANENT
    shutdown_ms: int = 5_000


class Spec(NamedTuple):
    """A supervisor and its children, left to right.

    It gives up at the first failure beyond ``max_restarts`` in ``within_s`` seconds, whichever of
    its children failed. ``restart`` is its own, where it is the child of another supervisor.
    """

    name: str
    strategy: str = ONE_FOR_ONE
    max_restarts: int = 5
    within_s: int = 60
    children: "tuple[Child | Spec, ...]" = ()  # of SIMPLE_ONE_FOR_ONE: the template
    restart: str = PERMANENT


class Ended(NamedTuple):
    """A child ended, or could not be started, or did not answer in time."""

    name: str
    incarnation: int
    reason: str = FAILED


class Start(NamedTuple):
    """Start this incarnation so long after the stops before it were carried out."""

    name: str
    incarnation: int
    after_ms: int


class Stop(NamedTuple):
    """Ask it to stop, or cancel its start; kill it when the time is over; go on once it is gone."""

    name: str
    incarnation: int
    shutdown_ms: int


class Escalate(NamedTuple):
    """The supervisor gave up after so many failures in its window: tell its parent, or a person."""

    ends: int


class Decided(NamedTuple):
    """What to do, in this order, and what to keep for the next decision."""

    actions: tuple[Start | Stop | Escalate, ...]
    ends: tuple[int, ...]
    children: Incarnations


def begin(spec: Spec, children: Incarnations = MappingProxyType({})) -> Decided:
    """Start all children, left to right; nothing of the window is left.

    Args:
        spec: the supervisor, which has no problems.
        children: what was kept, where it is started again. Of SIMPLE_ONE_FOR_ONE it names the
            instances; 0 is one that never ran.
    """
    return _decided(_starts(_members(spec, children), children, 0), (), children)


def end(spec: Spec, children: Incarnations) -> Decided:
    """Stop all children that run, right to left.

    It also follows a child that failed before all were started: the supervisor ended by FAILED.
    """
    return _decided(_stops(_members(spec, children), children), (), children)


def decide(
    spec: Spec, children: Incarnations, ended: Ended, ends: Sequence[int], at_s: int
) -> Decided:
    """What follows the end of a child.

    Args:
        spec: the supervisor, which has no problems.
        children: the incarnation of each. A negative one ran once and does not run now; one that
            is absent or 0 never ran.
        ended: which child. Where that incarnation does not run, nothing changes.
        ends: the times of failures that this supervisor kept, oldest first.
        at_s: now, in whole seconds of a clock that never goes back.
    """
    members = _members(spec, children)
    incarnation = children.get(ended.name, 0)
    if incarnation < 1 or incarnation != ended.incarnation:
        return Decided((), tuple(ends), children)
    left = {**children, ended.name: -incarnation}
    restart = members[ended.name].restart
    if restart == TEMPORARY or (restart == TRANSIENT and ended.reason != FAILED):
        return Decided((), tuple(ends), left)
    recent = (*(at for at in ends if at >= at_s - spec.within_s), at_s)
    if len(recent) > spec.max_restarts:
        return _decided((*_stops(members, left), Escalate(len(recent))), recent, left)
    names = [*members]
    groups = {ONE_FOR_ALL: names, REST_FOR_ONE: names[names.index(ended.name) :]}
    group = {name: members[name] for name in groups.get(spec.strategy, [ended.name])}
    again = [name for name, child in group.items() if child.restart != TEMPORARY]
    after_ms = BACKOFF_MS << min(len(recent) - 1, BACKOFF_DOUBLINGS)
    return _decided((*_stops(group, left), *_starts(again, left, after_ms)), recent, left)


def problems(spec: Spec) -> Iterator[tuple[str, str]]:
    """The name of each child or supervisor of a tree that is wrong, and what is wrong with it."""
    tree = _tree(spec)
    for name, times in Counter(each.name for each in tree).items():
        if times > 1:
            yield name, f"is the name of {times} children or supervisors"
    for each in tree:
        if each.restart not in RESTARTS:
            yield each.name, f"restart must be one of {', '.join(RESTARTS)}"
        if isinstance(each, Spec):
            yield from _wrong(each)
        elif each.shutdown_ms < 0:
            yield each.name, "shutdown_ms must not be negative"


def _members(spec: Spec, children: Incarnations) -> Mapping[str, Child | Spec]:
    """Those that it may have, left to right: its children, or the instances of its template."""
    if spec.strategy == SIMPLE_ONE_FOR_ONE:
        return dict.fromkeys(children, spec.children[0])
    return {child.name: child for child in spec.children}


def _starts(names: Iterable[str], children: Incarnations, after_ms: int) -> tuple[Start, ...]:
    return tuple(Start(name, abs(children.get(name, 0)) + 1, after_ms) for name in names)


def _stops(members: Mapping[str, Child | Spec], children: Incarnations) -> tuple[Stop, ...]:
    """Those of them that run, right to left."""
    running = [(child, name) for name, child in members.items() if children.get(name, 0) > 0]
    return tuple(Stop(name, children[name], _longest_ms(child)) for child, name in running[::-1])


def _decided(
    actions: tuple[Start | Stop | Escalate, ...], ends: tuple[int, ...], children: Incarnations
) -> Decided:
    moves = (action for action in actions if not isinstance(action, Escalate))
    now = {move.name: move.incarnation * (1 if isinstance(move, Start) else -1) for move in moves}
    return Decided(actions, ends, {**children, **now})


def _longest_ms(child: Child | Spec) -> int:
    """How long its stop may take: a supervisor stops one child after the other."""
    return child.shutdown_ms if isinstance(child, Child) else sum(map(_longest_ms, child.children))


def _tree(child: Child | Spec) -> list[Child | Spec]:
    below = child.children if isinstance(child, Spec) else ()
    return [child, *(each for under in below for each in _tree(under))]


def _wrong(spec: Spec) -> Iterator[tuple[str, str]]:
    if spec.strategy not in STRATEGIES:
        yield spec.name, f"strategy must be one of {', '.join(STRATEGIES)}"
    if not 0 <= spec.max_restarts <= RESTARTS_MAX or spec.within_s < 1:
        yield spec.name, f"max_restarts must be 0 to {RESTARTS_MAX}, within_s at least 1"
    templates = [isinstance(child, Child) for child in spec.children]
    if spec.strategy == SIMPLE_ONE_FOR_ONE and templates != [True]:
        yield spec.name, f"{SIMPLE_ONE_FOR_ONE} takes exactly one child, and no supervisor"
    stops = {child.name: _longest_ms(child) for child in spec.children}
    if spec.strategy in (ONE_FOR_ALL, REST_FOR_ONE):
        stops = {spec.name: sum(stops.values())}  # a failure may stop all of them
    for name, ms in stops.items():
        # The window would forget earlier failures meanwhile, and restarts would never end.
        if ms * spec.max_restarts > spec.within_s * 1000:
            yield name, f"may take {ms} ms to stop: longer than within_s / max_restarts allows"
