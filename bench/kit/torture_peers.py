"""How each peer answers one condition, as its own documentation says to ask it."""

import importlib
import json
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, NamedTuple

Answer = dict[str, str]  # answer: true, false or refused; shown: what it really said
Context = Mapping[str, object]


class Peer(NamedTuple):
    """An engine: its distribution, its language (a key of the traps), and how to call it."""

    name: str
    distribution: str
    speaks: tuple[str, ...]
    ask: Callable[[str, str, Context], object]  # the idiom's key, the text, the context

    def version(self) -> str:
        """The installed version; PackageNotFoundError where there is none."""
        return version(self.distribution)

    def answer(self, trap: Mapping[str, Any], context: Context) -> Answer | None:
        """What it says to its own idiom of the trap; None where it has none."""
        key = next((key for key in self.speaks if key in trap), None)
        if key is None:
            return None
        text = str(trap[key])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = self.ask(key, text, context)
        except Exception as error:  # noqa: BLE001 - any error of a peer is its answer
            return {"written": text, "answer": "refused", "shown": _named(error)}
        return {"written": text, **read(value)}


class Said(NamedTuple):
    """An answer that is no value, with its own description."""

    answer: str
    shown: str


def read(value: object) -> Answer:
    """A value as its caller takes it: by its truth."""
    if isinstance(value, Said):
        return value._asdict()
    if type(value).__name__ in ("bool", "BoolType"):
        shown = str(bool(value)).lower()
        return {"answer": shown, "shown": shown}
    return {"answer": str(bool(value)).lower(), "shown": json.dumps(value, default=repr)}


def _named(error: Exception) -> str:
    return type(error).__name__


def _nano_vm(_: str, text: str, context: Context) -> object:
    return importlib.import_module("nano_vm.ast_engine").eval_condition(text, dict(context))


def _cel(_: str, text: str, context: Context) -> object:
    return importlib.import_module("cel").evaluate(text, dict(context))


def _celpy(_: str, text: str, context: Context) -> object:
    celpy = importlib.import_module("celpy")
    environment = celpy.Environment()
    program = environment.program(environment.compile(text))
    return program.evaluate({name: celpy.json_to_cel(value) for name, value in context.items()})


def _simpleeval(_: str, text: str, context: Context) -> object:
    simpleeval = importlib.import_module("simpleeval")
    return simpleeval.EvalWithCompoundTypes(names=dict(context)).eval(text)


def _asteval(_: str, text: str, context: Context) -> object:
    interpreter = importlib.import_module("asteval").Interpreter(minimal=True)
    interpreter.symtable.update(context)
    return interpreter.eval(text, show_errors=False, raise_errors=True)


def _json_logic(_: str, text: str, context: Context) -> object:
    return importlib.import_module("json_logic").jsonLogic(json.loads(text), dict(context))


def _cedar(key: str, text: str, context: Context) -> object:
    forbids = key == "cedar_forbid"
    policies = f"permit(principal, action, resource) when {{ {text} }};"
    if forbids:
        policies = "permit(principal, action, resource);\n" + policies.replace("permit", "forbid")
    request = {
        "principal": 'User::"a"',
        "action": 'Action::"pay"',
        "resource": 'Account::"b"',
        "context": dict(context),
    }
    found = importlib.import_module("cedarpy").is_authorized(request, policies, [])
    decision = found.decision.value
    if decision == "NoDecision" or (found.diagnostics.errors and not forbids):
        return Said("refused", f"{decision}, with an error")
    if forbids and decision == "Allow" and found.diagnostics.errors:
        return Said("false", "Allow; the forbid rule that failed is skipped")
    return (decision == "Allow") is not forbids


PEERS = (
    Peer("llm-nano-vm", "llm-nano-vm", ("llm",), _nano_vm),
    Peer("CEL in Rust", "common-expression-language", ("cel",), _cel),
    Peer("cel-python", "cel-python", ("cel",), _celpy),
    Peer("simpleeval", "simpleeval", ("python",), _simpleeval),
    Peer("asteval", "asteval", ("python",), _asteval),
    Peer("json-logic", "json-logic-qubit", ("logic",), _json_logic),
    Peer("Cedar", "cedarpy", ("cedar", "cedar_forbid"), _cedar),
)
