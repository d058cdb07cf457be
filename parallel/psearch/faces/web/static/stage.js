// One search on the tab "Workers" at one moment: tracks, tree of open nodes, what ended and why, and curves.
//
//   const stage = new Stage(root, channel, { pick });   pick(time, id): a moment and perhaps a node were chosen
//   stage.show(samples, { end, span, isLive });         samples: snapshots in order of time; end: the moment shown, in µs
//   stage.choose(id);                                   lights up a node's bars; shows its line on the board
//
// Everything shown is of the last snapshot with open nodes that is not later than `end`.

import { Curve } from "./curves.js";
import { colour, el, grouped, short } from "./dom.js";
import { ABORTED, IDLE, JOIN, SEARCH, TrackView, WORKER_COLOURS, sharesOf, timeText } from "./tracks.js";

const CURVE = 400; // snapshots of a curve
const RATE_US = 500_000; // interval of the rates
const LISTED = 40; // most events shown
const STAYS_US = 400_000; // a closed node of a live search stays listed so long
const MATE = 31_744;
const OUTCOMES = { exhausted: "all moves were searched", cutoff: "cutoff", aborted: "given up: a node above was cut off, or the search stopped" };

const CURVES = [
  { label: "Speed", unit: "nodes/s", format: short, colour: "--curve-1", name: "nodes" },
  { label: "Splits", unit: "/s", format: short, colour: "--curve-3", name: "splits" },
  { label: "Joins", unit: "/s", format: short, colour: "--curve-4", name: "joins" },
  { label: "Aborts", unit: "/s", format: short, colour: "--curve-2", name: "aborts" },
  { label: "Idle", unit: "", format: (share) => `${(100 * share).toFixed(1)}%`, colour: "--muted", name: "idle" },
];

const percent = (share) => `${Math.round(100 * share)}%`;

// Format centipawns of the side to move; null is an infinite bound or no score.
function scoreText(value, none = "–") {
  if ((value ?? null) === null) return none;
  if (Math.abs(value) >= MATE) return value > 0 ? "+mate" : "−mate";
  return `${value < 0 ? "−" : "+"}${(Math.abs(value) / 100).toFixed(2)}`;
}

const lineOf = (words) => (words ? words.join(" ") || "root" : null);

function causeOf(event) {
  const by = event.outcome === "exhausted" ? "" : event.by ? ` by ${event.by}` : "";
  const cause = event.outcome === "cutoff" ? `cutoff${by}` : OUTCOMES[event.outcome] ?? event.outcome;
  const helpers = event.helpers === undefined ? null : `${event.helpers} ${event.helpers === 1 ? "helper" : "helpers"}`;
  return [cause, helpers].filter(Boolean).join("; ") + (event.lost ? `, ${grouped(event.lost)} nodes lost` : "");
}

function sayEvent(event) {
  if (event.kind === "join") return `worker ${event.worker} joins ${event.words ?? `node ${event.id}`}`;
  if (event.kind === "closed") return `${event.type} node ${lineOf(event.words) ?? event.id}: ${causeOf(event)}`;
  const who = event.main === false ? `worker ${event.worker}, ` : "";
  const found = event.bound === "stopped" ? "stopped" : `${event.by ?? ""} ${{ lower: "at least ", upper: "at most " }[event.bound] ?? ""}${scoreText(event.value)}`;
  return `${who}depth ${event.depth}: ${found}`;
}

export class Stage {
  constructor(root, channel, { pick }) {
    this.channel = channel;
    this.pick = pick;
    this.chosen = null; // id of the node whose line is on the board
    this.drawn = null; // the snapshot whose tree is shown
    this.head = el("h2", { class: "stage-head", hidden: true });
    this.tracksRoot = el("div", { class: "tracks-root", tabindex: 0, role: "group",
      "aria-label": "Tracks of the workers. Space pauses, left and right step, plus and minus change the time shown." });
    this.tracks = new TrackView(this.tracksRoot, { label: "Workers", pick: (time, id) => this.pick(time, id) });
    this.load = el("canvas", { class: "load", role: "img", hidden: true });
    this.best = el("p", { class: "best-line" });
    this.treeHead = el("h2", {}, "Open split nodes");
    this.treeNote = el("p", { class: "note" }, "Split nodes are shown here while workers share a search.");
    this.tree = el("ul", { class: "split-tree", role: "tree", "aria-label": "Open split nodes" });
    this.closed = el("ul", { class: "closed-nodes", "aria-label": "Nodes that have just closed" });
    this.events = el("ol", { class: "events", "aria-label": "What happened, the latest first" });
    for (const list of [this.tree, this.events]) list.addEventListener("keydown", (event) => this.listKey(event));
    const curves = el("div", { class: "curves" });
    this.curves = CURVES.map((about) => [about, new Curve(curves, about)]);
    this.element = el("section", { class: "stage" }, this.head, this.tracksRoot, this.load, this.best,
      el("div", { class: "stage-parts" },
        el("div", {}, this.treeHead, this.treeNote, this.tree, this.closed),
        el("div", {}, el("h2", {}, "What happened"), this.events, el("h2", {}, "Rates"), curves)));
    root.append(this.element);
  }

