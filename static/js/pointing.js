// A value that is picked on the page of a held invoice is shown in its field, and its place marked.
"use strict";
document.addEventListener("change", ({ target }) => {
  const field = target.closest("#hold fieldset");
  if (!field) return;
  const [typed, text] = field.querySelectorAll(".typed input");
  if (target === text) typed.checked = true;
  else if (target !== typed) text.value = target.closest("label").querySelector("strong").textContent;
  for (const label of document.querySelectorAll("label.mark"))
    label.classList.toggle("is-picked", document.getElementById(label.htmlFor).checked);
});
