// A run's transcript: follow the end and let go when the reader scrolls up, open a
// line that is linked but not loaded, narrow what is loaded by level and text.
const lines = document.getElementById("log-lines");
const follow = document.getElementById("log-follow");
const search = document.getElementById("log-search");
const levels = [...document.querySelectorAll("#log [data-level]")];
const AT_END = 24; // px from the end that still count as the end

let level = "";

function setFollow(on) {
  follow?.setAttribute("aria-pressed", String(on));
  if (on) lines.scrollTop = lines.scrollHeight;
}

function following() {
  return follow?.getAttribute("aria-pressed") === "true";
}

function narrow() {
  const text = search.value.toLowerCase();
  for (const line of lines.querySelectorAll("div[id^=L]")) {
    const fits = !level || line.classList.contains("e") || (level === "w" && line.classList.contains("w"));
    line.hidden = !(fits && (!text || line.lastElementChild.textContent.toLowerCase().includes(text)));
  }
}

function openLinked() {
  const linked = location.hash.match(/^#L(\d{1,9})$/);
  if (!linked) return false;
  const line = document.getElementById(`L${linked[1]}`);
  const asked = new URLSearchParams(location.search).get("line");
  if (!line && asked !== linked[1]) location.replace(`${lines.dataset.page}?line=${linked[1]}${location.hash}`);
  line?.scrollIntoView({ block: "center" });
  return true;
}

follow?.addEventListener("click", () => setFollow(!following()));
lines.addEventListener("scroll", () => {
  const away = lines.scrollHeight - lines.scrollTop - lines.clientHeight;
  if (away > AT_END && following() && !lines.dataset.moving) setFollow(false);
});
search.addEventListener("input", narrow);
for (const button of levels) {
  button.addEventListener("click", () => {
    level = button.dataset.level;
    for (const each of levels) each.setAttribute("aria-pressed", String(each === button));
    narrow();
  });
}
document.body.addEventListener("htmx:beforeSwap", () => { lines.dataset.moving = "1"; });
document.body.addEventListener("htmx:afterSettle", () => {
  narrow();
  if (following()) lines.scrollTop = lines.scrollHeight;
  requestAnimationFrame(() => { delete lines.dataset.moving; });
  if (!document.getElementById("follow") && follow) follow.hidden = true;
});
window.addEventListener("hashchange", openLinked);
if (!openLinked()) {
  if (following()) setFollow(true);
} else if (follow) {
  follow.setAttribute("aria-pressed", "false");
}