  // Show a heading above the tracks, such as the figures of a recorded search.
  title(text) {
    this.head.hidden = !text;
    this.head.textContent = text;
  }

  show(all, { end, span, isLive, policy }) {
    const place = all.findLastIndex((sample) => sample.now <= end);
    const samples = all.slice(0, Math.max(place, 0) + 1);
    const last = samples.at(-1);
    if (!last) return;
    const begin = Math.max(0, end - span);
    const pieces = all.filter((sample) => sample.now >= begin - 1_000_000 && sample.begin <= end)
      .map((sample) => ({ tracks: sample.tracks, begin: sample.begin, end: sample.now }));
    const events = this.eventsOf(all, begin, end);
    const marks = events.filter((event) => event.kind === "depth" && event.main !== false)
      .map((event) => ({ at: event.at, text: String(event.depth) }));
    this.tracks.show(pieces, { begin, end: Math.max(end, begin + 1), rows: last.tracks.length, first: last.first ?? 0, marks });
    this.drawLoad(last);
    if (last.counters) this.drawCurves(samples.filter(({ counters }) => counters));
    const line = last.line;
    this.best.textContent = line ? `depth ${line.depth}, ${scoreText(line.score)}, ${line.words.join(" ")}` : "";
    const step = Math.max(1, span / 1000);
    this.drawEvents(events, step);
    const withNodes = samples.findLast((sample) => sample.nodes) ?? last;
    this.treeHead.textContent = `Open split nodes at ${timeText(withNodes.now, step)}`;
    if (withNodes !== this.drawn) {
      this.drawn = withNodes;
      this.drawTree(withNodes, policy);
      const since = isLive ? withNodes.now - STAYS_US : withNodes.begin;
      this.drawClosed(events.filter((event) => event.kind === "closed" && event.words && event.at > since && event.at <= withNodes.now));
    }
    return { last, withNodes, shares: sharesOf(pieces, null, begin, end) };
  }

  describe() { this.tracks.describe(); }

  // Return what happened in a stretch of time; joins are taken from the tracks.
  eventsOf(all, begin, end) {
    const found = [];
    for (const sample of all) {
      if (sample.now < begin || sample.begin > end) continue;
      const names = new Map((sample.nodes ?? []).map((node) => [node.id, `${node.type} node ${lineOf(this.lineTo(sample, node).words)}`]));
      sample.tracks.forEach((track, row) => track.forEach(([kind, , at], place) => {
        const id = kind === JOIN && track[place + 1]?.[3];
        if (names.has(id)) found.push({ kind: "join", at, worker: (sample.first ?? 0) + row, id, words: names.get(id) });
      }));
      found.push(...(sample.events ?? []));
    }
    return found.filter(({ at }) => at >= begin && at <= end).sort((one, other) => one.at - other.at);
  }

  drawEvents(events, step) {
    const shown = events.slice(-LISTED).reverse();
    const key = shown.map(({ at, kind, worker }) => `${at}${kind}${worker}`).join();
    if (key === this.eventsKey || this.events.matches(":hover, :focus-within")) return; // do not move what is being read
    this.eventsKey = key;
    this.events.replaceChildren(...shown.map((event, place) => el("li", { class: `event-${event.kind}` },
      el("button", { type: "button", tabindex: place ? -1 : 0, onclick: () => this.pick(event.at, event.id ?? null) }, timeText(event.at, step)), ` ${sayEvent(event)}`)));
  }

  drawClosed(events) {
    this.closed.replaceChildren(...events.slice(-6).map((event) => el("li", {},
      el("span", { class: `node-type type-${event.type.toLowerCase()}` }, event.type),
      ` ${lineOf(event.words) ?? event.id}, depth ${event.depth}: ${causeOf(event)}`)));
  }

