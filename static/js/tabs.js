// The tabs of a run: each is a link that the server answers too; here it only shows its panel.
"use strict";
(() => {
  function show(name) {
    for (const panel of document.querySelectorAll("[data-panel]")) panel.hidden = panel.dataset.panel !== name;
    for (const tab of document.querySelectorAll(".tabs [data-tab]")) {
      if (tab.dataset.tab === name) tab.setAttribute("aria-current", "true");
      else tab.removeAttribute("aria-current");
    }
  }

  // An address that names a place within a panel opens it.
  const named = location.hash && document.getElementById(location.hash.slice(1));
  const hidden = named && named.closest("[data-panel][hidden]");
  if (hidden) {
    show(hidden.dataset.panel);
    named.scrollIntoView();
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-tab]");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    show(link.dataset.tab);
    const address = new URL(location);
    address.searchParams.set("tab", link.dataset.tab);
    history.replaceState(null, "", address);
    if (!link.closest(".tabs")) document.getElementById("tabs").scrollIntoView();
  });
})();
