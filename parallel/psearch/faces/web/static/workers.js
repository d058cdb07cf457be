// The tab "Workers": tracks of the workers, the tree of open split nodes, and curves, while the engine searches.
//
// The server sends a snapshot twenty times a second (`workers.look`), every fourth one with the open nodes. The page
// confirms each (`workers.seen`) after processing it, so that a slow page gets fewer. It keeps the last minute, so that
// one can pause and step back.

import { Curve } from "./curves.js";
import { colour, el, onSubmit, short } from "./dom.js";
import { ABORTED, IDLE, SEARCH, TrackView, sharesOf, timeText, trackLegend } from "./tracks.js";

const KEPT = 1200; // most snapshots: one minute
const CURVE = 400; // snapshots of a curve
const RATE_US = 500_000; // interval of the rates
const SAY_MS = 5000; // interval of texts for screen readers
const SPANS = [[200_000, "0.2 s"], [1_000_000, "1 s"], [5_000_000, "5 s"], [20_000_000, "20 s"]];

const CURVES = [
  { label: "Speed", unit: "nodes/s", format: short, colour: "--curve-1", name: "nodes" },
  { label: "Splits", unit: "/s", format: short, colour: "--curve-3", name: "splits" },
  { label: "Joins", unit: "/s", format: short, colour: "--curve-4", name: "joins" },
  { label: "Aborts", unit: "/s", format: short, colour: "--curve-2", name: "aborts" },
  { label: "Idle", unit: "", format: (share) => `${(100 * share).toFixed(1)}%`, colour: "--muted", name: "idle" },
];

export class WorkersTab {
  constructor(root, channel) {
    this.channel = channel;
    this.history = [];
    this.frozen = null; // history at the time of the pause
    this.at = 0; // place in `frozen`
    this.span = SPANS[2][0];
    this.isShown = false;
    this.drawn = null; // the snapshot whose tree is shown
    this.saidAt = -Infinity;
    this.chosen = null; // id of the node whose line is on the board
    this.build(root);
    channel.on("workers.look", (snapshot) => this.take(snapshot));
    channel.on("game.state", (state) => this.showGame(state));
    channel.on("workers.error", ({ text }) => { this.status.textContent = text; });
    channel.on("channel.open", () => { if (this.isShown) this.ask(); });
  }

  show() {
    this.isShown = true;
    this.ask();
    this.draw();
  }

  hide() {
    this.isShown = false;
    this.channel.send("workers.rest", {});
  }

  ask() {
    this.channel.send("workers.watch", { first: Math.max(0, Math.floor(Number(this.firstChoice.value)) || 0) });
    this.channel.send("game.hello", {});
  }

