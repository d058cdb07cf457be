// Tracks of workers on a canvas: a row per worker, time from left to right, and what each of them did.
//
//   const view = new TrackView(root, { label: "Workers" });
//   view.show(pieces, { begin, end, rows, first });
//
// pieces: [{ tracks, begin, end }], each with tracks[row] = [[kind, begin, end, split?], ...] in microseconds; rows: number
// of tracks; first: number of the first worker. Kinds also differ in shape: work is a full bar, a join a full bar in
// another colour, idle time a thin line, work thrown away a notch in the lower half.

import { colour, el, paintOn } from "./dom.js";

export const SEARCH = 0, JOIN = 1, IDLE = 2, ABORTED = 3, LOST = 4;
const KINDS = ["searching", "joining", "idle", "thrown away", "unknown"];
const COLOURS = ["--searching", "--joining", "--idle", "--wasted", "--muted"];
export const WORKER_COLOURS = 8;
const LABEL_WIDTH = 34;
const AXIS_HEIGHT = 20;
const TOP = 13; // room above the tracks for the depths of iterations
const ROW = { most: 26, least: 6 };

/** Format a time; step: the distance in µs that two texts must tell apart, which decides the digits. */
export function timeText(us, step = null) {
  const [size, unit] = us >= 1e6 ? [1e6, "s"] : us >= 1e3 ? [1e3, "ms"] : [1, "µs"];
  const digits = step === null ? (us >= 10 * size || size === 1 ? 0 : size === 1e6 ? 2 : 1) : Math.ceil(Math.log10(size / step) - 1e-9);
  return `${(us / size).toFixed(Math.max(0, Math.min(6, digits)))} ${unit}`;
}

function ticksOf(begin, end, most) {
  const rough = Math.max(end - begin, 1) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999);
  const ticks = [];
  for (let tick = Math.ceil(begin / step) * step; tick <= end; tick += step) ticks.push(tick);
  return { ticks, step };
}

/** Return the shares of the time by kind between two moments, for one row or all (row null). */
export function sharesOf(pieces, row, begin, end) {
  const spent = [0, 0, 0, 0, 0];
  for (const { tracks } of pieces) {
    for (const [kind, from, to] of row === null ? tracks.flat() : tracks[row] ?? []) {
      spent[kind] += Math.max(0, Math.min(to, end) - Math.max(from, begin));
    }
  }
  const whole = spent[SEARCH] + spent[JOIN] + spent[IDLE] + spent[LOST];
  return spent.map((time) => (whole ? time / whole : 0));
}

