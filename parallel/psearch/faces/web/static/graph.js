// The evaluation: a bar beside the board, and a graph over the main line with the mistakes marked. What they show is what
// the server sends of a score: the points that White may expect, of which the marks are made, too.

import { byId, setText, svg } from "./dom.js";
import { MISTAKES, moveNumber } from "./game.js";

const HEIGHT = 100;
const WIDTH = 600;

// As short as the bar is narrow.
function brief({ text, cp }) {
  return text.includes("#") ? text : (cp / 100).toFixed(Math.abs(cp) < 995 ? 1 : 0).replace("-0.0", "0.0");
}

export class Evaluation {
  constructor(channel, game) {
    this.game = game;
    this.bar = byId("bar");
    this.graph = byId("graph");
    this.drawn = "";
    for (const type of ["game.changed", "game.scored"]) channel.on(type, () => this.later());
    for (const type of ["game.moved", "game.previewed"]) channel.on(type, () => this.later());
    channel.on("board.turned", ({ orientation }) => this.bar.classList.toggle("turned", orientation === "black"));
    this.graph.addEventListener("click", (event) => this.follow(event));
  }

  // Once for each picture of the screen.
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
    this.bar.setAttribute("aria-valuetext", found ? `${found.text} for White` : "not known");
  }

  drawGraph() {
    const line = this.game.mainLine();
    const known = line.map((node) => node.eval?.points ?? null);
    const here = line.indexOf(this.game.node);
    const key = JSON.stringify([known, here, line.map((node) => node.mark)]);
    if (key === this.drawn) return;
    this.drawn = key;
    const found = known.filter((value) => value !== null).length;
    byId("graph-panel").hidden = found < 2;
    if (found < 2) return;
    this.line = line;
    const x = (ply) => (line.length > 1 ? (WIDTH * ply) / (line.length - 1) : 0);
    const y = (value) => HEIGHT * (1 - value);
    const half = WIDTH / Math.max(1, line.length - 1) / 2;
    const parts = [];
    // areas for each run of positions that are known; the others stay empty
    for (let from = 0; from < known.length; from++) {
      if (known[from] === null) continue;
      let to = from;
      while (to + 1 < known.length && known[to + 1] !== null) to++;
      const [left, right] = [Math.max(0, x(from) - half), Math.min(WIDTH, x(to) + half)];
      const points = [`${left.toFixed(1)},${y(known[from]).toFixed(1)}`];
      for (let ply = from; ply <= to; ply++) points.push(`${x(ply).toFixed(1)},${y(known[ply]).toFixed(1)}`);
      points.push(`${right.toFixed(1)},${y(known[to]).toFixed(1)}`);
      parts.push(svg("rect", { class: "black-area", x: left, y: 0, width: right - left, height: HEIGHT }));
      const area = [`${left.toFixed(1)},${HEIGHT}`, ...points, `${right.toFixed(1)},${HEIGHT}`];
      parts.push(svg("polygon", { class: "white-area", points: area.join(" ") }));
      parts.push(svg("polyline", { class: "curve", points: points.join(" "), "vector-effect": "non-scaling-stroke" }));
      from = to;
    }
    const middle = { x1: 0, x2: WIDTH, y1: HEIGHT / 2, y2: HEIGHT / 2, "vector-effect": "non-scaling-stroke" };
    parts.push(svg("line", { class: "middle", ...middle }));
    if (here >= 0) {
      const at = { x1: x(here), x2: x(here), y1: 0, y2: HEIGHT, "vector-effect": "non-scaling-stroke" };
      parts.push(svg("line", { class: "here", ...at }));
    }
    line.forEach((node, ply) => {
      const kind = MISTAKES[node.mark];
      if (kind && known[ply] !== null) {
        // a line of no length with round ends: a dot that stays round
        const at = { x1: x(ply), x2: x(ply), y1: y(known[ply]), y2: y(known[ply]), "vector-effect": "non-scaling-stroke" };
        parts.push(svg("line", { class: `dot ${kind}`, ...at }));
      }
    });
    this.graph.replaceChildren(...parts);
    const bad = line.filter((node) => MISTAKES[node.mark]);
    const words = bad.map((node) => `${moveNumber(node, true)}${node.san} ${MISTAKES[node.mark]}`);
    const label = `Evaluation over ${line.length - 1} plies, ${found} known. ${words.slice(0, 30).join(", ")}`;
    this.graph.setAttribute("aria-label", label);
  }

  follow(event) {
    if (!this.line) return;
    const box = this.graph.getBoundingClientRect();
    const ply = Math.round(((event.clientX - box.left) / box.width) * (this.line.length - 1));
    this.game.go(this.line[Math.max(0, Math.min(ply, this.line.length - 1))].id);
  }
}

