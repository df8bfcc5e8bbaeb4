"use strict";
// Draws slots and latency over time for every group; the data are in the page.
(() => {
  const groups = JSON.parse(document.getElementById("data").textContent);
  const colors = ["#009e73", "#56b4e9", "#e69f00", "#cc79a7", "#0072b2", "#d55e00", "#7b61c4", "#8a8d00"];
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  const soft = getComputedStyle(document.documentElement).getPropertyValue("--line").trim();
  const round = (v) => (v == null ? "–" : v >= 99.5 ? v.toFixed(0) : v.toFixed(1));

  function chart(box, group, name) {
    const series = [{ label: group.unit || "minute", value: (u, v) => (v == null ? "–" : v.toFixed(1)) }];
    const data = [group.time];
    if (name === "slots") {
      series.push({ label: "oracle", stroke: ink, width: 1.5, dash: [5, 4], value: (u, v) => round(v), points: { show: false } });
      data.push(group.oracle);
    }
    if (name === "offered") {
      series.push({ label: "records/s", stroke: colors[4], width: 1.6, value: (u, v) => round(v), points: { show: false } });
      data.push(group.offered);
    }
    (name === "offered" ? [] : group.policies).forEach((policy, i) => {
      const real = policy.label === "recorded";
      series.push({ label: policy.label, stroke: real ? ink : colors[i % colors.length], width: real ? 2.6 : 1.6, value: (u, v) => round(v), points: { show: false } });
      data.push(policy[name]);
    });
    const axis = { stroke: ink, grid: { stroke: soft, width: 1 }, ticks: { stroke: soft, width: 1 } };
    const options = {
      width: box.clientWidth, height: 230, series,
      scales: { x: { time: false }, y: { range: (u, low, high) => [0, Math.max(1, high * 1.05)] } },
      axes: [{ ...axis }, { ...axis, size: 60 }],
      cursor: { sync: { key: group.title } },
    };
    const plot = new uPlot(options, data, box);
    window.addEventListener("resize", () => plot.setSize({ width: box.clientWidth, height: 230 }));
  }

  groups.forEach((group, number) => {
    for (const name of ["offered", "slots", "latency"]) {
      const box = document.getElementById(`${name}-${number}`);
      if (box) chart(box, group, name);
    }
  });
})();