  build(root) {
    this.pauseButton = el("button", { type: "button", onclick: () => this.pause() }, "Pause");
    this.backButton = el("button", { type: "button", "aria-label": "One step back", title: "One step back (←)", onclick: () => this.step(-1) }, "◀");
    this.onButton = el("button", { type: "button", "aria-label": "One step forward", title: "One step forward (→)", disabled: true, onclick: () => this.step(1) }, "▶");
    this.spanChoice = el("select", { "aria-label": "Time shown", onchange: () => { this.span = Number(this.spanChoice.value); this.draw(); } });
    for (const [us, text] of SPANS) this.spanChoice.append(el("option", { value: us, selected: us === this.span }, text));
    this.firstChoice = el("input", { type: "number", min: 0, value: 0, "aria-label": "First worker shown", onchange: () => this.ask() });
    this.firstLabel = el("label", { class: "first", hidden: true }, "from worker ", this.firstChoice);
    this.status = el("span", { class: "status" }, "No search is running.");
    this.says = el("p", { class: "unseen", role: "status" });
    const bar = el("div", { class: "watch-bar", role: "toolbar", "aria-label": "Time" },
      this.pauseButton, this.backButton, this.onButton, this.spanChoice, this.firstLabel, this.status);

    this.tracksRoot = el("div", { class: "tracks-root", tabindex: 0, role: "group",
      "aria-label": "Tracks of the workers. Space pauses, left and right step, plus and minus change the time shown." });
    this.tracks = new TrackView(this.tracksRoot, { label: "Workers" });
    this.tracksRoot.addEventListener("keydown", (event) => this.key(event));
    this.load = el("canvas", { class: "load", role: "img", hidden: true });

    const curves = el("div", { class: "curves" });
    this.curves = CURVES.map((about) => [about, new Curve(curves, about)]);

    this.head = el("p", { class: "split-node head", hidden: true, "aria-hidden": "true" });
    for (const word of ["type", "moves", "depth", "needed", "no cutoff", "done · in progress · remaining", "workers at"]) {
      this.head.append(el("span", {}, word));
    }
    this.tree = el("ul", { class: "split-tree", role: "tree", "aria-label": "Open split nodes" });
    this.tree.addEventListener("keydown", (event) => this.treeKey(event));
    this.treeNote = el("p", { class: "note" }, "Split nodes are shown here while workers share a search.");
    root.append(el("section", { class: "workers" }, this.gameForm(), bar, this.says, this.tracksRoot, trackLegend(), this.load,
      el("h2", {}, "Rates"), curves, el("h2", {}, "Open split nodes"), this.treeNote, this.head, this.tree));
  }

  /** The form for a user's game, if the server was started with one: takes positions, shows results. */
  gameForm() {
    this.game = el("form", { class: "own-game", hidden: true });
    this.gameName = el("span");
    this.gamePosition = el("input", { type: "text", maxlength: 1000, autocomplete: "off", spellcheck: "false" });
    this.gameButton = el("button", { type: "submit" }, "Search");
    this.gameText = el("pre", { hidden: true });
    this.game.append(el("label", {}, this.gameName, this.gamePosition), this.gameButton, this.gameText);
    onSubmit(this.game, () => {
      this.channel.send(...(this.gameIsRunning ? ["game.stop"] : ["game.search", { position: this.gamePosition.value }]));
    });
    return this.game;
  }

  showGame({ game, position, running, board, text }) {
    if (this.game.hidden || running) this.gamePosition.value = position;
    this.game.hidden = false;
    this.gameName.textContent = `${game}, position`;
    this.gamePosition.readOnly = this.gameIsRunning = running;
    this.gameButton.textContent = running ? "Stop" : "Search";
    this.gameText.textContent = [board, text].filter((part) => part).join("\n\n");
    this.gameText.hidden = !this.gameText.textContent;
  }

  take(snapshot) {
    this.channel.send("workers.seen", {});
    const last = this.history.at(-1);
    const isAnother = last && (last.search !== snapshot.search || last.workers !== snapshot.workers
      || last.first !== snapshot.first || snapshot.now < last.now);
    if (isAnother) this.history = [];
    this.history.push(snapshot);
    if (this.history.length > KEPT) this.history.shift();
    if (!this.frozen && this.isShown) this.later();
  }

