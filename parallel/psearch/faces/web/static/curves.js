// Small curves.
//
//   const curve = new Curve(root, { label: "Speed", unit: "nodes/s", format });   a figure with its last value
//   curve.show(values, last);                                                      values: numbers or null, oldest first
//   root.append(reliability({ title, series: [{ label, bins: [{ count, predicted, observed }] }] }));

import { el, grouped, paintOn, short, svg } from "./dom.js";
import { palette } from "./tracks.js";

const HEIGHT = 44;
const LEAST_COUNT = 20; // a bin of fewer says nothing

export class Curve {
  constructor(root, { label, unit = "", format = short, colour = "--curve-1" }) {
    this.format = format;
    this.label = label;
    this.unit = unit;
    this.colour = colour;
    this.value = el("output", {}, "–");
    this.canvas = el("canvas", { role: "img", "aria-label": label });
    this.figure = el("figure", { class: "curve" }, el("figcaption", {}, el("span", {}, label), this.value), this.canvas);
    root.append(this.figure);
    this.values = [];
    new ResizeObserver(() => this.draw()).observe(this.figure);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  show(values) {
    this.values = values;
    const known = values.filter((value) => value !== null);
    const last = values.length ? values[values.length - 1] : null;
    this.value.textContent = last === null ? "–" : `${this.format(last)} ${this.unit}`.trim();
    if (known.length) {
      const [low, high] = [Math.min(...known), Math.max(...known)].map(this.format);
      this.canvas.setAttribute("aria-label", `${this.label}: ${this.value.textContent}, from ${low} to ${high} of late`);
    }
    this.draw();
  }

  draw() {
    const width = this.figure.clientWidth;
    if (!width) return;
    const { values } = this;
    const ink = palette();
    const paint = paintOn(this.canvas, width, HEIGHT);
    paint.strokeStyle = ink["--hairline"];
    paint.beginPath();
    paint.moveTo(0, HEIGHT - 0.5);
    paint.lineTo(width, HEIGHT - 0.5);
    paint.stroke();
    const most = Math.max(...values.filter((value) => value !== null), 1e-9);
    const step = width / Math.max(values.length - 1, 1);
    paint.strokeStyle = ink[this.colour];
    paint.lineWidth = 1.5;
    paint.beginPath();
    let isDown = false;
    values.forEach((value, number) => {
      if (value === null) { isDown = false; return; }
      const y = HEIGHT - 2 - (Math.max(value, 0) / most) * (HEIGHT - 6);
      if (isDown) paint.lineTo(number * step, y);
      else paint.moveTo(number * step, y);
      isDown = true;
    });
    paint.stroke();
  }
}

/** A plot of what was observed over what was predicted; the diagonal is a prediction that is always right. */
export function reliability({ title, series }) {
  const size = 260, left = 38, floor = 226, side = 214;
  const told = series.map(({ label, bins }) => {
    const solid = bins.filter((bin) => bin.count >= LEAST_COUNT);
    return `${label}: ${solid.map((bin) => `${bin.predicted.toFixed(2)} gave ${bin.observed.toFixed(2)}`).join(", ") || "too few"}`;
  });
  const plot = svg("svg", { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": `${title}. ${told.join(". ")}` });
  const x = (value) => left + value * side;
  const y = (value) => floor - value * side;
  for (const value of [0, 0.25, 0.5, 0.75, 1]) {
    plot.append(svg("line", { class: "grid", x1: x(0), x2: x(1), y1: y(value), y2: y(value) }));
    plot.append(svg("text", { x: left - 5, y: y(value) + 4, "text-anchor": "end" }, String(value)));
    plot.append(svg("text", { x: x(value), y: floor + 14, "text-anchor": "middle" }, String(value)));
  }
  plot.append(svg("text", { x: x(0.5), y: floor + 29, "text-anchor": "middle" }, "predicted"));
  plot.append(svg("text", { transform: `translate(10 ${y(0.5)}) rotate(-90)`, "text-anchor": "middle" }, "observed"));
  plot.append(svg("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }));
  series.forEach(({ label, bins }, number) => {
    const solid = bins.filter((bin) => bin.count >= LEAST_COUNT);
    const points = solid.map((bin) => `${x(bin.predicted).toFixed(1)},${y(bin.observed).toFixed(1)}`).join(" ");
    plot.append(svg("polyline", { class: `line curve-${number + 1}`, points }));
    for (const bin of solid) {
      const mark = svg("circle", { class: `mark curve-${number + 1}`, cx: x(bin.predicted), cy: y(bin.observed), r: 3 });
      mark.append(svg("title", {}, `${label}: ${grouped(bin.count)} with ${bin.predicted.toFixed(3)}, ${bin.observed.toFixed(3)} were so`));
      plot.append(mark);
    }
  });
  const keys = series.map(({ label }, number) => el("li", {}, el("span", { class: `key curve-${number + 1}` }), label));
  return el("figure", { class: "reliability" }, el("figcaption", {}, title), plot, el("ul", { class: "keys" }, keys));
}
