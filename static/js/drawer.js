// The drawer under the lanes: the page of a step or an event, opened in place. Its address is
// ?item=steps/4; without a script the mark leads to the page itself.
"use strict";
(() => {
  const drawer = document.getElementById("item");
  const run = document.getElementById("live").dataset.run;
  const ITEM = /^(steps|events)\/\d+$/;
  let asked = 0;

  function element(name, fields, ...inside) {
    const made = Object.assign(document.createElement(name), fields);
    made.append(...inside);
    return made;
  }

  function remember(item) {
    const address = new URL(location);
    if (item) address.searchParams.set("item", item);
    else address.searchParams.delete("item");
    history.replaceState(null, "", address);
  }

  function close(opener) {
    drawer.hidden = true;
    drawer.replaceChildren();
    remember("");
    (document.contains(opener) ? opener : document.querySelector(".lanes-box")).focus();
  }

  async function open(item, opener) {
    const mine = ++asked;
    const url = `/runs/${run}/${item}/`;
    const answer = await fetch(url).catch(() => null);
    if (mine !== asked) return;
    if (!answer?.ok) return location.assign(url);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const title = element("h2", { id: "item-title", tabIndex: -1 }, page.querySelector("h1").textContent);
    const shut = element("button", { type: "button", className: "btn small" }, "Close");
    shut.addEventListener("click", () => close(opener));
    const whole = element("a", { className: "btn small", href: url }, "Own page");
    const parts = [...page.querySelectorAll("main > .card")];
    for (const part of parts) for (const one of part.querySelectorAll("tr[id]")) one.removeAttribute("id");
    const buttons = element("div", { className: "row" }, whole, shut);
    drawer.replaceChildren(element("div", { className: "card-head" }, title, buttons), ...parts);
    drawer.hidden = false;
    remember(item);
    title.focus({ preventScroll: true });
    drawer.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("click", (event) => {
    const mark = event.target.closest(".lanes a");
    if (!mark || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const item = mark.getAttribute("href").replace(/^\/runs\/[^/]+\/|\/$/g, "");
    if (!ITEM.test(item)) return;
    event.preventDefault();
    open(item, mark);
  });

  const named = new URL(location).searchParams.get("item") ?? "";
  if (ITEM.test(named)) open(named, null);
})();
