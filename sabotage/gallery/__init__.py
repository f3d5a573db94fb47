"""More attacks, each with the runs that it is fired at."""

from sabotage.gallery.kit.scenario import Scenario
from sabotage.kit.registry import Registry

SCENARIOS: Registry[Scenario] = Registry(
    __name__,
    "SCENARIO",
    (
        "split_limit",
        "forged_warrant",
        "widened_grant",
        "confused_deputy",
        "resurrected_pii",
        "restored_snapshot",
        "drained_budget",
        "edited_ledger",
        "error_storm",
        "crash_loop",
        "poisoned_invoice",
        "colluding_agents",
        "hidden_text",
        "changed_bank_details",
        "same_invoice_again",
        "bribed_advisor",
        "rogue_mcp_client",
        "moonlight_payment",
    ),
)
