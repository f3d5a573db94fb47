// The red team's box: a dry run under it soon after typing stops, and how large it is.
"use strict";
(() => {
  const PAUSE_MS = 150;
  const form = document.getElementById("arena-box");
  if (!form) return;
  const box = document.getElementById("arena-proposal");
  const line = document.getElementById("arena-line");
  const size = document.getElementById("arena-size");
  const limit = Number(form.dataset.limit);
  const encoder = new TextEncoder();
  let timer = 0;
  let resumesAt = 0;
  let request = null;

  function show(html) {
    const made = document.createElement("template");
    made.innerHTML = html;
    const word = made.content.querySelector("[data-word]");
    line.dataset.word = word ? word.dataset.word : "WAIT";
    line.replaceChildren(made.content);
  }

  function say(word, text) {
    line.dataset.word = word;
    line.replaceChildren(text);
  }

  async function check() {
    if (request) request.abort();
    request = new AbortController();
    const asked = request;
    try {
      const answer = await fetch(form.dataset.check, {
        method: "POST",
        body: new URLSearchParams(new FormData(form)),
        headers: { "X-Arena-Line": "1" },
        signal: asked.signal,
      });
      const text = await answer.text();
      if (asked !== request) return;
      if (answer.status === 429) {
        resumesAt = Date.now() + 1000 * Number(answer.headers.get("Retry-After") || 1);
        plan();
      }
      if (answer.ok || answer.status === 429) show(text);
      else say("WAIT", `Not checked: the server answered ${answer.status}. Reload the page.`);
    } catch (error) {
      if (error.name !== "AbortError") say("WAIT", "Not checked: no connection to the server.");
    }
  }

  function plan() {
    clearTimeout(timer);
    timer = setTimeout(check, Math.max(PAUSE_MS, resumesAt - Date.now()));
  }

  function count() {
    const bytes = encoder.encode(box.value).length;
    const plain = form.elements.mode.value === "text";
    const over = plain && bytes > limit ? ", too many" : "";
    size.textContent = plain ? `${bytes.toLocaleString("en")} stand here${over}.` : "";
  }

  form.addEventListener("input", () => {
    count();
    plan();
  });
  count();
})();