  drawLoad(last) {
    this.load.hidden = !last.load || last.workers <= last.tracks.length;
    if (this.load.hidden) return;
    const columns = Math.min(last.workers, 128), rows = Math.ceil(last.workers / columns);
    const width = this.load.parentElement.clientWidth, cell = Math.max(2, Math.floor(width / columns));
    this.load.width = cell * columns;
    this.load.height = cell * rows;
    const paint = this.load.getContext("2d");
    paint.fillStyle = colour("--searching");
    let sum = 0;
    for (let number = 0; number < last.load.length; number++) {
      const share = parseInt(last.load[number], 16) / 15;
      sum += share;
      paint.globalAlpha = 0.06 + 0.94 * share;
      paint.fillRect((number % columns) * cell, Math.floor(number / columns) * cell, cell - 1, cell - 1);
    }
    this.load.setAttribute("aria-label", `All ${last.workers} workers: busy ${percent(sum / last.workers)} of the time`);
  }

  drawCurves(samples) {
    const shown = samples.slice(-CURVE);
    const rate = Math.min(RATE_US, Math.max(1, (shown.at(-1).now - shown[0].now) / 20)); // virtual searches last milliseconds
    const from = samples.length - shown.length;
    let before = 0;
    const bases = shown.map((sample, place) => {
      while (before < from + place && samples[before + 1].now <= sample.now - rate) before++;
      return samples[before];
    });
    for (const [about, curve] of this.curves) {
      curve.show(shown.map((sample, place) => {
        const base = bases[place], us = sample.now - base.now;
        if (us <= 0) return null;
        return about.name === "idle" ? idleShare(base, sample) : (1e6 * (sample.counters[about.name] - base.counters[about.name])) / us;
      }));
    }
  }

  // Return the moves from the root to a node of a snapshot.
  lineTo(sample, node) {
    const above = sample.nodes.find(({ id }) => id === node.parent);
    const start = above ? this.lineTo(sample, above) : { moves: [], words: [] };
    return { moves: [...start.moves, ...node.moves], words: [...start.words, ...node.words] };
  }

  drawTree(sample, policy) {
    const focused = document.activeElement?.closest?.(".split-node")?.dataset.id ?? null;
    const nodes = sample.nodes ?? [];
    const ids = new Set(nodes.map(({ id }) => id));
    const children = Map.groupBy(nodes, (node) => (ids.has(node.parent) ? node.parent : null));
    const rows = [];
    const visit = (id, level) => {
      for (const node of children.get(id) ?? []) {
        rows.push(this.row(node, level, this.lineTo(sample, node)));
        visit(node.id, level + 1);
      }
    };
    visit(null, 1);
    const hadFocus = focused !== null && this.tree.contains(document.activeElement);
    this.tree.replaceChildren(...rows);
    const kept = rows.find((row) => row.dataset.id === focused) ?? null;
    (kept ?? rows[0])?.setAttribute("tabindex", "0");
    if (hadFocus) (kept ?? rows[0] ?? this.tracksRoot).focus({ preventScroll: true });
    const hidden = sample.hidden ? `, and ${sample.hidden} more that are not shown` : "";
    this.treeNote.textContent = rows.length ? `${rows.length}${hidden}.${sample.fen ? " Choose one to see it on the board." : ""}`
      : this.unshared(sample, policy);
  }

  // Say what there is to see where no node is shared: which root moves are searched, and how often at the same time.
  unshared(sample, policy) {
    const places = Map.groupBy(sample.first_moves ?? [], ([, , words]) => words);
    const who = [...places].map(([words, workers]) => `${workers.map(([worker]) => worker).join(", ")} at ${words}`).join("; ");
    const twice = [...places.values()].reduce((sum, workers) => sum + workers.length - 1, 0);
    const why = { lazy: "With lazy no node is shared: each worker searches the whole tree, and they meet in the transposition table.",
      abdada: "With abdada no node is shared: each worker searches the whole tree, but puts off moves that another one is searching.",
      serial: "With serial one worker searches, and the others wait." }[policy];
    const twiceText = why && policy !== "serial" && sample.first_moves?.length ? ` ${twice} of ${sample.first_moves.length} search a root move that another one is searching.` : "";
    return `${why ?? (sample.done ? "None: the search is over." : "None at the moment.")}${who ? ` At the root: ${who}.` : ""}${twiceText}`;
  }

