// The page before an erasure begins: it counts down and sends the form. Closing it cancels.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("starts");
  const shown = document.getElementById("seconds");
  const end = performance.now() + Number(form.dataset.waitMs) + 200;

  function tick() {
    const left = end - performance.now();
    shown.textContent = String(Math.max(0, Math.ceil(left / 1000)));
    if (left > 0) setTimeout(tick, 200);
    else form.requestSubmit();
  }

  form.querySelector("button").remove();
  tick();
});
