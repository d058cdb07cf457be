// The tab "Laboratory": compares two policies on the present position in virtual time.
//
// The server computes one experiment at a time, in a separate process.

import { reliability } from "./curves.js";
import { colour, download, el, grouped, onSubmit, paintOn } from "./dom.js";
import { TrackView, timeText, trackLegend } from "./tracks.js";

const FIELDS = { workers: "Virtual workers", first: "Policy", second: "against", nodes: "Nodes of one worker",
  pruning: "Pruning", driver: "Driver", rules: "With", positions: "Positions" };

// Format a number; a dash if there is none.
const known = (form) => (value) => (value ?? null) === null ? "–" : form(value);
const count = known(grouped);
const decimal = known((value) => value.toFixed(2));
const share = known((value) => `${(100 * value).toFixed(value < 0.1 ? 2 : 1)}%`);
const times = known((value) => `×${value.toFixed(2)}`);
const signed = (us) => `${us < 0 ? "−" : "+"}${timeText(Math.abs(us))}`;

function table(head, rows, caption) {
  const cells = (row, isHead) => row.map((cell, place) =>
    el(isHead || place === 0 ? "th" : "td", { scope: isHead ? "col" : place === 0 ? "row" : null }, cell));
  const made = el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, el("tr", {}, cells(head, true))),
    el("tbody", {}, rows.map((row) => el("tr", {}, cells(row)))));
  // it may be wider than the page; the focus lets the keyboard scroll it
  return el("div", { class: "wide", role: "region", tabindex: 0, "aria-label": caption }, made);
}

// Draw bars of the speedups with their intervals, side by side for each number of workers.
function plot(canvas, rows) {
  const width = 560, height = 260, left = 44, floor = 226, top = 30;
  const paint = paintOn(canvas, width, height);
  const [policies, counts] = ["policy", "threads"].map((key) => [...new Set(rows.map((row) => row[key]))]);
  const fills = [colour("--accent"), colour("--mistake")];
  const most = Math.max(1, ...rows.map((row) => row.high ?? row.speedup));
  const y = (value) => floor - ((floor - top) * value) / most;
  paint.fillStyle = colour("--surface");
  paint.fillRect(0, 0, width, height);
  paint.font = "13px sans-serif";
  paint.strokeStyle = paint.fillStyle = colour("--text");
  for (const value of [0, most / 2, most]) {
    paint.fillText(value.toFixed(1), 8, y(value) + 4);
    paint.fillRect(left, y(value), width - left - 8, 0.5);
  }
  const group = (width - left - 8) / counts.length, bar = (0.7 * group) / policies.length;
  counts.forEach((number, place) => paint.fillText(`${number} workers`, left + group * place + 4, floor + 20, group - 4));
  policies.forEach((policy, place) => {
    paint.fillStyle = fills[place];
    paint.fillText(`■ ${policy}`, left + 180 * place, 18, 170);
  });
  for (const row of rows) {
    const place = policies.indexOf(row.policy);
    const x = left + group * (counts.indexOf(row.threads) + 0.1) + bar * place;
    paint.fillStyle = fills[place];
    paint.fillRect(x, y(row.speedup), 0.9 * bar, floor - y(row.speedup));
    paint.fillStyle = colour("--text");
    if (row.low !== null) paint.fillRect(x + 0.45 * bar - 1, y(row.high), 2, y(row.low) - y(row.high));
  }
}

export class Laboratory {
  constructor(root, channel) {
    this.channel = channel;
    this.isBusy = false;
    this.build(root);
    channel.on("laboratory.progress", ({ text, share: done }) => this.progress(text, done));
    channel.on("laboratory.error", ({ text }) => this.tell(text, true));
    channel.on("laboratory.stopped", () => this.tell("Stopped."));
    channel.on("laboratory.choices", (choices) => this.offer(choices));
    channel.on("laboratory.result", (result) => this.showExperiment(result));
    channel.on("channel.closed", () => { if (this.isBusy) this.tell("The connection was lost.", true); });
    channel.send("laboratory.hello");
  }

  show() {}
  hide() {}

