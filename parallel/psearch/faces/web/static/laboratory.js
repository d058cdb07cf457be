// The tab "Laboratory": compares two policies on the present position in virtual time.
//
// The server computes one experiment at a time, in a separate process.

import { reliability } from "./curves.js";
import { el, grouped, onSubmit } from "./dom.js";
import { TrackView, timeText, trackLegend } from "./tracks.js";

const FIELDS = { workers: "Virtual workers", first: "Policy", second: "against", nodes: "Nodes of one worker",
  pruning: "Pruning", driver: "Driver", rules: "With" };
const WORKERS = [1, 2, 4, 8, 16, 32, 64];

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
    this.stopButton = el("button", { type: "button", disabled: true, onclick: () => this.stop() }, "Stop");
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
      workers: [WORKERS.filter((number) => number <= most), 8],
      first: [policies, "calibrated"],
      second: [policies, "ybw"],
      nodes: [nodes, nodes[1], grouped],
      pruning: [pruning, "modern"],
      driver: [drivers, "pvs"],
      rules: [rules, "", (file) => file || "nothing"],
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
    this.channel.send("laboratory.run", { ...chosen, workers: Number(chosen.workers), nodes: Number(chosen.nodes) });
  }

  stop() { this.channel.send("laboratory.stop"); }

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

  showExperiment(result) {
    const { serial, runs } = result;
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
        ["nodes relative to one worker", "1", ...runs.map((one) => times(one.overhead))],
        ["idle", ...all.map((one) => share(one.idle))],
        ["thrown away", ...all.map((one) => share(one.aborted))],
        ["split nodes", ...all.map((one) => count(one.splits))],
        ["joins", ...all.map((one) => count(one.joins))],
        ["best move", ...all.map((one) => one.san ?? "–")],
        ["score, centipawns", ...all.map((one) => count(one.score))],
      ], "Figures of the searches"),
      el("div", { class: "timelines pair" }, ...runs.map((one, number) => this.timeline(one, title(one, number), end))),
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
