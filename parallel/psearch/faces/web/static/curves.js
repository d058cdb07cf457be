// Curves: rates over time, reliability, and the evaluation of a game.
//
//   const curve = new Curve(root, { label: "Speed", unit: "nodes/s", format });   a figure with its last value
//   curve.show(values);                                                            numbers or null, oldest first
//   root.append(reliability({ title, series: [{ label, bins: [{ count, predicted, observed }] }] }));

import { byId, el, grouped, setText, svg } from "./dom.js";
import { MISTAKES, moveNumber } from "./game.js";

const LEAST_COUNT = 20; // smaller bins are too noisy
const HEIGHT = 100;
const WIDTH = 600;

const line = (name, x1, y1, x2, y2) => svg("line", { class: name, x1, y1, x2, y2 });
const pointsOf = (points) => points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");

export class Curve {
  constructor(root, { label, unit, format, colour }) {
    Object.assign(this, { label, unit, format });
    this.value = el("output", {}, "–");
    this.path = svg("path");
    this.path.style.stroke = `var(${colour})`;
    const shape = { role: "img", "aria-label": label, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" };
    this.plot = svg("svg", shape, this.path);
    root.append(el("figure", { class: "curve" }, el("figcaption", {}, el("span", {}, label), this.value), this.plot));
  }

  show(values) {
    const known = values.filter((value) => value !== null);
    const last = values.at(-1) ?? null;
    this.value.textContent = last === null ? "–" : `${this.format(last)} ${this.unit}`.trim();
    if (known.length) {
      const [low, high] = [Math.min(...known), Math.max(...known)].map(this.format);
      this.plot.setAttribute("aria-label", `${this.label}: ${this.value.textContent}, recently ${low} to ${high}`);
    }
    const most = Math.max(...known, 1e-9);
    const step = WIDTH / Math.max(values.length - 1, 1);
    const steps = values.map((value, number) => {
      if (value === null) return "";
      const goesOn = number && values[number - 1] !== null;
      return `${goesOn ? "L" : "M"}${(number * step).toFixed(1)} ${(HEIGHT * (0.96 - (0.87 * Math.max(value, 0)) / most)).toFixed(1)}`;
    });
    this.path.setAttribute("d", steps.join(""));
  }
}

/** A plot of observed over predicted frequencies; the diagonal is a perfect prediction. */
export function reliability({ title, series }) {
  const size = 260, left = 38, floor = 226, side = 214;
  const x = (value) => left + value * side;
  const y = (value) => floor - value * side;
  const text = (words, attributes) => svg("text", { "text-anchor": "middle", ...attributes }, words);
  const plot = svg("svg", { viewBox: `0 0 ${size} ${size}`, role: "img" });
  for (const value of [0, 0.25, 0.5, 0.75, 1]) {
    plot.append(line("grid", x(0), y(value), x(1), y(value)));
    plot.append(text(String(value), { x: left - 5, y: y(value) + 4, "text-anchor": "end" }));
    plot.append(text(String(value), { x: x(value), y: floor + 14 }));
  }
  plot.append(text("predicted", { x: x(0.5), y: floor + 29 }));
  plot.append(text("observed", { transform: `translate(10 ${y(0.5)}) rotate(-90)` }));
  plot.append(line("ideal", x(0), y(0), x(1), y(1)));
  const descriptions = series.map(({ label, bins }, number) => {
    const solid = bins.filter((bin) => bin.count >= LEAST_COUNT);
    const name = `curve-${number + 1}`;
    plot.append(svg("polyline", { class: `line ${name}`, points: pointsOf(solid.map((bin) => [x(bin.predicted), y(bin.observed)])) }));
    for (const { count, predicted, observed } of solid) {
      const words = `${label}: predicted ${predicted.toFixed(3)}, observed ${observed.toFixed(3)} (${grouped(count)})`;
      plot.append(svg("circle", { class: `mark ${name}`, cx: x(predicted), cy: y(observed), r: 3 }, svg("title", {}, words)));
    }
    const pairs = solid.map((bin) => `${bin.predicted.toFixed(2)} gave ${bin.observed.toFixed(2)}`);
    return `${label}: ${pairs.join(", ") || "too few predictions"}`;
  });
  plot.setAttribute("aria-label", `${title}. ${descriptions.join(". ")}`);
  const keys = series.map(({ label }, number) => el("li", {}, el("span", { class: `key curve-${number + 1}` }), label));
  return el("figure", { class: "reliability" }, el("figcaption", {}, title), plot, el("ul", { class: "keys" }, keys));
}

// A short text, since the bar is narrow.
function brief({ text, cp }) {
  return text.includes("#") ? text : (cp / 100).toFixed(Math.abs(cp) < 995 ? 1 : 0).replace("-0.0", "0.0");
}

// The bar beside the board, and the graph of the main line with marked mistakes. Both show White's chance to win
// that the server sends with a score, on which the marks are based, too.
export class Evaluation {
  constructor(channel, game) {
    this.game = game;
    this.bar = byId("bar");
    this.graph = byId("graph");
    for (const type of ["game.changed", "game.scored", "game.moved", "game.previewed"]) channel.on(type, () => this.later());
    channel.on("board.turned", ({ orientation }) => this.bar.classList.toggle("turned", orientation === "black"));
    this.graph.addEventListener("click", (event) => this.follow(event));
  }

