"""A PydanticAI agent whose refunds ask the gate first. Its model is a script, without a key."""

import os
from typing import Any

from pydantic_ai import Agent, ModelResponse, RunContext, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from nanovm_client import Gate

gate = Gate(os.environ["GATE_URL"], os.environ["GATE_TOKEN"])


@gate.guarded("refund.issue", on_error=str)
def refund(context: RunContext, order: str, amount: str, reason: str) -> str:
    """Refund an order."""  # the context has the tool call's id: asked again, it is one refund
    return f"Refunded {amount} for order {order}."


def script(messages: list[Any], info: AgentInfo) -> ModelResponse:
    if len(messages) > 1:
        return ModelResponse([TextPart(messages[-1].parts[0].content)])
    asked = {"order": "1001", "amount": os.getenv("AMOUNT", "12.50"), "reason": "late"}
    return ModelResponse([ToolCallPart("refund", asked)])


agent = Agent(FunctionModel(script), tools=[refund])
print(agent.run_sync("Refund order 1001.").output)
