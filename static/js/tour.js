// The tour's one convenience: Escape ends it. Everything else is links and forms.
"use strict";
addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea, details");
  if (event.key === "Escape" && !typing && !event.defaultPrevented) {
    location.assign(document.getElementById("tour").dataset.end);
  }
});
