// A run's transcript: follow the end and let go when the reader scrolls up, look for text and level in all lines,
// load stretches above and below as the reader comes near them, open a line that is linked but not loaded, wrap.
// However many lines there are, at most MOST stand in the page: what is added at one end makes room at the other.
const log = document.getElementById("log-lines");
const follow = document.getElementById("log-follow");
const form = document.getElementById("log-ask");
const search = document.getElementById("log-search");
const wrap = document.getElementById("log-wrap");
const AT_END = 24; // px from the end that still count as the end
const NEAR = 500; // px from lines that are not in the page at which they are loaded
const MOST = 3000; // lines
const PAUSE = 300; // ms after the last key until the text is looked for
const HIDDEN = 5000; // ms between two questions of a page that nobody sees
const WRAP = "millrace.wrap";

let level = form.querySelector('[name="level"][aria-pressed="true"]').value;
let asked = 0; // when the last question of a follower was sent
let loading = false;
let wanted = 0; // number of the newest search

const rows = () => log.querySelectorAll(":scope > div[id^=L]");
const seq = (row) => Number(row.id.slice(1));
const marker = (side) => log.querySelector(`:scope > [data-load="${side}"]`);
const following = () => follow?.getAttribute("aria-pressed") === "true";

function query(more) {
  const values = new URLSearchParams(more);
  if (search.value) values.set("text", search.value);
  if (level) values.set("level", level);
  return values;
}

function setFollow(on) {
  follow?.setAttribute("aria-pressed", String(on));
  if (on) log.scrollTop = log.scrollHeight;
}

// What stands where lines were taken out of the page, or have not been loaded.
function mark(side) {
  marker(side)?.remove();
  const all = rows();
  if (!all.length) return;
  const at = side === "before" ? seq(all[0]) - 1 : seq(all[all.length - 1]);
  const gap = document.createElement("div");
  gap.className = "gap";
  gap.dataset.load = side;
  const link = document.createElement("a");
  link.href = `${log.dataset.page}?line=${at}#L${at}`;
  link.textContent = side === "before" ? "Load earlier" : "Load later";
  const asks = search.value || level;
  gap.append(side === "before" ? (asks ? "Earlier lines match" : `Lines 1 to ${at.toLocaleString("en")}`) : asks ? "Later lines match" : "More lines follow", " · ", link);
  if (side === "before") log.prepend(gap);
  else log.append(gap);
}

// Room for what was added: at the top, or at the bottom.
function trim(side) {
  const all = [...rows()];
  const spare = all.length - MOST;
  if (spare <= 0) return;
  const gone = side === "before" ? all.slice(0, spare) : all.slice(-spare);
  const beyond = new Set(gone);
  for (const gap of log.querySelectorAll(":scope > .gap:not([data-load]):not(#follow)")) {
    const next = gap.nextElementSibling;
    if (beyond.has(next)) gap.remove();
  }
  for (const row of gone) row.remove();
  if (side === "after") document.getElementById("follow")?.remove();
  mark(side);
}

async function fetched(values) {
  const answer = await fetch(`${log.dataset.lines}?${values}`, { credentials: "same-origin" });
  if (!answer.ok || answer.redirected) throw new Error(`the server answered ${answer.status}`);
  return answer.text();
}

async function load(side) {
  const all = rows();
  if (loading || !all.length) return;
  loading = true;
  const gap = marker(side);
  const edge = side === "before" ? all[0] : all[all.length - 1];
  try {
    const text = await fetched(query({ [side]: seq(edge) }));
    const place = edge.offsetTop - log.scrollTop;
    if (gap) gap.insertAdjacentHTML(side === "before" ? "afterend" : "beforebegin", text);
    gap?.remove();
    trim(side === "before" ? "after" : "before");
    log.scrollTop = edge.offsetTop - place; // what is looked at stays where it is
    htmx.process(log);
  } catch (problem) {
    if (!gap) return;
    gap.dataset.failed = "1"; // asked for again by a click, not by scrolling
    gap.querySelector("a:last-child").textContent = `${problem.message}; try again`;
  } finally {
    loading = false;
  }
}

// Text and level are looked for on the server: most lines are not here.
async function ask() {
  const mine = ++wanted;
  const values = query({});
  history.replaceState(null, "", values.size ? `${log.dataset.page}?${values}` : log.dataset.page);
  try {
    const text = await fetched(query({ tail: 1 }));
    if (mine !== wanted) return;
    log.innerHTML = text;
    htmx.process(log);
    log.scrollTop = log.scrollHeight;
    if (follow) setFollow(true);
  } catch { /* the lines stay as they are; the next key asks again */ }
}

function openLinked() {
  const linked = location.hash.match(/^#L(\d{1,9})$/);
  if (!linked) return false;
  const line = document.getElementById(`L${linked[1]}`);
  const shown = new URLSearchParams(location.search).get("line");
  if (!line && shown !== linked[1]) location.replace(`${log.dataset.page}?line=${linked[1]}${location.hash}`);
  line?.scrollIntoView({ block: "center" });
  return true;
}

function setWrap(on) {
  wrap.setAttribute("aria-pressed", String(on));
  log.classList.toggle("nowrap", !on);
}

follow?.addEventListener("click", () => {
  if (following()) setFollow(false);
  else if (document.getElementById("follow")) setFollow(true);
  else ask(); // the end is not in the page
});
log.addEventListener("scroll", () => {
  const away = log.scrollHeight - log.scrollTop - log.clientHeight;
  if (away > AT_END && following() && !log.dataset.moving) setFollow(false);
  const side = log.scrollTop < NEAR ? "before" : away < NEAR ? "after" : "";
  const gap = side && marker(side);
  if (gap && !gap.dataset.failed) load(side);
});
log.addEventListener("click", (event) => {
  const gap = event.target.closest("a")?.closest("[data-load]");
  if (!gap || event.target.textContent.startsWith("Show")) return;
  event.preventDefault();
  load(gap.dataset.load);
});
wrap.addEventListener("click", () => {
  const on = wrap.getAttribute("aria-pressed") !== "true";
  setWrap(on);
  try { localStorage.setItem(WRAP, on ? "on" : "off"); } catch { /* it is then forgotten with the page */ }
});
try { setWrap(localStorage.getItem(WRAP) !== "off"); } catch { setWrap(true); }

let timer = 0;
search.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(ask, PAUSE);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  const button = event.submitter?.name === "level" ? event.submitter : null;
  // Enter in the field presses the first button of a form, which is not what was meant.
  if (button && document.activeElement !== search) {
    level = button.value;
    for (const each of form.querySelectorAll('[name="level"]')) each.setAttribute("aria-pressed", String(each === button));
  }
  ask();
});
document.body.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && Date.now() - asked < HIDDEN) event.preventDefault();
  else asked = Date.now();
});
document.body.addEventListener("htmx:beforeSwap", () => { log.dataset.moving = "1"; });
document.body.addEventListener("htmx:afterSettle", () => {
  if (following() || !document.getElementById("follow")) trim("before");
  else if (rows().length > MOST) {
    document.getElementById("follow").remove(); // who reads further up is left in peace
    mark("after");
  }
  if (following()) log.scrollTop = log.scrollHeight;
  requestAnimationFrame(() => { delete log.dataset.moving; });
  if (follow && !document.getElementById("follow") && !marker("after")) follow.hidden = true;
});
window.addEventListener("hashchange", openLinked);
if (!openLinked()) {
  if (following()) setFollow(true);
  else log.scrollTop = log.scrollHeight;
} else if (follow) {
  follow.setAttribute("aria-pressed", "false");
}
