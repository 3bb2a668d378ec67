/* The charts of the Metrics page, drawn by uPlot from the numbers in #drawn; the tables under them say the same.
   Drawn anew when the page was refreshed in place, the window changed its width or the theme its colours. */
"use strict";
{
  const TALL = 180; // px
  let drawn = [];

  const length = (seconds) => {
    if (seconds < 1) return `${+(seconds * 1000).toPrecision(3)}\u00a0ms`;
    if (seconds < 60) return `${+seconds.toPrecision(3)}\u00a0s`;
    if (seconds < 3600) return `${+(seconds / 60).toPrecision(3)}\u00a0min`;
    return `${+(seconds / 3600).toPrecision(3)}\u00a0h`;
  };
  const count = (number) => number.toLocaleString("en");
  const tick = (seconds) => (seconds < 1 ? `${Math.round(seconds * 1000)}\u00a0ms` : `${count(seconds)}\u00a0s`);
  // A value between two gaps has no line to be seen by.
  const alone = (values) => values.flatMap((one, at) => (one !== null && (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null ? [at] : []));
  const said = (unit) => (_, value) => (value === null || value === undefined ? "\u2013" : unit === "seconds" ? length(value) : count(value));

  const options = (chart, page, colour, width) => {
    const log = chart.unit === "seconds";
    const clock = new Intl.DateTimeFormat("en-GB", { timeZone: page.zone, hour: "2-digit", minute: "2-digit" });
    const day = new Intl.DateTimeFormat("en-GB", { timeZone: page.zone, day: "numeric", month: "short" });
    const both = new Intl.DateTimeFormat("en-GB", { timeZone: page.zone, day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
    const tens = (_, at) => at.map((one) => (Number.isInteger(Math.round(Math.log10(one) * 1e6) / 1e6) ? one : null));
    const line = { stroke: colour("--mr-rule"), width: 1, size: 4 };
    const axis = { stroke: colour("--mr-quiet"), font: `11px ${colour("--font-family-primary")}`, ticks: line, grid: { stroke: colour("--mr-line"), width: 1 } };
    const tones = {
      accent: { stroke: colour("--mr-accent"), fill: log ? undefined : colour("--mr-accent-bg") },
      quiet: { stroke: colour("--mr-quiet") },
      dashed: { stroke: colour("--mr-quiet"), dash: [4, 3] },
      fail: { stroke: colour("--mr-fail") },
      warn: { stroke: colour("--mr-warn"), dash: [4, 3] },
    };
    return {
      width, height: TALL, cursor: { drag: { setScale: false }, y: false },
      scales: {
        x: { time: true },
        y: log
          ? { distr: 3, range: (_, least, most) => [10 ** Math.floor(Math.log10(least || 0.001)), 10 ** Math.ceil(Math.log10((most || 1) * 1.0001))] }
          : { range: (_, least, most) => [0, Math.max(most * 1.05, 1)] },
      },
      axes: [
        { ...axis, space: 70, size: 28, values: (_, at) => at.map((one) => (page.days ? day : clock).format(one * 1000)) },
        {
          ...axis, size: 56, ...(log && { filter: tens, grid: { ...axis.grid, filter: tens }, ticks: { ...line, filter: tens } }),
          values: (_, at) => at.map((one) => (one === null ? "" : log ? tick(one) : Number.isInteger(one) ? count(one) : "")),
        },
      ],
      legend: { markers: { dash: (plot, at) => (plot.series[at].dash ? "dashed" : "solid") } },
      hooks: { ready: [(plot) => plot.setLegend({ idx: page.starts.length - 1 })] },
      series: [
        { label: "From", value: (_, at) => (at ? both.format(at * 1000) : "\u2013") },
        ...chart.series.map((one) => ({ label: one.name, width: 1.5, points: { show: true, size: 4, filter: () => alone(one.values) }, spanGaps: false, value: said(chart.unit), ...tones[one.tone] })),
      ],
    };
  };
  const draw = () => {
    for (const plot of drawn) plot.destroy();
    drawn = [];
    const numbers = document.getElementById("drawn");
    if (!numbers) return;
    const page = JSON.parse(numbers.textContent);
    // A probe resolves light-dark() and color-mix() into what a canvas understands.
    const probe = document.body.appendChild(document.createElement("i"));
    const colour = (name) => {
      if (name.includes("font")) return getComputedStyle(document.documentElement).getPropertyValue(name);
      probe.style.color = `var(${name})`;
      return getComputedStyle(probe).color;
    };
    for (const chart of page.charts) {
      const box = document.getElementById(`chart-${chart.id}`);
      if (box) drawn.push(new uPlot(options(chart, page, colour, box.clientWidth), [page.starts, ...chart.series.map((one) => one.values)], box));
    }
    probe.remove();
  };
  let width = 0;
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now !== width) { width = now; draw(); }
  }).observe(document.getElementById("content"));
  document.addEventListener("millrace:refreshed", draw);
  new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