  later() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = undefined;
      this.draw();
    });
  }

  get samples() { return this.frozen ? this.frozen.slice(0, this.at + 1) : this.history; }

  pause() {
    if (this.frozen) this.frozen = null;
    else if (this.history.length) {
      this.frozen = this.history.slice();
      this.at = this.frozen.length - 1;
    }
    this.pauseButton.textContent = this.frozen ? "Resume" : "Pause";
    this.draw(true);
  }

  step(by) {
    if (!this.frozen) this.pause();
    if (!this.frozen) return;
    this.at = Math.max(0, Math.min(this.frozen.length - 1, this.at + by));
    this.draw(true);
  }

  key(event) {
    if (event.key === " ") this.pause();
    else if (event.key === "ArrowLeft") this.step(event.shiftKey ? -20 : -1);
    else if (event.key === "ArrowRight") this.step(event.shiftKey ? 20 : 1);
    else if (event.key === "+" || event.key === "-") {
      const place = SPANS.findIndex(([us]) => us === this.span) + (event.key === "+" ? -1 : 1);
      const [us] = SPANS[Math.max(0, Math.min(SPANS.length - 1, place))];
      this.span = us;
      this.spanChoice.value = String(us);
      this.draw(true);
    } else return;
    event.preventDefault();
    event.stopPropagation(); // elsewhere the arrow keys step through the game
  }

  draw(isAsked = false) {
    const samples = this.samples;
    const last = samples.at(-1);
    this.backButton.disabled = !samples.length || (this.frozen !== null && this.at === 0);
    this.onButton.disabled = !this.frozen || this.at === this.frozen.length - 1;
    if (!last) return;
    const end = last.now, begin = Math.max(0, end - this.span);
    const pieces = samples.filter((sample) => sample.now >= begin - 1_000_000)
      .map((sample) => ({ tracks: sample.tracks, begin: sample.begin, end: sample.now }));
    this.tracks.show(pieces, { begin, end: Math.max(end, begin + 1), rows: last.tracks.length, first: last.first });
    this.firstLabel.hidden = last.workers <= last.tracks.length;
    this.firstChoice.max = last.workers - 1;
    this.drawLoad(last);
    this.drawCurves(samples);
    const now = performance.now();
    // only every fourth snapshot has the nodes
    const withNodes = samples.findLast((sample) => sample.nodes !== null);
    if (withNodes && withNodes !== this.drawn) {
      this.drawn = withNodes;
      this.drawTree(withNodes);
    }
    const behind = this.frozen ? this.frozen.at(-1).now - end : 0;
    const back = behind ? `, ${timeText(behind)} back` : "";
    this.status.textContent = `${this.frozen ? "paused" : last.done ? "finished" : "searching"}, ${timeText(end)}${back}, `
      + `${last.workers} ${last.workers === 1 ? "worker" : "workers"}, depth ${last.depth}`;
    if (isAsked || now - this.saidAt >= SAY_MS) {
      this.saidAt = now;
      this.tracks.describe();
      const shares = sharesOf(pieces, null, begin, end);
      this.says.textContent = `${this.status.textContent}. Searching ${(100 * shares[SEARCH]).toFixed(0)}%, idle `
        + `${(100 * shares[IDLE]).toFixed(0)}%, thrown away ${(100 * shares[ABORTED]).toFixed(0)}%. `
        + `${withNodes ? withNodes.nodes.length + withNodes.hidden : 0} open split nodes.`;
    }
  }

  drawLoad(last) {
    this.load.hidden = last.workers <= last.tracks.length;
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
    this.load.setAttribute("aria-label", `All ${last.workers} workers: busy ${(100 * sum / last.workers).toFixed(0)}% of the time`);
  }

  drawCurves(samples) {
    const shown = samples.slice(-CURVE);
    const from = samples.length - shown.length;
    let before = 0;
    const bases = shown.map((sample, place) => {
      while (before < from + place && samples[before + 1].now <= sample.now - RATE_US) before++;
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

  drawTree(sample) {
    const focused = document.activeElement?.closest?.(".split-node")?.dataset.id ?? null;
    const byId = new Map(sample.nodes.map((node) => [node.id, node]));
    const children = new Map();
    for (const node of sample.nodes) {
      const above = byId.has(node.parent) ? node.parent : null;
      children.set(above, [...(children.get(above) ?? []), node]);
    }
    const rows = [];
    const visit = (above, level) => {
      for (const node of children.get(above.id) ?? []) {
        const line = { moves: [...above.moves, ...node.moves], words: [...above.words, ...node.words] };
        rows.push(this.row(node, level, line));
        visit({ id: node.id, ...line }, level + 1);
      }
    };
    visit({ id: null, moves: [], words: [] }, 1);
    this.tree.replaceChildren(...rows);
    this.head.hidden = !rows.length;
    const kept = rows.find((row) => row.dataset.id === focused) ?? null;
    (kept ?? rows[0])?.setAttribute("tabindex", "0");
    if (focused !== null) (kept ?? rows[0] ?? this.tracksRoot).focus({ preventScroll: true });
    const hidden = sample.hidden ? `, and ${sample.hidden} more that are not shown` : "";
    this.treeNote.textContent = rows.length ? `${rows.length}${hidden}. The percentages are the probabilities that the node is needed, and that no move causes a cutoff. `
      + (sample.fen ? "Choose one to see it on the board." : "")
      : sample.done ? "None: the search is over." : "None at the moment.";
  }

  row(node, level, line) {
    const percent = (share) => `${Math.round(100 * share)}%`;
    const workers = node.under_way.flatMap(({ workers }) => workers);
    const shown = node.under_way.map(({ san, workers }) => `${workers.join(", ")} at ${san}`).join("; ");
    const moves = node.words.length ? node.words.join(" ") : "root";
    const name = `${node.type} node, ${moves}, depth ${node.depth}, P needed ${percent(node.p_needed)}, P no cutoff `
      + `${percent(node.p_no_cutoff)}, workers ${workers.join(", ") || "none"}, ${node.done} moves done, ${node.inside} in progress, `
      + `${node.to_come} remaining`;
    const bar = el("span", { class: "moves-bar", "aria-hidden": "true" });
    const whole = Math.max(node.done + node.inside + node.to_come, 1);
    for (const [kind, count] of [["done", node.done], ["under-way", node.inside], ["to-come", node.to_come]]) {
      const part = el("span", { class: kind });
      part.style.width = `${(100 * count) / whole}%`;
      bar.append(part);
    }
    const row = el("li", { class: `split-node${node.id === this.chosen ? " chosen" : ""}${node.closed ? " closed" : ""}`, role: "treeitem",
      tabindex: -1, "aria-level": level, "aria-label": name, "aria-selected": String(node.id === this.chosen) },
    el("span", { class: `node-type type-${node.type.toLowerCase()}` }, node.type),
    el("span", { class: "node-moves", title: moves }, moves),
    ...[["depth", node.depth], ["needed", percent(node.p_needed)], ["no cutoff", percent(node.p_no_cutoff)]]
      .map(([title, text]) => el("span", { class: "node-figure", title }, String(text))),
    el("span", { class: "node-count" }, bar, `${node.done} · ${node.inside} · ${node.to_come}`),
    el("span", { class: "node-workers", title: shown }, shown));
    row.dataset.id = node.id;
    row.style.setProperty("--level", level - 1);
    row.addEventListener("click", () => this.showLine(row, node, line));
    return row;
  }

  showLine(row, node, line) {
    this.chosen = node.id;
    for (const other of this.tree.children) {
      other.classList.toggle("chosen", other === row);
      other.setAttribute("aria-selected", String(other === row));
    }
    this.focusRow(row);
    if (!node.fen) return; // a user's game has no FEN
    const last = line.moves.filter((move) => move !== "0000").slice(-3);
    this.channel.announce("board.show", { fen: node.fen, last, title: `${node.type} node: ${line.words.join(" ") || "the root"}` });
  }

  treeKey(event) {
    const rows = [...this.tree.children];
    const place = rows.indexOf(event.target.closest(".split-node"));
    if (place < 0) return;
    const next = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") rows[place].click();
    else if (next !== undefined) this.focusRow(rows[Math.max(0, Math.min(rows.length - 1, next))]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  focusRow(row) {
    for (const other of this.tree.children) other.tabIndex = other === row ? 0 : -1;
    row.focus();
  }
}

/** Return the share of idle time between two snapshots by the workers' clocks, or else their present states. */
function idleShare(base, sample) {
  const spent = sample.counters.search_cycles - base.counters.search_cycles;
  const idle = sample.counters.idle_cycles - base.counters.idle_cycles;
  return spent > 0 ? Math.max(0, Math.min(1, idle / spent)) : sample.idle;
}
