// The form of an erasure: its button is available once what has to be typed is there; Escape
// cancels. The server asks again, and without this the browser does.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const typed = document.getElementById("confirm");
  if (!typed) return;
  const form = typed.form;
  const button = form.querySelector("button.danger");
  const hint = document.getElementById("confirm-hint");

  function reflect() {
    if (typed.validity.valid) button.removeAttribute("aria-disabled");
    else button.setAttribute("aria-disabled", "true");
  }

  button.setAttribute("aria-describedby", hint.id);
  typed.addEventListener("input", reflect);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") form.querySelector("[data-cancel]").click();
  });
  reflect();
});