  // Draw once per frame of the screen.
  later() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = undefined;
      this.drawBar();
      this.drawGraph();
    });
  }

  drawBar() {
    const found = this.game.node?.eval;
    const white = found?.points ?? 0.5;
    byId("bar-white").style.height = `${(100 * white).toFixed(1)}%`;
    setText(byId("bar-text"), found ? brief(found) : "");
    byId("bar-text").classList.toggle("at-top", found && found.cp < 0);
    this.bar.setAttribute("aria-valuenow", String(Math.round(100 * white)));
    this.bar.setAttribute("aria-valuetext", found ? `${found.text} for White` : "unknown");
  }

  drawGraph() {
    const nodes = this.game.mainLine();
    const known = nodes.map((node) => node.eval?.points ?? null);
    const here = nodes.indexOf(this.game.node);
    const key = JSON.stringify([known, here, nodes.map((node) => node.mark)]);
    if (key === this.drawn) return;
    this.drawn = key;
    const found = known.filter((value) => value !== null).length;
    byId("graph-panel").hidden = found < 2;
    if (found < 2) return;
    this.nodes = nodes;
    const step = WIDTH / Math.max(1, nodes.length - 1);
    const y = (value) => HEIGHT * (1 - value);
    const parts = [];
    // an area for each run of evaluated positions; the others stay empty
    for (let from = 0; from < known.length; from++) {
      if (known[from] === null) continue;
      let to = from;
      while (to + 1 < known.length && known[to + 1] !== null) to++;
      const [left, right] = [Math.max(0, (from - 0.5) * step), Math.min(WIDTH, (to + 0.5) * step)];
      const run = known.slice(from, to + 1).map((value, place) => [(from + place) * step, y(value)]);
      const curve = [[left, y(known[from])], ...run, [right, y(known[to])]];
      parts.push(svg("rect", { class: "black-area", x: left, y: 0, width: right - left, height: HEIGHT }));
      parts.push(svg("polygon", { class: "white-area", points: pointsOf([[left, HEIGHT], ...curve, [right, HEIGHT]]) }));
      parts.push(svg("polyline", { class: "curve", points: pointsOf(curve) }));
      from = to;
    }
    parts.push(line("middle", 0, HEIGHT / 2, WIDTH, HEIGHT / 2));
    if (here >= 0) parts.push(line("here", here * step, 0, here * step, HEIGHT));
    const bad = nodes.filter((node) => MISTAKES[node.mark]);
    nodes.forEach((node, ply) => {
      if (!MISTAKES[node.mark] || known[ply] === null) return;
      // a line of length 0 with round ends: a dot that stays round
      parts.push(line(`dot ${MISTAKES[node.mark]}`, ply * step, y(known[ply]), ply * step, y(known[ply])));
    });
    this.graph.replaceChildren(...parts);
    const words = bad.map((node) => `${moveNumber(node, true)}${node.san} ${MISTAKES[node.mark]}`);
    const label = `Evaluation over ${nodes.length - 1} plies, ${found} known. ${words.slice(0, 30).join(", ")}`;
    this.graph.setAttribute("aria-label", label);
  }

  follow(event) {
    if (!this.nodes) return;
    const box = this.graph.getBoundingClientRect();
    const ply = Math.round(((event.clientX - box.left) / box.width) * (this.nodes.length - 1));
    this.game.go(this.nodes[Math.max(0, Math.min(ply, this.nodes.length - 1))].id);
  }
}
