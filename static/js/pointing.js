// The fields of a held invoice and the places on its page: one field is pointed at at a time.
"use strict";
{
  const fields = () => [...document.querySelectorAll("#hold fieldset")];
  const point = (field) => { field.querySelector("[name=point]").checked = true; };

  document.addEventListener("focusin", ({ target }) => {
    const field = target.closest("#hold fieldset");
    if (field) point(field);
  });
  document.addEventListener("input", ({ target }) => {
    if (!target.matches("#hold .typed")) return;
    for (const pick of target.closest("fieldset").querySelectorAll("details input")) pick.checked = false;
    mark();
  });
  document.addEventListener("change", ({ target }) => {
    const field = target.closest("#hold fieldset");
    if (!field || !target.matches("details input")) return;
    field.querySelector(".typed").value = target.closest("label").querySelector("strong").textContent;
    mark();
    const next = fields().find((each) => !each.querySelector(".typed").value);
    if (next && !field.contains(document.activeElement)) point(next);
  });

  function mark() {
    for (const label of document.querySelectorAll("label.mark"))
      label.classList.toggle("is-picked", document.getElementById(label.htmlFor).checked);
  }
}
