// The inbox by its keys. j and k go from row to row; a and d only go to a button and say what it
// does: Enter presses it, and Escape leaves it. Nobody who turned the shortcuts off has them.
"use strict";
(() => {
  const OFF = "nanovm-shortcuts";
  const link = (row) => row.querySelector("h3 a");
  const rows = () => [...document.querySelectorAll("#waiting > li")];
  const isOff = () => { try { return localStorage.getItem(OFF) === "off"; } catch { return false; } };

  function step(by) {
    const all = rows();
    const at = all.findIndex((row) => row.contains(document.activeElement) || link(row).ariaExpanded === "true");
    const held = all.findIndex((row) => row.contains(document.activeElement));
    const next = all[Math.min(Math.max((held < 0 ? at : held) + by, 0), all.length - 1)];
    if (next) { link(next).focus(); next.scrollIntoView({ block: "nearest" }); }
  }

  function aim(id) {
    const button = document.getElementById(id);
    const says = document.getElementById("key-says");
    if (!button || !says) return;
    says.textContent = `Press Enter for “${button.textContent.trim()}”, or Escape to leave it.`;
    says.hidden = false;
    button.focus();
    button.addEventListener("blur", () => { says.hidden = true; }, { once: true });
  }

  const KEYS = {
    j: () => step(1),
    k: () => step(-1),
    a: () => aim("act-approve"),
    d: () => aim("act-decline"),
    Escape: () => document.activeElement?.blur(),
  };

  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea");
    if (typing || event.repeat || event.ctrlKey || event.metaKey || event.altKey || isOff()) return;
    if (Object.hasOwn(KEYS, event.key)) { event.preventDefault(); KEYS[event.key](); }
  });

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("shortcuts");
    const reflect = () => {
      button.setAttribute("aria-pressed", String(!isOff()));
      button.textContent = isOff() ? "Shortcuts off" : "Shortcuts on";
    };
    button?.addEventListener("click", () => { localStorage.setItem(OFF, isOff() ? "" : "off"); reflect(); });
    if (button) reflect();
  });
})();
