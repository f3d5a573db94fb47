"""An agent of the OpenAI Agents SDK whose refunds ask the gate first. Its model is a script."""

import os

from agents import Agent, Model, ModelResponse, RunContextWrapper, Runner, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall as ToolCall

from nanovm_client import Gate

gate = Gate(os.environ["GATE_URL"], os.environ["GATE_TOKEN"])
args = f'{{"order": "1001", "amount": "{os.getenv("AMOUNT", "12.50")}", "reason": "late"}}'


@function_tool
@gate.guarded("refund.issue", on_error=str)
async def refund(context: RunContextWrapper, order: str, amount: str, reason: str) -> str:
    """Refund an order."""  # the context has the tool call's id: asked again, it is one refund
    return f"Refunded {amount} for order {order}."


class Script(Model):
    async def get_response(self, *said: object, **more: object) -> ModelResponse:
        named = {"name": "refund", "arguments": args, "call_id": os.urandom(9).hex()}
        return ModelResponse([ToolCall(type="function_call", **named)], Usage(), None)

    stream_response = get_response


agent = Agent("clerk", model=Script(), tools=[refund], tool_use_behavior="stop_on_first_tool")
print(Runner.run_sync(agent, "Refund order 1001.").final_output)
