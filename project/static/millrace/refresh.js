/* Refresh in place: fetch the page again and take over its live parts, keeping scroll, focus and what is being typed.
   Off on a hidden tab, while something is being edited or selected, and for readers who chose "off". The choice is remembered.
   Live is what carries data-live; of the admin's own lists the cells of the rows, whose boxes its own script watches. */
"use strict";
{
  const KEY = "millrace.refresh";
  const parts = (root) => [...root.querySelectorAll("[data-live]")];
  const live = () => document.querySelector('[data-live="page"]') ?? document.getElementById("result_list");
  const choice = document.querySelector("[data-refresh]");
  const stamp = () => document.querySelector("[data-updated]");
  let timer = 0;
  let fetching = false;
  let loaded = Date.now();

  const remembered = () => {
    try { return localStorage.getItem(KEY); } catch { return null; }
  };
  const changed = (field) => {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.options) return [...field.options].some((option) => option.selected !== option.defaultSelected) && field.selectedIndex > 0;
    return field.value !== field.defaultValue;
  };
  const busy = () => {
    const at = document.activeElement;
    const typing = at && live().contains(at) && at.matches('input:not([type="checkbox"]), select, textarea');
    return typing || document.querySelector("dialog[open]") || live().querySelector("details[open]") ||
      [...live().querySelectorAll("input, select, textarea")].some(changed) || !getSelection().isCollapsed;
  };
  const age = () => {
    const seconds = Math.round((Date.now() - loaded) / 1000);
    const [count, unit] = seconds < 60 ? [seconds, "s"] : [Math.round(seconds / 60), "min"];
    if (stamp()) stamp().textContent = seconds < 1 ? "just now" : `${count}\u00a0${unit} ago`;
  };
  const boxes = (table) => [...table.querySelectorAll("tbody > tr")].map((row) => row.querySelector(".action-select")?.value ?? row.querySelector("a")?.href);
  const takeRows = (fresh) => {
    const old = document.getElementById("result_list");
    const table = fresh.getElementById("result_list");
    if (!old || !table) return;
    if (boxes(old).join() !== boxes(table).join()) { location.reload(); return; }
    const cells = (root) => root.querySelectorAll("tbody > tr > :not(.action-checkbox)");
    const news = cells(table);
    cells(old).forEach((cell, place) => { if (cell.innerHTML !== news[place].innerHTML) cell.innerHTML = news[place].innerHTML; });
  };
  const takeOver = (fresh) => {
    const focused = document.activeElement?.closest("main") && document.activeElement.getAttribute("href");
    const sideways = [...live().querySelectorAll(".mr-scroll")].map((box) => box.scrollLeft);
    for (const part of parts(fresh)) {
      document.querySelector(`[data-live="${part.dataset.live}"]`)?.replaceWith(part);
      window.htmx?.process(part);
    }
    takeRows(fresh);
    live().querySelectorAll(".mr-scroll").forEach((box, place) => { box.scrollLeft = sideways[place] ?? 0; });
    if (focused) [...live().querySelectorAll("a[href]")].find((link) => link.getAttribute("href") === focused)?.focus({ preventScroll: true });
    document.dispatchEvent(new CustomEvent("millrace:refreshed"));
  };
  const again = async () => {
    if (document.hidden || fetching || busy()) return;
    fetching = true;
    try {
      const answer = await fetch(location.href, { headers: { "X-Refresh": "1" }, credentials: "same-origin" });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!answer.ok || answer.redirected || busy()) return;
      takeOver(fresh);
      loaded = Date.now();
      age();
    } catch { /* the server restarts or the network is away: the age beside "Updated" says so */ } finally {
      fetching = false;
    }
  };
  const start = () => {
    clearInterval(timer);
    const seconds = Number(choice.value);
    if (seconds) timer = setInterval(again, seconds * 1000);
  };
  if (choice && live()) {
    const before = remembered();
    if ([...choice.options].some((option) => option.value === before)) choice.value = before;
    choice.closest("[hidden]")?.removeAttribute("hidden");
    choice.addEventListener("change", () => {
      try { localStorage.setItem(KEY, choice.value); } catch { /* it is then forgotten with the page */ }
      start();
    });
    document.addEventListener("visibilitychange", () => { if (!document.hidden && Number(choice.value)) again(); });
    document.addEventListener("millrace:refresh", (event) => { event.preventDefault(); again(); });
    setInterval(age, 1000);
    start();
  }
}
