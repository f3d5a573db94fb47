// Copying: an address, or a text that the server keeps ready at another one.
"use strict";
(() => {
  const SAID_MS = 2500;

  // Where the page is no secure context there is no clipboard of this kind: an old command serves.
  function byCommand(text) {
    const area = document.createElement("textarea");
    const back = document.activeElement;
    area.value = text;
    area.className = "visually-hidden";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (back) back.focus();
    if (!done) throw new Error("the browser refused");
  }

  async function put(text) {
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else byCommand(text);
  }

  async function wanted(button) {
    const { copyLink, copyFrom, copyText } = button.dataset;
    if (copyLink) return new URL(copyLink, location.href).href;
    if (copyText) return document.getElementById(copyText).textContent;
    const answer = await fetch(copyFrom);
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return answer.text();
  }

  // The button may have been drawn anew meanwhile: its namesake says it.
  function tell(pressed, word, aloud) {
    const button = document.getElementById(pressed.id) || pressed;
    const label = button.lastChild;
    if (!button.dataset.copyLabel) button.dataset.copyLabel = label.data;
    label.data = word;
    document.getElementById("say").textContent = aloud;
    setTimeout(() => { label.data = button.dataset.copyLabel; }, SAID_MS);
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy-link], [data-copy-from], [data-copy-text]");
    if (!button) return;
    const label = button.dataset.copyLabel || button.lastChild.data;
    try {
      await put(await wanted(button));
      tell(button, "Copied", `${label}: done.`);
    } catch (error) {
      tell(button, "Not copied", `${label}: not done. ${error.message}`);
    }
  });
})();
