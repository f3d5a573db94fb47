// Parts of a page that are asked for anew every few seconds, while somebody looks at it.
"use strict";
(() => {
  const { watch: there, often } = document.querySelector("[data-watch]").dataset;
  const ASK_MS = often === undefined ? 3000 : 1000;
  let mark = "";

  // What a visitor unfolded stays so, and a part that has the focus waits for the next time.
  function take(part) {
    const old = document.getElementById(part.id);
    if (!old || old.contains(document.activeElement)) return old === null;
    for (const open of old.querySelectorAll("details[id][open]")) {
      const same = part.querySelector(`#${open.id}`);
      if (same) same.open = true;
    }
    if (!old.isEqualNode(part)) old.replaceWith(part);
    return true;
  }

  async function ask() {
    if (document.hidden) return;
    const answer = await fetch(`${there}?mark=${mark}`);
    if (answer.status !== 200) return;
    const made = document.createElement("template");
    made.innerHTML = await answer.text();
    const taken = [...made.content.children].map(take);
    if (taken.every(Boolean)) mark = answer.headers.get("X-Mark");
  }

  // Without a connection the page stays as it is; the next asking finds what was missed.
  setInterval(() => ask().catch(() => {}), ASK_MS);
  document.addEventListener("visibilitychange", () => ask().catch(() => {}));
})();