  build(root) {
    const fields = Object.entries(FIELDS);
    this.choices = Object.fromEntries(fields.map(([name]) => [name, el("select", { id: `laboratory-${name}`, disabled: true })]));
    this.runButton = el("button", { type: "submit", disabled: true }, "Compare");
    this.stopButton = el("button",
      { type: "button", disabled: true, onclick: () => this.channel.send("laboratory.stop") }, "Stop");
    this.form = el("form", { "aria-label": "Experiment" }, fields.map(([name, label]) => el("label", {}, label, this.choices[name])),
      el("div", { class: "watch-bar" }, this.runButton, this.stopButton));
    onSubmit(this.form, () => this.run());
    this.bar = el("progress", { max: 1, value: 0, hidden: true, "aria-label": "Progress" });
    this.status = el("p", { class: "note", role: "status" },
      "Searches the position on the board in virtual time, as if the machine had this many processors.");
    this.result = el("div", { class: "result", tabindex: -1 });
    root.append(el("section", { class: "laboratory" }, this.form, this.bar, this.status, this.result));
  }

  offer({ policies, most_workers: most, nodes, pruning, drivers, rules }) {
    const offered = {
      workers: [[1, 2, 4, 8, 16, 32, 64].filter((number) => number <= most), 8],
      first: [policies, "calibrated"],
      second: [policies, "ybw"],
      nodes: [nodes, nodes[1], grouped],
      pruning: [pruning, "modern"],
      driver: [drivers, "pvs"],
      rules: [rules, "", (file) => file || "nothing"],
      positions: [[1, 4, 8, 12, 24], 1, (number) => (number === 1 ? "the one on the board" : `${number} of the game`)],
    };
    for (const [name, [values, chosen, words = String]] of Object.entries(offered)) {
      this.choices[name].replaceChildren(...values.map((value) => el("option", { value, selected: value === chosen }, words(value))));
      this.choices[name].disabled = false;
    }
    this.choices.rules.parentElement.hidden = rules.length === 1;
    this.runButton.disabled = this.isBusy;
  }

  begin(text) {
    this.bar.value = 0;
    this.tell(text, false, true);
  }

  tell(text, isError = false, isBusy = false) {
    this.isBusy = this.runButton.disabled = isBusy;
    this.stopButton.disabled = this.bar.hidden = !isBusy;
    this.status.classList.toggle("error", isError);
    this.status.textContent = text;
  }

  progress(text, done) {
    if (!this.isBusy) this.begin(text); // the page was reloaded
    this.bar.value = done;
    this.status.textContent = `${text} …`;
  }

  run() {
    this.begin("Starting …");
    const chosen = Object.fromEntries(Object.entries(this.choices).map(([name, choice]) => [name, choice.value]));
    this.channel.send("laboratory.run", { ...chosen, workers: Number(chosen.workers), nodes: Number(chosen.nodes),
      positions: Number(chosen.positions) });
  }

  timeline(part, title, end) {
    const root = el("div", { class: "tracks-root" });
    const view = new TrackView(root, { label: title });
    const made = el("section", { "aria-label": title }, el("h2", {}, title), root);
    const piece = { tracks: part.tracks, begin: 0, end: part.end };
    requestAnimationFrame(() => {
      view.show([piece], { begin: 0, end: Math.max(end, 1), rows: part.tracks.length });
      view.describe();
    });
    return made;
  }

  // Replace the previous result.
  put(...parts) {
    this.tell("");
    this.result.replaceChildren(...parts);
    this.result.focus({ preventScroll: true });
  }

  // Speedups with intervals as a table, a picture and CSV, and the command that repeats the run.
  study({ rows, command }) {
    if (!rows.length) return [];
    const keys = Object.keys(rows[0]);
    const csv = () => [keys, ...rows.map((row) => keys.map((key) => row[key] ?? ""))].map((row) => `${row.join(",")}\r\n`).join("");
    const canvas = el("canvas", { class: "study", role: "img", "aria-label": "Speedup by policy and number of workers" });
    plot(canvas, rows);
    return [
      table(["policy", "workers", "positions", "speedup", "95% interval", "nodes", "idle", "thrown away"], rows.map((row) =>
        [row.policy, count(row.threads), count(row.positions), decimal(row.speedup),
          row.low === null ? "–" : `${decimal(row.low)} – ${decimal(row.high)}`, times(row.node_overhead),
          share(row.idle_share), share(row.aborted_share)]), "Speedups"),
      canvas,
      el("div", { class: "watch-bar" },
        el("button", { type: "button", onclick: () => download("speedups.csv", csv(), "text/csv") }, "Save CSV"),
        el("button", { type: "button", onclick: () => canvas.toBlob((blob) => download("speedups.png", blob, "image/png")) }, "Save PNG")),
      ...(command ? [el("p", { class: "note" }, "This command gives the same figures:"),
        el("pre", { class: "command", tabindex: 0 }, command)] : []),
    ];
  }

