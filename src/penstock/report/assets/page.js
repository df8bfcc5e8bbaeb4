"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const INCREMENTS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400, 604800];
  const PAGE_ROWS = 300;
  let charts = [];

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const two = (n) => String(n).padStart(2, "0");
  const clock = (s) => {
    s = Math.round(s);
    const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
    return h ? `${h}:${two(m)}:${two(s % 60)}` : `${m}:${two(s % 60)}`;
  };
  const count = (v) => {
    if (v == null) return "–";
    for (const [size, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (Math.abs(v) >= size * 0.9995) return Number((v / size).toPrecision(3)) + letter;
    return String(Number(v.toPrecision(3)));
  };
  const secs = (v) => (v == null ? "–" : v < 10 ? v.toFixed(2) + " s" : v < 100 ? v.toFixed(1) + " s" : Math.round(v) + " s");

  function options(height, series, format, extra) {
    const axis = { stroke: color("soft"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("rule"), width: 1, size: 5 } };
    return {
      width: byId("charts").clientWidth - 42, height,
      scales: { x: { time: false }, y: { range: (u, lo, hi) => [0, Math.max(1, hi * 1.06)] } },
      axes: [
        { ...axis, size: 34, incrs: INCREMENTS, values: (u, at) => at.map(clock) },
        { ...axis, size: 62, values: (u, at) => at.map(format) },
      ],
      cursor: { y: false, sync: { key: "run" }, drag: { x: true, y: false }, points: { size: 7 } },
      legend: { live: true, markers: { width: 0, fill: (u, i) => u.series[i].mark || "transparent" } },
      series: [{ label: "time", value: (u, v) => (v == null ? "–" : clock(v)) }, ...series],
      ...extra,
    };
  }

  const line = (label, name, width, value, more) => ({ label, mark: color(name), stroke: color(name), width, value: (u, v) => value(v), points: { show: false }, ...more });

  function slotsChart() {
    // Drawn from the top of the stack down; every band ends where the next one begins.
    const stepped = uPlot.paths.stepped({ align: -1 });
    const pools = data.pools.map((p, k) => ({ ...p, color: color("pool" + (k % 6)) })).reverse();
    const areas = pools.map((p) => ({
      label: p.name, mark: p.color, stroke: p.color, fill: p.color + "8c", width: 0, paths: stepped, points: { show: false },
      value: (u, v, s, i) => (i == null ? "–" : p.own[i]),
    }));
    const whole = (v) => (v == null ? "–" : String(Math.round(v)));
    const rough = (v) => (v == null ? "–" : v.toFixed(2));
    const series = [
      ...areas,
      line("all", "ink", 2, whole, { paths: stepped }),
      line("target", "soft", 1, whole, { paths: stepped, dash: [6, 4] }),
      line("raw target", "ink", 1.5, rough, { dash: [2, 4] }),
    ];
    const hooks = { drawClear: [shadeLimits], draw: [drawMarks], setCursor: [readOut] };
    const range = () => [0, data.top];
    const extra = { bands: pools.slice(1).map((_, k) => ({ series: [k + 1, k + 2] })), hooks };
    const all = options(300, series, (v) => (Number.isInteger(v) ? String(v) : ""), extra);
    all.scales.y.range = range;
    const columns = [data.time, ...pools.map((p) => p.top), data.total, data.target, data.raw];
    return new uPlot(all, columns, byId("slots"));
  }

  function shadeLimits(u) {
    const { left, width } = u.bbox;
    u.ctx.save();
    u.ctx.fillStyle = color("limit");
    for (const [low, high] of [[0, data.limits[0]], [data.limits[1], data.top]]) {
      if (low >= high) continue;
      const top = u.valToPos(high, "y", true);
      u.ctx.fillRect(left, top, width, u.valToPos(low, "y", true) - top);
    }
    u.ctx.restore();
  }

  function drawMarks(u) {
    const size = 6 * devicePixelRatio;
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(u.bbox.left - size, u.bbox.top, u.bbox.width + 2 * size, u.bbox.height);
    u.ctx.clip();
    u.ctx.setLineDash([]);
    u.ctx.lineWidth = 1.5 * devicePixelRatio;
    for (const [time, growth, height, applied] of data.marks) {
      const x = u.valToPos(time, "x", true), way = growth > 0 ? 1 : -1;
      const y = Math.max(u.valToPos(height, "y", true) - 2 * size, u.bbox.top + 1.5 * size);
      u.ctx.beginPath();
      u.ctx.moveTo(x, y - way * size);
      u.ctx.lineTo(x - size, y + way * size * 0.75);
      u.ctx.lineTo(x + size, y + way * size * 0.75);
      u.ctx.closePath();
      u.ctx.fillStyle = u.ctx.strokeStyle = color(growth > 0 ? "up" : "down");
      applied ? u.ctx.fill() : u.ctx.stroke();
    }
    u.ctx.restore();
  }

  const hint = byId("readout").firstElementChild;
  function readOut(u) {
    const i = u.cursor.idx, box = byId("readout");
    if (i == null) return box.replaceChildren(hint);
    const [sizes, why, raw, guards] = data.decisions[i];
    const head = document.createElement("b");
    head.textContent = `${clock(data.time[i])}  ${sizes}`;
    box.replaceChildren(head, `: ${why}${raw ? ` (raw ${raw})` : ""}${guards ? `; ${guards}` : ""}`);
  }

  function draw() {
    charts.forEach((c) => c.destroy());
    const load = [line("load", "load", 1.5, (v) => count(v)), line("throughput", "throughput", 2.5, (v) => count(v))];
    const delay = [line("latency", "latency", 1.5, secs), line("lag", "lag", 2.5, secs)];
    charts = [
      new uPlot(options(230, load.reverse(), count), [data.time, data.processed, data.offered], byId("load")),
      new uPlot(options(190, delay, count), [data.time, data.latency, data.lag], byId("delay")),
      slotsChart(),
    ];
  }

  let rows = [], next = 0;
  function cell(row, kind, text) {
    const td = row.insertCell();
    td.className = kind;
    td.textContent = text;
    return td;
  }
  function sizesCell(row, text) {
    const td = cell(row, "sizes", "");
    for (const [k, part] of text.split(", ").entries()) {
      const span = document.createElement("span");
      const step = part.match(/(\d+)→(\d+)$/);
      span.className = step ? (Number(step[2]) > Number(step[1]) ? "up" : "down") : "";
      span.textContent = part;
      td.append(k ? ", " : "", span);
    }
  }
  function showMore() {
    for (const i of rows.slice(next, next + PAGE_ROWS)) {
      const [sizes, why, raw, guards] = data.decisions[i];
      const row = byId("decisions").insertRow();
      cell(row, "time", clock(data.time[i]));
      sizesCell(row, sizes);
      cell(row, "why", why);
      cell(row, "num", raw);
      cell(row, "guards", guards);
    }
    next = Math.min(next + PAGE_ROWS, rows.length);
    byId("more").hidden = next >= rows.length;
    byId("shown").textContent = `${next} of ${data.time.length} ticks shown`;
  }
  function list() {
    const only = byId("only").checked;
    rows = data.decisions.flatMap((d, i) => (!only || d[4] ? [i] : []));
    next = 0;
    byId("decisions").replaceChildren();
    showMore();
  }

  byId("only").addEventListener("change", list);
  byId("more").addEventListener("click", showMore);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", () => { document.documentElement.classList.add("print"); draw(); });
  addEventListener("afterprint", () => { document.documentElement.classList.remove("print"); draw(); });
  new ResizeObserver(() => {
    const width = byId("charts").clientWidth - 42;
    charts.forEach((c) => c.width !== width && c.setSize({ width, height: c.height }));
  }).observe(byId("charts"));
  list();
  draw();
})();
