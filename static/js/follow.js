// The event list: it follows the newest row until somebody scrolls up.
"use strict";
(() => {
  const box = document.getElementById("events-scroll");
  const follow = document.getElementById("follow");
  let following = true;
  let unseen = 0;

  const ended = () => document.querySelector("#title[data-ended]") !== null;

  function toEnd() {
    box.scrollTop = box.scrollHeight;
    unseen = 0;
  }

  function draw() {
    follow.setAttribute("aria-pressed", String(following));
    const waiting = `${unseen} new event${unseen === 1 ? "" : "s"} ↓`;
    const says = following ? "Following" : unseen ? waiting : ended() ? "Jump to end" : "Follow";
    if (follow.textContent !== says) follow.textContent = says;
  }

  document.addEventListener("nanovm:rows", (event) => {
    if (following) toEnd();
    else unseen += event.detail;
    draw();
  });

  box.addEventListener("scroll", () => {
    following = box.scrollHeight - box.scrollTop - box.clientHeight < 8;
    if (following) unseen = 0;
    draw();
  });

  follow.addEventListener("click", () => {
    following = !following;
    if (following) toEnd();
    draw();
  });

  follow.hidden = false;
  toEnd();
})();
