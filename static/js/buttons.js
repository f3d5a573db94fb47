// What a button says while its own request is under way.
"use strict";
(() => {
  // Its words are its last text; an icon may stand before it.
  function work(button) {
    if (!button.dataset.label) button.dataset.label = button.lastChild.data;
    button.lastChild.data = button.dataset.busy;
    button.setAttribute("aria-busy", "true");
  }

  function rest(button) {
    button.lastChild.data = button.dataset.label;
    button.removeAttribute("aria-busy");
    delete button.dataset.label;
  }

  const pressed = (from) => from.matches("form") ? from.querySelector("[data-busy]") : from;

  document.addEventListener("htmx:beforeRequest", (event) => {
    const button = pressed(event.detail.elt);
    if (button && button.dataset.busy) work(button);
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const button = pressed(event.detail.elt);
    if (button && button.dataset.label) rest(button);
  });

  // A form that leads to another page; who comes back to this one finds the words as they were.
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (button && button.dataset.busy && !event.defaultPrevented) work(button);
  });
  addEventListener("pageshow", () => {
    for (const button of document.querySelectorAll("button[data-label]")) rest(button);
  });
})();
