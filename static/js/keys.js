// The key / leads to the search. Stage mode has keys of its own, and Escape leaves it.
"use strict";
(() => {
  const onStage = document.body.classList.contains("stage");
  const press = (...ids) => ids.map((id) => document.getElementById(id)).find(Boolean)?.click();
  const fires = () => [...document.querySelectorAll("form.injector [id^=fire-]")];

  function go(present) {
    const address = new URL(location);
    if (present) address.searchParams.set("present", "1");
    else address.searchParams.delete("present");
    location.assign(address);
  }

  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea");
    if (typing || event.repeat || event.ctrlKey || event.metaKey) return;
    if (event.altKey && event.code === "KeyS") return go(!onStage);
    if (event.altKey) return;
    if (event.key === "/" && !onStage) {
      event.preventDefault();
      document.getElementById("find")?.focus();
    }
    if (!onStage) return;
    if (event.key === "Escape") go(false);
    else if (/^[1-5]$/.test(event.key)) fires()[Number(event.key) - 1]?.click();
    else if (event.key === "p") press("act-pause", "act-resume", "act-start");
    else if (event.key === "n") press("act-fooled", "act-honest", "act-step");
  });
})();
