"""One visitor with a run in each state that looks different, and the pages that show them."""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page

from tests.browser import visitor

COPY_MS = 90_000  # what a copy may take on a busy machine
PLACES = {
    "start": "/",
    "runs": "/runs/",
    "calls of foreign agents": "/runs/calls/",
    "inbox": "/inbox/",
    "inbox, opened": "/inbox/{held}/",
    "inbox, agents": "/inbox/?tab=agents",
    "inbox, differences": "/inbox/?tab=differences",
    "operations": "/ops/",
    "reconciliation": "/reconcile/",
    "agents": "/agents/",
    "agent": "/agents/payer/",
    "connect an agent": "/agents/connect/",
    "new": "/runs/new/",
    "runs, a search": "/runs/?q=eur&sort=supplier",
    "runs, nothing found": "/runs/?q=zzzz",
    "audit": "/audit/",
    "verify": "/verify/",
    "verify, command line": "/verify/?tab=command",
    "policy": "/policy/",
    "docs": "/docs/",
    "docs, a search": "/docs/?q=twice",
    "addresses": "/docs/addresses/",
    "rule": "/docs/rules/CAP-001/",
    "threat model": "/docs/threat-model/",
    "document, lists": "/docs/owasp/",
    "document, tables": "/docs/settings/",
    "document, code": "/docs/tutorial/",
    "run, ready": "/runs/{ready}/",
    "run, blocked": "/runs/{blocked}/",
    "run, held": "/runs/{held}/",
    "run, failed": "/runs/{failed}/",
    "run, paid": "/runs/{paid}/",
    "run, quarantined": "/runs/{damaged}/",
    "run, erased": "/runs/{erased}/",
    **{
        f"tab {name}": f"/runs/{{paid}}/?tab={name}"
        for name in ("payment", "invoice", "model", "machine", "evidence")
    },
    "step": "/runs/{paid}/steps/6/",
    "event": "/runs/{paid}/events/3/",
    "calls": "/runs/{paid}/calls/",
    "attack": "{attack}",
    "gallery": "/attack/gallery/",
    "shot": "{shot}",
    "audit of a run": "/runs/{paid}/audit/",
    "verified": "/runs/{paid}/audit/verify/",
    "verified, damaged": "/runs/{damaged}/audit/verify/",
    "report": "/runs/{paid}/report/",
    "report, erased": "/runs/{erased}/report/",
    "suppliers": "/suppliers/",
    "suppliers, a second page": "/suppliers/?page=2",
    "supplier": "{supplier}",
    "supplier, erase": "{supplier}erase/",
    "supplier, erased": "{gone}",
    "supplier, certificate": "{gone}certificate/",
    "privacy, suppliers": "/privacy/",
    "supplier and runs": "{both}",
    "supplier and runs, held": "{both}held/",
    "supplier and runs, certificate": "/privacy{cleared}certificate/",
    "privacy": "/privacy/{paid}/",
    "privacy, erased": "/privacy/{erased}/",
    "certificate": "/privacy/certificates/{erased}/",
    "links": "/links/",
    "a link that is not known": "/l/unknown/",
}


@dataclass(kw_only=True)
class Gallery:
    """The cookies of the visitor, and the codes of the runs by what they show."""

    state: Any
    codes: dict[str, str] = field(default_factory=dict)

    def path(self, place: str) -> str:
        """The address of one of the places."""
        return PLACES[place].format(**self.codes)


def opened(page: Page, gallery: Gallery, place: str) -> Page:
    """The page at a place of the furnished visitor's."""
    page.context.add_cookies(gallery.state["cookies"])
    visitor.open_page(page, gallery.path(place))
    if place.startswith("run,"):
        visitor.be_live(page)
    return page


def furnished(page: Page, plain: Page) -> Gallery:
    """Make a run in each state: all are begun before the first is waited for.

    ``plain`` is a page that runs no script: it fires a piece of the gallery.
    """
    codes = {"ready": visitor.begin(page, hold=True)}
    kept: Any = page.context.storage_state()
    plain.context.add_cookies(kept["cookies"])
    codes["shot"] = shot(plain)
    codes |= {
        "held": visitor.begin(page, sample="over_limit"),
        "failed": visitor.begin(page, sample="broken"),
        "paid": visitor.begin(page),
        "damaged": visitor.begin(page),
        "erased": visitor.begin(page),
        "blocked": visitor.paused_before(page, "propose"),
    }
    visitor.fire(page, "tool_injection")
    found = re.search(r'href="(/runs/[^"]+/attacks/[^"]+/)"', page.content())
    assert found is not None
    codes["attack"] = found[1]
    finished = {"paid": "SUCCESS", "failed": "FAILED", "held": "SUSPENDED"}
    for name, state in {**finished, "erased": "SUCCESS", "damaged": "SUCCESS"}.items():
        page.goto(f"/runs/{codes[name]}/")
        visitor.shows(page, state)
    visitor.fire(page, "corrupt_hash")
    visitor.erase(page, codes["erased"])
    codes["gone"] = visitor.register(page, "Somebody else Ltd")
    visitor.erase_supplier(page, codes["gone"])
    codes["cleared"] = visitor.register(page, "Nobody else Ltd")
    visitor.erase_with_runs(page, codes["cleared"])
    codes["supplier"] = visitor.register(page, "Zephyr Instruments B.V.")
    codes["both"] = f"/privacy{codes['supplier']}"
    return Gallery(state=kept, codes=codes)


def shot(page: Page, name: str = "split_limit") -> str:
    """Fire a piece of the gallery by its form; the address of its page, which is open."""
    page.goto("/attack/gallery/")
    with page.expect_navigation(timeout=COPY_MS):
        page.click(f"#fire-{name}")
    with page.expect_navigation():
        page.click(f"#outcome-{name} >> text=Open the evidence")
    return urlsplit(page.url).path
