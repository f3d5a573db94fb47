"""Drawn programs whose tools remember from hand to hand where each value came from."""

from collections.abc import Mapping
from random import Random
from typing import Any

from nanovm_core.core.authority.origin import ORIGINS, meets
from nanovm_core.core.canonical import encode
from nanovm_core.core.events import AnswerArrived, RunStarted
from nanovm_core.core.messages import Scalar
from nanovm_core.core.program import Program
from nanovm_core.vm import Answer, Done, ExecutionVM, Tool


class World:
    """A drawn program with the tools around it, which remember where each value came from."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.came_from: dict[Scalar, set[str]] = {}  # value → origins
        self.paid: list[dict[str, Scalar]] = []
        slots = [f"s{place}" for place in range(random.randint(2, 5))]
        self.given = set(random.sample(slots, random.randint(1, len(slots) - 1)))
        self.declared = {slot: random.choice((*ORIGINS, "")) for slot in slots}
        self.demands = {
            name: (random.choice(slots), random.choice((*ORIGINS, ""))) for name in ("a", "b")
        }
        self.steps = [self._step(f"e{place}", slots) for place in range(random.randint(1, 4))]
        self.origins = {
            slot: random.choice(
                [each for each in ORIGINS if meets(each, self.declared[slot] or each)]
            )
            for slot in sorted(self.given)
        }

    def _step(self, name: str, slots: list[str]) -> dict[str, Any]:
        draw = self.random
        fills = draw.sample(slots, draw.randint(1, 2))
        endorsed = {slot: draw.choice(ORIGINS[2:]) for slot in fills if draw.random() < 0.5}
        reads = draw.sample(sorted(self.given), draw.randint(0, 1))
        origin = draw.choice((*ORIGINS, ""))
        found = {"name": name, "wait": draw.random() < 0.2, "fills": fills, "endorses": endorsed}
        return {**found, "reads": reads, "origin": origin}

    @property
    def source(self) -> bytes:
        def origin(said: str) -> str:
            return f'origin = "{said}"' if said else ""

        def table(pairs: Mapping[str, str]) -> str:
            return "{ " + ", ".join(f'{key} = "{value}"' for key, value in pairs.items()) + " }"

        steps, tools = [], []
        names = [*(each["name"] for each in self.steps), "m"]
        for each, after in zip(self.steps, names[1:], strict=True):
            fills = f"fills = {each['fills']}\nendorses = {table(each['endorses'])}"
            what = 'kind = "wait"\ntimeout_ms = 9'
            if not each["wait"]:
                args = {slot: slot for slot in each["reads"]}
                what = f'kind = "effect"\ntool = "{each["name"]}"\nargs = {table(args)}'
                said = "\n".join(f'args.{slot} = {{ type = "string" }}' for slot in args)
                tools.append(f"[tools.{each['name']}]\n{origin(each['origin'])}\n{said}")
            steps.append(
                f'[[steps]]\nname = "{each["name"]}"\n{what}\n{fills}\nnext = "{after}"\n'
                'on_error = "failed"'
            )
        critical = "\n".join(
            f'critical.{name} = {{ slot = "{slot}"{", " * bool(said)}{origin(said)} }}'
            for name, (slot, said) in self.demands.items()
        )
        slots = "\n".join(
            f'{slot} = {{ type = "string"{", " * bool(said)}{origin(said)} }}'
            for slot, said in self.declared.items()
        )
        return FRAME.format(slots, critical, "\n".join(tools), "\n".join(steps), names[0]).encode()

    def run(self, program: Program) -> ExecutionVM:
        slots = {slot: f"given {slot}" for slot in sorted(self.given)}
        for slot, value in slots.items():
            self.came_from[value] = {self.origins.get(slot, "document")}
        tools: dict[str, Tool] = {each["name"]: self._tool(each) for each in self.steps}
        vm = ExecutionVM(
            program,
            run="r",
            slots=slots,
            origins=self.origins,
            tools={**tools, "pay": self._pay},
            model=lambda _: self._proposal(vm),
            now_ms=lambda: 1,
        )
        vm.feed(RunStarted())
        steps = {each["name"]: each for each in self.steps}
        while (now := vm.run()).awaits:
            out = self._answer(steps[now.step], {"person"})
            vm.answer(AnswerArrived(run="r", program=program.hash, key=now.awaits, out=out))
        return vm

    def _tool(self, step: dict[str, Any]) -> Tool:
        def tool(args: dict[str, Scalar], _: str) -> Answer:
            sources = {step["origin"] or "document"}
            return Done(
                out=self._answer(step, sources.union(*(self.came_from[v] for v in args.values())))
            )

        return tool

    def _answer(self, step: dict[str, Any], sources: set[str]) -> dict[str, Scalar]:
        out: dict[str, Scalar] = {slot: f"{step['name']} {slot}" for slot in step["fills"]}
        for slot, value in out.items():
            self.came_from[value] = (
                {step["endorses"][slot]} if slot in step["endorses"] else sources
            )
        return out

    def _proposal(self, vm: ExecutionVM) -> bytes:
        slots = vm.snapshot.slots
        args = {name: slots.get(slot, "") for name, (slot, _) in self.demands.items()}
        return encode({"tool": "pay", "args": args})

    def _pay(self, args: dict[str, Scalar], _: str) -> Answer:
        self.paid.append(args)
        return Done()


FRAME = """
v = "nanovm-program/1"
name = "drawn"
first = "{4}"
[limits]
proposals_max = 1
[slots]
{0}
[tools.model]
[tools.pay]
{1}
args.a = {{ type = "string" }}
args.b = {{ type = "string" }}
{2}
[[grants]]
tool = "pay"
[[rules]]
id = "any"
at = "authorize"
outcome = "allow"
when = "true"
why = "It is all about origins here."
[[rules]]
id = "ask"
at = "admission"
outcome = "allow"
when = "true"
why = "It is all about origins here."
{3}
[[steps]]
name = "m"
kind = "model"
tool = "model"
accepts = ["pay"]
next = "j"
on_error = "failed"
[[steps]]
name = "j"
kind = "pure"
authorizes = "m"
next = "p"
[[steps]]
name = "p"
kind = "effect"
call = "authorized"
next = "completed"
on_error = "failed"
"""
