/* Refresh in place: fetch the page again and take over its live parts, keeping scroll, focus and what is being typed.
   Off on a hidden tab, while something inside is being edited, and for readers who chose "off". The choice is remembered. */
"use strict";
{
  const KEY = "millrace.refresh";
  const parts = (root) => [...root.querySelectorAll("[data-live]")];
  const live = () => document.querySelector('[data-live="page"]');
  const choice = document.querySelector("[data-refresh]");
  const stamp = () => document.querySelector("[data-updated]");
  let timer = 0;
  let fetching = false;
  let loaded = Date.now();

  const remembered = () => {
    try { return localStorage.getItem(KEY); } catch { return null; }
  };
  const busy = () => {
    const at = document.activeElement;
    const typing = at && live().contains(at) && at.matches("input, select, textarea");
    return typing || live().querySelector('details[open], dialog[open], input[form="act"]:checked') || !getSelection().isCollapsed;
  };
  const age = () => {
    const seconds = Math.round((Date.now() - loaded) / 1000);
    const [count, unit] = seconds < 60 ? [seconds, "s"] : [Math.round(seconds / 60), "min"];
    if (stamp()) stamp().textContent = seconds < 1 ? "just now" : `${count}\u00a0${unit} ago`;
  };
  const again = async () => {
    if (document.hidden || fetching || busy()) return;
    fetching = true;
    try {
      const answer = await fetch(location.href, { headers: { "X-Refresh": "1" }, credentials: "same-origin" });
      const text = await answer.text();
      const fresh = new DOMParser().parseFromString(text, "text/html");
      if (!answer.ok || answer.redirected || !parts(fresh).length || busy()) return;
      const focused = document.activeElement?.getAttribute("href");
      const sideways = [...live().querySelectorAll(".mr-scroll")].map((box) => box.scrollLeft);
      for (const part of parts(fresh)) document.querySelector(`[data-live="${part.dataset.live}"]`)?.replaceWith(part);
      live().querySelectorAll(".mr-scroll").forEach((box, place) => { box.scrollLeft = sideways[place] ?? 0; });
      if (focused) [...live().querySelectorAll("a[href]")].find((link) => link.getAttribute("href") === focused)?.focus({ preventScroll: true });
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
    start();
  }
  setInterval(age, 1000);
}
