// A page with personal values that stays open: once they are erased, it shows what is left.
"use strict";
(() => {
  const ASK_MS = 3000;
  const { run } = document.currentScript.dataset;

  async function ask() {
    if (!navigator.onLine) return;
    try {
      const answer = await fetch(`/privacy/${run}/erased/`);
      if (answer.status === 200) location.reload();
    } catch (error) {
      console.info("the server was not reached; it is asked again", error.name);
    }
  }

  setInterval(ask, ASK_MS);
})();
