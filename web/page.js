// Draws the page's curves and attention maps from the JSON in it. Everything else on the page is plain HTML.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const lineColors = ["#1f77b4", "#d9622b", "#2b9d6a", "#c4473f", "#8a63c9", "#9a7b4f", "#d069a8", "#6b7780", "#a3a32a", "#2aa7b8"];

  // uPlot wants one x axis: the union of all, with gaps where a curve has no point.
  function aligned(curves) {
    const xs = [...new Set(curves.flatMap((curve) => curve.x))].sort((a, b) => a - b);
    return [xs, ...curves.map((curve) => {
      const at = new Map(curve.x.map((x, i) => [x, curve.y[i]]));
      return xs.map((x) => at.get(x) ?? null);
    })];
  }

  const number = (value) => value == null ? "" : Number(value.toPrecision(4)).toString();
  // Labels on powers of ten alone, where the axis is logarithmic.
  const decades = (plot, splits) => splits.map((value) => Math.abs(Math.log10(value) % 1) < 1e-9 || Math.abs(Math.log10(value) % 1) > 1 - 1e-9 ? number(value) : "");

  function drawCurve(place) {
    const figure = data.curves[Number(place.dataset.curve)];
    const axis = (label, log) => ({label, stroke: color("--ink"), grid: {stroke: color("--line"), width: 0.5}, ticks: {stroke: color("--line")},
                                   values: log ? decades : undefined, size: 60});
    place.replaceChildren();
    new uPlot({
      width: Math.max(280, place.clientWidth), height: 340,
      scales: {x: {time: false, distr: figure.log_x ? 3 : 1}, y: {distr: figure.log_y ? 3 : 1}},
      axes: [axis(figure.x_label, figure.log_x), axis(figure.y_label, figure.log_y)],
      series: [{label: figure.x_label, value: (plot, value) => number(value)}, ...figure.curves.map((curve, i) => ({
        label: curve.name, stroke: lineColors[i % lineColors.length], width: 1.5, spanGaps: true,
        dash: i >= lineColors.length ? [6, 4] : undefined, points: {show: curve.x.length < 20},
        value: (plot, value) => number(value)}))],
    }, aligned(figure.curves), place);
  }

  function option(select, text) { select.append(new Option(text)); }

  class HeatMap {
    constructor(place) {
      this.map = data.maps[Number(place.dataset.map)];
      this.effect = false;
      this.hovered = null;
      const controls = document.createElement("div");
      controls.className = "controls";
      this.layer = document.createElement("select");
      this.head = document.createElement("select");
      for (let i = 0; i < this.map.layers; ++i) option(this.layer, `layer ${i + 1}`);
      for (let i = 0; i < this.map.heads; ++i) option(this.head, `head ${i}`);
      this.layer.ariaLabel = "layer";
      this.head.ariaLabel = "head";
      this.toggle = document.createElement("button");
      this.toggle.type = "button";
      this.canvas = document.createElement("canvas");
      this.canvas.tabIndex = 0;
      this.output = document.createElement("output");
      controls.append(this.layer, this.head);
      if (this.map.effects.length > 0) controls.append(this.toggle);
      place.append(controls, this.canvas, this.output);
      for (const select of [this.layer, this.head]) select.addEventListener("change", () => this.draw());
      this.toggle.addEventListener("click", () => { this.effect = !this.effect; this.draw(); });
      for (const event of ["pointermove", "pointerdown"]) this.canvas.addEventListener(event, (e) => this.hover(e));
      this.canvas.addEventListener("pointerleave", () => { this.hovered = null; this.draw(); });
      this.canvas.addEventListener("keydown", (e) => this.step(e));
      this.draw();
    }

    value(kind, i, j) {
      const n = this.map.tokens.length;
      return this.map[kind][((this.layer.selectedIndex * this.map.heads + this.head.selectedIndex) * n + i) * n + j];
    }

    hover(event) {
      const box = this.canvas.getBoundingClientRect();
      const cell = (position, size) => Math.floor((position / size * this.size - this.margin) / this.cell);
      const j = cell(event.clientX - box.left, box.width), i = cell(event.clientY - box.top, box.height);
      const n = this.map.tokens.length;
      this.hovered = i >= 0 && j >= 0 && i < n && j < n ? [i, j] : null;
      this.draw();
    }

    step(event) {
      const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
      if (!(event.key in moves)) return;
      event.preventDefault();
      const last = this.map.tokens.length - 1, [i, j] = this.hovered ?? [0, 0], [di, dj] = moves[event.key];
      this.hovered = [Math.min(last, Math.max(0, i + di)), Math.min(last, Math.max(0, j + dj))];
      this.draw();
    }

    draw() {
      const n = this.map.tokens.length, kind = this.effect ? "effects" : "weights";
      this.margin = 44;
      this.cell = Math.floor((512 - this.margin) / n);
      this.size = this.margin + this.cell * n;
      const ratio = devicePixelRatio || 1;
      this.canvas.width = this.canvas.height = this.size * ratio;
      const pen = this.canvas.getContext("2d");
      pen.scale(ratio, ratio);
      pen.clearRect(0, 0, this.size, this.size);
      let largest = this.effect ? 1e-9 : 1;
      if (this.effect) for (let i = 0; i < n; ++i) for (let j = 0; j <= i; ++j) largest = Math.max(largest, Math.abs(this.value(kind, i, j)));
      for (let i = 0; i < n; ++i) {
        for (let j = 0; j < n; ++j) {
          const x = this.margin + j * this.cell, y = this.margin + i * this.cell;
          pen.globalAlpha = 1;
          pen.fillStyle = color(j > i ? "--paper" : "--panel");
          pen.fillRect(x, y, this.cell - 1, this.cell - 1);
          if (j > i) continue;
          const value = this.value(kind, i, j);
          pen.globalAlpha = Math.min(1, Math.abs(value) / largest);
          pen.fillStyle = color(value < 0 ? "--holds" : this.effect ? "--differs" : "--accent");
          pen.fillRect(x, y, this.cell - 1, this.cell - 1);
        }
      }
      pen.globalAlpha = 1;
      pen.fillStyle = color("--ink");
      pen.font = "12px system-ui, sans-serif";
      pen.textBaseline = "middle";
      this.map.tokens.forEach((token, t) => {
        const middle = this.margin + (t + 0.5) * this.cell;
        pen.textAlign = "right";
        pen.fillText(token, this.margin - 6, middle);
        pen.textAlign = "center";
        pen.fillText(token, middle, this.margin - 12);
      });
      if (this.hovered) {
        pen.strokeStyle = color("--ink");
        pen.strokeRect(this.margin + this.hovered[1] * this.cell, this.margin + this.hovered[0] * this.cell, this.cell - 1, this.cell - 1);
      }
      this.toggle.textContent = this.effect ? "show weights" : "show effect of removal";
      this.canvas.setAttribute("role", "img");
      this.canvas.setAttribute("aria-label", `${this.effect ? this.map.effect_label : "attention weight"}, ${this.layer.value}, ${this.head.value}; rows are queries, columns keys`);
      this.output.textContent = this.describe();
    }

    describe() {
      const what = this.effect ? `${this.map.effect_label}; the darkest cell is the largest of this head` : "weight, 0 to 1";
      if (!this.hovered) return `Rows are queries, columns keys; colour: ${what}.`;
      const [i, j] = this.hovered, tokens = this.map.tokens;
      const place = `query ${i} (${tokens[i]}), key ${j} (${tokens[j]})`;
      if (j > i) return `${place}: hidden, it lies in the future`;
      const effect = this.map.effects.length > 0 ? `, effect of removal ${this.value("effects", i, j).toFixed(4)}` : "";
      return `${place}: weight ${this.value("weights", i, j).toFixed(4)}${effect}`;
    }
  }

  const maps = [...document.querySelectorAll("[data-map]")].map((place) => new HeatMap(place));
  const drawCurves = () => document.querySelectorAll("[data-curve]").forEach(drawCurve);
  drawCurves();
  dark.addEventListener("change", () => { drawCurves(); maps.forEach((map) => map.draw()); });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; drawCurves(); } });
})();
