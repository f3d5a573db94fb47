// The page before an erasure begins: it counts down and sends the form. Closing it cancels.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("starts");
  const shown = document.getElementById("seconds");
  const SPARE_MS = 200;  // the two clocks differ; too early, the server shows this page again
  const end = performance.now() + Number(form.dataset.waitMs);

  function tick() {
    const left = end - performance.now();
    shown.textContent = String(Math.max(0, Math.ceil(left / 1000)));
    if (left > -SPARE_MS) setTimeout(tick, 200);
    else form.requestSubmit();
  }

  form.querySelector("button").remove();
  tick();
});