  row(node, level, line) {
    const places = node.under_way ?? [];
    const workers = places.flatMap((place) => place.workers);
    const moves = lineOf(node.words);
    const counts = node.done === undefined ? null : [["done", node.done], ["under-way", node.inside], ["to-come", node.to_come]];
    const window = "alpha" in node ? `${scoreText(node.alpha, "−∞")} … ${scoreText(node.beta, "+∞")}` : "";
    const best = (node.best ?? null) === null ? "" : `best ${node.best_move ?? ""} ${scoreText(node.best)}`;
    const chances = "p_needed" in node ? `needed ${percent(node.p_needed)}, next move ${percent(node.p_next ?? node.p_needed)}, no cutoff ${percent(node.p_no_cutoff)}` : "";
    const joined = "joined" in node ? `${node.joined} joined, ${node.below} below` : "";
    const name = `${node.type} node, ${moves}, depth ${node.depth}, window ${window}, ${best || "no value yet"}, P needed ${percent(node.p_needed ?? 1)}, `
      + `${chances}, ${joined}, workers ${workers.join(", ") || "none"}${counts ? `, ${node.done} moves done, ${node.inside} in progress, ${node.to_come} remaining` : ""}`;
    const bar = el("span", { class: "moves-bar", "aria-hidden": "true" });
    const whole = Math.max(1, (counts ?? []).reduce((sum, [, count]) => sum + count, 0));
    for (const [kind, count] of counts ?? []) {
      const part = el("span", { class: kind });
      part.style.width = `${(100 * count) / whole}%`;
      bar.append(part);
    }
    const row = el("li", { class: `split-node${node.closed ? " closed" : ""}`, role: "treeitem", tabindex: -1, "aria-level": level,
      "aria-label": name, "aria-selected": "false", "data-id": node.id },
    el("span", { class: `node-type type-${node.type.toLowerCase()}` }, node.type),
    el("span", { class: "node-moves" }, moves),
    el("span", { class: "node-window" }, window, best ? ` · ${best}` : ""),
    counts ? el("span", { class: "node-count" }, bar, `${node.done} · ${node.inside} · ${node.to_come}`) : null,
    el("span", { class: "node-facts" }, [`depth ${node.depth}`, chances, joined].filter(Boolean).join(" · "),
      places.map((place) => [" · ", place.workers.map((worker) => el("span", { class: `worker-chip worker-${worker % WORKER_COLOURS}` }, String(worker))), ` ${place.san}`]).flat(2)));
    row.style.setProperty("--level", level - 1);
    row.addEventListener("click", () => this.showLine(row, node, line, true));
    if (node.id === this.chosen) this.mark(row);
    return row;
  }

  mark(row) {
    for (const other of [...this.tree.children, ...(row ? [row] : [])]) {
      other.classList.toggle("chosen", other === row);
      other.setAttribute("aria-selected", String(other === row));
    }
  }

  // Choose a node by its id, from elsewhere than its row; null chooses none.
  choose(id) {
    if (this.chosen !== null && id === null) this.channel.announce("board.hide", {});
    this.chosen = id;
    this.mark(null);
    this.tracks.lightUp(id);
    const node = this.drawn?.nodes?.find((one) => one.id === id);
    const row = [...this.tree.children].find((one) => one.dataset.id === id);
    if (node && row) this.showLine(row, node, this.lineTo(this.drawn, node));
  }

  showLine(row, node, line, takesFocus = false) {
    this.chosen = node.id;
    this.tracks.lightUp(node.id);
    this.mark(row);
    if (takesFocus) this.focusRow(row);
    else row.scrollIntoView({ block: "nearest" });
    if (!node.fen) return; // a user's game has no FEN
    const last = line.moves.filter((move) => move !== "0000").slice(-3);
    const arrows = (node.under_way ?? []).filter(({ move }) => move !== "0000")
      .map(({ move, workers }) => ({ move, brush: `worker${workers[0] % WORKER_COLOURS}` }));
    this.channel.announce("board.show", { fen: node.fen, last, arrows, title: `${node.type} node: ${line.words.join(" ") || "the root"}` });
  }

  // Keys go through a list, of which one row is a tab stop.
  listKey(event) {
    const rows = [...event.currentTarget.children];
    const place = rows.indexOf(event.target.closest("li"));
    if (place < 0) return;
    const next = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") event.target.click();
    else if (next !== undefined) this.focusRow(rows[Math.max(0, Math.min(rows.length - 1, next))]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  focusRow(row) {
    const stop = (one) => one.querySelector("button") ?? one;
    for (const other of row.parentElement.children) stop(other).tabIndex = other === row ? 0 : -1;
    stop(row).focus();
  }
}

/** Return the share of idle time between two snapshots by the workers' clocks, or else by the tracks of the last one. */
function idleShare(base, sample) {
  const spent = sample.counters.search_cycles - base.counters.search_cycles;
  const idle = sample.counters.idle_cycles - base.counters.idle_cycles;
  return spent > 0 ? Math.max(0, Math.min(1, idle / spent)) : sharesOf([sample], null, sample.begin, sample.now)[IDLE];
}

export const saidShares = (shares) =>
  `Searching ${percent(shares[SEARCH])}, idle ${percent(shares[IDLE])}, thrown away ${percent(shares[ABORTED])}.`;
