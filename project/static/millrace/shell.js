/* What every page has: the keys, and the choice of how times are told.
   Keys act outside of fields only and can be switched off (WCAG 2.1.4); the choice stays in this browser. */
"use strict";
{
  const KEYS = "millrace.keys";
  const FIELDS = "input, select, textarea, [contenteditable]";
  const ROWS = ":is(.mr-table, #result_list) > tbody > tr:not(.detail)";
  const CHAIN = 1500; // ms in which the letter follows g
  const help = document.getElementById("keys");
  const on = document.getElementById("keys-on");
  let waiting = 0; // when g was pressed

  const read = (key) => { try { return localStorage.getItem(key); } catch { return null; } };
  const write = (key, value) => { try { localStorage.setItem(key, value); } catch { /* forgotten with the page */ } };
  const search = () => document.querySelector('main input[type="search"], #searchbar') ?? document.getElementById("nav-filter");
  const here = () => document.activeElement?.closest(ROWS);

  const move = (step) => {
    const rows = [...document.querySelectorAll(`main ${ROWS}`)].filter((row) => row.checkVisibility());
    if (!rows.length) return;
    const at = rows.indexOf(here());
    const row = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + step, 0), rows.length - 1)];
    const target = row.querySelector("a[href]") ?? row;
    if (target === row) row.tabIndex = -1;
    target.focus({ focusVisible: true });
    row.scrollIntoView({ block: "nearest" });
  };
  const go = (letter) => {
    if (letter === "h") location.assign(document.querySelector("#site-name a").href);
    else document.querySelector(`[data-go="${CSS.escape(letter)}"]`)?.click();
  };
  const acts = {
    "/": () => search()?.focus(),
    "?": () => help.showModal(),
    g: () => { waiting = Date.now(); },
    j: () => move(1),
    k: () => move(-1),
    x: () => here()?.querySelector('input[type="checkbox"]')?.click(),
    r: () => document.dispatchEvent(new CustomEvent("millrace:refresh", { cancelable: true })) && location.reload(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !on.checked) return;
    if (document.querySelector("dialog[open]") || event.target.closest(FIELDS)) return;
    const chained = Date.now() - waiting < CHAIN;
    waiting = 0;
    const button = document.querySelector(`main [data-key="${CSS.escape(event.key)}"]`);
    const act = chained ? () => go(event.key) : acts[event.key] ?? (button && (() => button.click()));
    if (!act) return;
    event.preventDefault();
    act();
  });
  on.checked = read(KEYS) !== "off";
  on.addEventListener("change", () => write(KEYS, on.checked ? "on" : "off"));
  for (const button of document.querySelectorAll("[data-keys]")) button.addEventListener("click", () => help.showModal());

  for (const choice of document.querySelectorAll("[data-times]")) {
    choice.closest("[hidden]").removeAttribute("hidden");
    document.querySelector("[data-unscripted]")?.remove();
    choice.addEventListener("change", () => {
      const chosen = choice.selectedOptions[0];
      if (chosen.dataset.address) { location.assign(chosen.dataset.address); return; }
      const secure = location.protocol === "https:" ? "; secure" : "";
      document.cookie = `millrace_times=${chosen.value}; path=/; max-age=31536000; samesite=lax${secure}`;
      location.reload();
    });
  }
  const own = document.querySelector("[data-own-zone]");
  const zone = own && Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone) {
    const button = own.querySelector("button");
    button.textContent = zone;
    button.addEventListener("click", () => { document.getElementById("id_zone").value = zone; });
    own.hidden = false;
  }
}