  showExperiment(result) {
    const { serial, runs } = result;
    if (!runs) {
      this.put(
        el("h2", {}, `${result.positions} positions, ${count(result.tree_nodes)} nodes by one worker (mean), pruning ${result.pruning}, driver ${result.driver}`),
        ...result.warnings.map((text) => el("p", { class: "note warnings" }, text)),
        ...this.study(result));
      return;
    }
    const [first, second] = runs;
    const isSame = first.policy === second.policy;
    const names = isSame ? [`${first.policy} (1)`, `${second.policy} (2)`] : [first.policy, second.policy];
    const all = [serial, ...runs];
    const end = Math.max(first.end, second.end);
    const title = (part, number) => `${names[number]}, ${result.workers} workers: ${timeText(1e6 * part.seconds)}`
      + (part.stopped ? ", stopped: too many nodes" : part.speedup ? `, speedup ${part.speedup.toFixed(2)}` : "");
    const head = ["figure", "one worker", ...names];
    this.put(
      el("h2", {}, `Depth ${result.depth}, ${count(serial.nodes)} nodes by one worker, pruning ${result.pruning}, driver ${result.driver}`),
      ...result.warnings.map((text) => el("p", { class: "note warnings" }, text)),
      table(head, [
        ["time (virtual)", ...all.map((one) => timeText(1e6 * one.seconds))],
        ["speedup", "1", ...runs.map((one) => decimal(one.speedup))],
        ["nodes", ...all.map((one) => count(one.nodes))],
        ["nodes, relative", "1", ...runs.map((one) => times(one.overhead))],
        ["idle", ...all.map((one) => share(one.idle))],
        ["thrown away", ...all.map((one) => share(one.aborted))],
        ["split nodes", ...all.map((one) => count(one.splits))],
        ["joins", ...all.map((one) => count(one.joins))],
        ["best move", ...all.map((one) => one.san ?? "–")],
        ["score, centipawns", ...all.map((one) => count(one.score))],
      ], "Figures of the searches"),
      el("div", { class: "timelines" }, ...runs.map((one, number) => this.timeline(one, title(one, number), end))),
      trackLegend(),
      el("h2", {}, "Differences"),
      el("p", { class: "note" }, `Time of each iteration, and how far ${names[1]} is behind ${names[0]} in total.`),
      table(["depth", ...names, "behind"], result.iterations.map((one) =>
        [String(one.depth), timeText(one.first), timeText(one.second), signed(one.apart)]), "Time of each iteration"),
      el("h2", {}, "Shared nodes by expected type"),
      el("div", { class: "two tables" }, ...runs.map((one, number) => this.types(one, names[number]))),
      el("h2", {}, "Were the predictions right?"),
      el("div", { class: "two" },
        reliability({ title: "P(no cutoff) as a node is entered", series: all.map((one, number) => ({ label: head[number + 1], bins: one.no_cutoff })) }),
        reliability({ title: "P(needed) of moves taken at shared nodes", series: runs.map((one, number) => ({ label: names[number], bins: one.needed })) })),
      el("h2", {}, "Techniques of selective search"),
      this.techniques(all, head.slice(1)),
      el("h2", {}, "To keep and to repeat"),
      ...this.study(result),
    );
  }

  types(part, name) {
    return table([name, "nodes", "helpers", "P needed", "all moves", "cutoff", "aborted"], part.types.map((one) =>
      [one.type, count(one.splits), count(one.helpers), decimal(one.p_needed),
        count(one.exhausted), count(one.cutoff), count(one.aborted)]), `Shared nodes, ${name}`);
  }

  techniques(all, names) {
    const rows = all[0].techniques.map((one, place) => {
      const found = all.map((search) => search.techniques[place]);
      if (!found.some(({ tried }) => tried)) return null;
      return [el("span", { title: one.counted }, one.name.replaceAll("_", " ")),
        ...found.flatMap(({ pruned, share: part }) => [count(pruned), share(part)])];
    }).filter((row) => row !== null);
    return table(["technique", ...names.flatMap((name) => [name, "of tried"])], rows, "Times each technique pruned, reduced or extended");
  }
}