export class TrackView {
  constructor(root, { label, pick = null }) {
    this.label = label;
    this.lit = null; // id of the split node whose bars are lit up
    this.root = root;
    this.canvas = el("canvas", { class: "tracks", height: 0, role: "img", "aria-label": `${label}: nothing to show yet` });
    this.says = el("p", { class: "tracks-says" });
    root.append(this.canvas, this.says);
    this.pieces = [];
    this.range = { begin: 0, end: 1, rows: 0, first: 0, marks: [] };
    if (pick) {
      this.canvas.addEventListener("click", (event) => {
        const under = this.under(event);
        if (under) pick(under.time, under.found.find(([, , , split]) => split)?.[3] ?? null);
      });
    }
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => { this.says.textContent = ""; });
    new ResizeObserver(() => this.draw()).observe(root);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => { if (root.isConnected) this.draw(); else scheme.removeEventListener("change", redraw); };
    scheme.addEventListener("change", redraw);
  }

  show(pieces, range) {
    this.pieces = pieces;
    this.range = { first: 0, marks: [], ...range };
    this.draw();
  }

  /** Light up the bars at a split node; null lights up all. */
  lightUp(id) {
    this.lit = id;
    this.draw();
  }

  /** Describe the tracks for screen readers. */
  describe() {
    const { begin, end, rows, first } = this.range;
    const words = [];
    for (let row = 0; row < Math.min(rows, 8); row++) {
      const shares = sharesOf(this.pieces, row, begin, end);
      const parts = [SEARCH, IDLE, ABORTED].map((kind) => `${KINDS[kind]} ${(100 * shares[kind]).toFixed(0)}%`);
      words.push(`worker ${first + row} ${parts.join(", ")}`);
    }
    const more = rows > 8 ? `; and ${rows - 8} more workers` : "";
    this.canvas.setAttribute("aria-label", `${this.label}, ${timeText(end - begin)}: ${words.join("; ")}${more}`);
  }

  draw() {
    const { begin, end, rows, first } = this.range;
    const width = this.root.clientWidth;
    if (!width || !rows || end <= begin) return;
    const room = Math.min(520, Math.max(160, innerHeight * 0.5));
    const row = Math.max(ROW.least, Math.min(ROW.most, Math.floor(room / rows)));
    const paint = paintOn(this.canvas, width, TOP + rows * row + AXIS_HEIGHT);
    paint.translate(0, TOP);
    const [hairline, words, ...ink] = ["--hairline", "--muted", ...COLOURS].map(colour);
    const across = (us) => LABEL_WIDTH + ((us - begin) / (end - begin)) * (width - LABEL_WIDTH - 4);
    this.row = row;
    this.timeAt = (x) => begin + ((x - LABEL_WIDTH) / (width - LABEL_WIDTH - 4)) * (end - begin);
    paint.font = "11px system-ui, sans-serif";
    paint.textAlign = "center";
    paint.textBaseline = "top";
    const { ticks, step } = ticksOf(begin, end, Math.max(2, width / 110));
    for (const tick of ticks) {
      const x = Math.round(across(tick));
      paint.fillStyle = hairline;
      paint.fillRect(x, 0, 1, rows * row + 3);
      paint.fillStyle = words;
      if (x > LABEL_WIDTH + 10 && x < width - 20) paint.fillText(timeText(tick, step), x, rows * row + 5);
    }
    paint.textAlign = "right";
    paint.textBaseline = "middle";
    paint.fillStyle = words;
    for (let number = 0; number < rows; number += Math.ceil(13 / row)) {
      paint.fillText(String(first + number), LABEL_WIDTH - 9, number * row + row / 2);
    }
    for (let number = 0; number < rows; number++) {
      paint.fillStyle = colour(`--worker-${(first + number) % WORKER_COLOURS}`);
      paint.fillRect(LABEL_WIDTH - 6, number * row + 1, 4, Math.max(row - 2, 2));
    }
    for (const wasted of [false, true]) {
      for (const piece of this.pieces) {
        if ((piece.end < begin && !wasted) || piece.begin > end) continue;
        for (let number = 0; number < rows; number++) this.drawRow(paint, ink, across, piece.tracks[number] ?? [], number * row, wasted);
      }
    }
    this.drawMarks(paint, across, rows * row, colour("--node-pv"));
  }

  // The ends of iterations, with their depths.
  drawMarks(paint, across, height, ink) {
    let free = -Infinity;
    paint.fillStyle = ink;
    paint.textAlign = "right";
    for (const { at, text } of this.range.marks) {
      const x = across(at);
      paint.fillRect(x, -TOP, 1.5, height + TOP);
      if (x - free < 22) continue;
      paint.fillText(text, x - 2, -TOP / 2);
      free = x;
    }
  }

  drawRow(paint, ink, across, track, top, wasted) {
    const { begin, end } = this.range;
    const row = this.row;
    const bar = Math.max(row - Math.max(2, row * 0.25), 3);
    for (const [kind, from, to, split] of track) {
      if ((kind === ABORTED) !== wasted || to < begin || from > end) continue;
      paint.globalAlpha = this.lit === null || split === this.lit ? 1 : 0.25;
      const left = across(Math.max(from, begin));
      // a join is always faintly visible; other short pieces must not add up to more than they are
      const wide = Math.max(across(Math.min(to, end)) - left, kind === JOIN ? 0.4 : 0);
      paint.fillStyle = ink[kind];
      if (kind === IDLE) paint.fillRect(left, top + row / 2 - 0.75, wide, 1.5);
      else if (kind === LOST) paint.fillRect(left, top + row / 2 - 2, wide, 4);
      else if (kind === ABORTED) paint.fillRect(left, top + row / 2, wide, bar / 2);
      else paint.fillRect(left, top + (row - bar) / 2, wide, bar);
    }
    paint.globalAlpha = 1;
  }

  /** Return row, time and segments under the pointer. */
  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const number = Math.floor((event.clientY - box.top - TOP) / (this.row ?? 1));
    if (!this.timeAt || number < 0 || number >= this.range.rows) return null;
    const time = this.timeAt(event.clientX - box.left);
    const track = this.pieces.flatMap((piece) => piece.tracks[number] ?? []);
    return { number, time, found: track.filter(([, from, to]) => from <= time && time < to) };
  }

  /** Say what is under the pointer. */
  point(event) {
    const under = this.under(event);
    if (!under) return;
    const { number, time, found } = under;
    const words = found.map(([kind, from, to, split]) =>
      `${KINDS[kind]} for ${timeText(to - from)}${split ? ` at split node ${split}` : ""}`);
    this.says.textContent = words.length ? `worker ${this.range.first + number}, ${timeText(time, (this.range.end - this.range.begin) / 1000)}: ${words.join("; ")}` : "";
  }
}

/** Return a legend of shapes and colours. */
export function trackLegend() {
  const items = [SEARCH, JOIN, IDLE, ABORTED].map((kind) =>
    el("li", {}, el("span", { class: `track-sign kind-${kind}` }), KINDS[kind]));
  return el("ul", { class: "track-legend", "aria-label": "Legend of the tracks" }, items);
}
