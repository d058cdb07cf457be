// The tab "Workers": the engine's search as it runs, searches in virtual time, and recordings; one moment at a time.
//
// The server sends a snapshot twenty times a second (`workers.look`), with the open nodes as long as that is cheap. The
// page confirms each (`workers.seen`) after processing it, so that a slow page gets fewer. It keeps the last minute, so
// that one can pause, step back and replay. A recording (docs/guides/recordings.md) is read, shown and written here.

import { allow, download, el, grouped, onSubmit, options, setField } from "./dom.js";
import { Stage, saidShares } from "./stage.js";
import { timeText, trackLegend } from "./tracks.js";

const KEPT = 1200; // most snapshots: one minute
const SAY_MS = 5000; // interval of texts for screen readers
const SPANS = [[200_000, "0.2 s"], [1_000_000, "1 s"], [5_000_000, "5 s"], [20_000_000, "20 s"]];
const SHORTEST_US = 20, LONGEST_US = 60_000_000;
const SPEEDS = [[1, "as it was"], [0.1, "1/10"], [0.01, "1/100"], [0.001, "1/1000"], [0.0001, "1/10000"]];
const PLAY_S = 20; // a recording is played in about this time
const VERSION = 1;
const LONGEST_FILE = 64 << 20;
const TOURS = [["all-node", "An ALL node, shared at once or after a wait"], ["cut-node", "A CUT node predicted wrongly"],
  ["idle", "32 workers, and where they idle"]];

const namedOptions = (pairs, chosen) =>
  pairs.map(([value, text]) => el("option", { value, selected: value === chosen }, text));

/** Return a snapshot of a file with what may be missing. */
function filledIn(look) {
  const nodes = look.nodes?.map((node) => ({ ...node, type: node.type ?? "", moves: node.moves ?? [], words: node.words ?? [],
    under_way: node.under_way?.map((place) => ({ ...place, san: place.san ?? "", workers: place.workers ?? [] })) }));
  const events = look.events?.map((event) => ({ ...event, type: event.type ?? "" }));
  const line = look.line && { ...look.line, words: look.line.words ?? [] };
  return { ...look, nodes, events, line };
}

/** Return recordings [{facts, looks}] from the text of a file. Throws an Error in one line for anything else. */
export function readRecordings(text) {
  const found = [];
  text.split("\n").forEach((line, number) => {
    if (!line.trim()) return;
    let value = null;
    try { value = JSON.parse(line); } catch { /* refused below */ }
    if (value?.psearch_recording === VERSION) found.push({ facts: value, looks: [] });
    else if (found.length && Array.isArray(value?.tracks) && 0 <= value.begin && value.begin <= value.now) {
      found.at(-1).looks.push(filledIn(value));
    }
    else throw new Error(`line ${number + 1} is not one of a recording of version ${VERSION}`);
  });
  if (!found.length || found.some(({ looks }) => !looks.length)) throw new Error("the recording is empty");
  return found;
}

const textOf = (recordings) => recordings.flatMap(({ facts, looks }) =>
  [{ psearch_recording: VERSION, ...facts }, ...looks].map((one) => `${JSON.stringify(one)}\n`)).join("");

/** Return the figures of a recorded search in words. */
function figures({ title, policy, workers, clock, speedup, overhead, idle, aborted, driver }, end) {
  const share = (value) => `${(100 * value).toFixed(1)}%`;
  return [title ?? policy ?? "a search", workers && `${workers} workers`, speedup && `speedup ${speedup.toFixed(2)}`,
    overhead && `nodes ×${overhead.toFixed(2)}`, idle !== undefined && `idle ${share(idle)}`, aborted !== undefined && `thrown away ${share(aborted)}`,
    `${timeText(end)}${clock === "virtual" ? " of virtual time" : ""}`, driver && `driver ${driver}`].filter(Boolean).join(" · ");
}

export class WorkersTab {
  constructor(root, channel) {
    this.channel = channel;
    this.live = []; // snapshots of the engine's search
    this.shown = null; // recordings, if not the engine's search
    this.frozen = null; // snapshots at the time of the pause
    this.at = 0; // moment shown while frozen, in µs
    this.span = SPANS[2][0];
    this.isShown = false;
    this.saidAt = -Infinity;
    this.settings = {};
    this.tour = null;
    this.build(root);
    for (const [type, act] of Object.entries({
      "workers.look": (snapshot) => this.take(snapshot),
      "game.state": (state) => this.showGame(state),
      "workers.error": ({ text }) => { this.status.textContent = text; },
      "channel.open": () => { if (this.isShown) this.ask(); },
      "page.facts": ({ settings }) => this.offer(settings),
      "virtual.choices": ({ policies }) => this.other.replaceChildren(...options(policies, "ybw")),
      "engine.state": ({ threads, hash, mostThreads }) => {
        this.hash = hash;
        this.threads.max = mostThreads;
        setField(this.threads, threads);
      },
      "analysis.state": (state) => this.takeState(state),
      "analysis.lines": ({ lines: [best], depth }) => { this.line.textContent = best ? `depth ${depth}, ${best.text}, ${best.san.slice(0, 8).join(" ")}` : ""; },
      "review.state": ({ running, done, total }) => {
        this.review.textContent = running ? `A game is being analysed, ${done} of ${total} positions: other workers search these, and are not shown here.` : "";
      },
      "virtual.progress": ({ text }) => this.tell(`In virtual time: ${text} …`),
      "virtual.error": ({ text }) => this.tell(text),
      "virtual.stopped": () => this.tell("Stopped."),
      "virtual.result": (result) => this.showVirtual(result),
    })) channel.on(type, act);
  }

  show() {
    this.isShown = true;
    this.ask();
    this.draw();
  }

  hide() {
    this.isShown = false;
    this.stopPlaying();
    this.channel.send("workers.rest", {});
  }

  ask() {
    this.channel.send("workers.watch", { first: Math.max(0, Math.floor(Number(this.firstChoice.value)) || 0) });
    for (const type of ["game.hello", "page.facts", "page.states", "virtual.hello"]) this.channel.send(type, {});
  }

  build(root) {
    const button = (text, act, attributes = {}) => el("button", { type: "button", onclick: act, ...attributes }, text);
    const select = (label, pairs, chosen, act = null) =>
      el("select", { "aria-label": label, onchange: act ?? (() => {}) }, namedOptions(pairs, chosen));
    const field = (text, input) => el("label", {}, text, input);
    // the engine's search
    this.runButton = button("Analyse", () => this.channel.send(this.settings.on ? "analysis.stop" : "analysis.start"), { class: "main" });
    this.policy = select("Policy", [], null, () => this.configure({ policy: this.policy.value }));
    this.driver = select("Driver", [], null, () => this.configure({ driver: this.driver.value }));
    this.threads = el("input", { type: "number", min: 1, value: 1, "aria-label": "Threads",
      onchange: () => this.channel.send("engine.configure", { threads: Number(this.threads.value), hash: this.hash }) });
    this.line = el("span", { class: "engine-line" });
    this.review = el("p", { class: "note" });
    const engine = el("div", { class: "watch-bar" }, this.runButton, field("policy ", this.policy), field("driver ", this.driver),
      field("threads ", this.threads), this.line);
    // searches in virtual time, and recordings
    this.many = select("Virtual workers", [[8, "8 workers"], [32, "32 workers"], [64, "64 workers"]], 8);
    this.nodes = select("Nodes", [[20_000, "20,000 nodes"], [100_000, "100,000 nodes"], [400_000, "400,000 nodes"]], 100_000);
    this.other = select("Compare with", [["ybw", "ybw"]], "ybw");
    this.file = el("input", { type: "file", accept: ".jsonl,.gz", class: "unseen", tabindex: -1, "aria-label": "Recording", onchange: () => this.open(this.file.files[0]) });
    this.tours = select("Guided tours", [["", "guided tours …"], ...TOURS], "", () => this.openTour(this.tours.value));
    this.backToLive = button("Back to the engine", () => this.showRecordings(null), { hidden: true });
    const virtual = el("div", { class: "watch-bar" }, this.many, this.nodes, button("Search in virtual time", () => this.searchVirtually([this.ownPolicy])),
      button("Compare with", () => this.searchVirtually([this.ownPolicy, this.other.value])), this.other,
      button("Save", () => this.save(), { title: "Save what was seen as a recording" }), button("Open", () => this.file.click(), { title: "Open a recording" }),
      this.file, this.tours, this.backToLive);
    this.told = el("p", { class: "note", role: "status" });
    this.tourText = el("p");
    this.tourBox = el("section", { class: "tour", hidden: true, "aria-label": "Guided tour" }, this.tourText,
      button("Previous step", () => this.tourStep(-1)), " ", button("Next step", () => this.tourStep(1)));
    // time
    this.pauseButton = button("Pause", () => this.pause());
    this.backButton = button("◀", () => this.step(-1), { "aria-label": "One step back", title: "One step back (←)" });
    this.onButton = button("▶", () => this.step(1), { "aria-label": "One step forward", title: "One step forward (→)", "aria-disabled": "true" });
    this.playButton = button("Play", () => this.play(), { title: "Play from here (p)" });
    this.speed = select("Speed of play", SPEEDS, 0.1);
    this.spanChoice = select("Time shown", [...SPANS, [0, "zoomed"]], this.span, () => this.zoomTo(Number(this.spanChoice.value) || this.whole()));
    this.slider = el("input", { type: "range", min: 0, max: 1, step: 1, "aria-label": "Moment", oninput: () => this.goTo(Number(this.slider.value)) });
    this.firstChoice = el("input", { type: "number", min: 0, value: 0, "aria-label": "First worker shown", onchange: () => this.ask() });
    this.firstLabel = el("label", { class: "first", hidden: true }, "from worker ", this.firstChoice);
    this.status = el("span", { class: "status" }, "No search is running.");
    this.says = el("p", { class: "unseen", role: "status" });
    const time = el("div", { class: "watch-bar", role: "toolbar", "aria-label": "Time" },
      this.pauseButton, this.backButton, this.onButton, this.playButton, this.speed, this.spanChoice, this.slider, this.firstLabel, this.status);

    this.stageRoot = el("div", { class: "stages" });
    this.stages = [this.makeStage()];
    root.append(el("section", { class: "workers" }, engine, this.review, virtual, this.told, this.gameForm(), this.tourBox, time, this.says,
      this.stageRoot, trackLegend(), el("details", {}, el("summary", {}, "What the words mean"), el("p", { class: "note" },
        "An open node may be joined by any worker; it is named by its moves from the root. A PV node is expected to get an exact value, so all its moves are searched. At a CUT node "
        + "one move will probably reach beta, and the rest is not needed: work shared there is easily thrown away. At an ALL node no move raises alpha, so all are needed: the best place to share. "
        + "The window is alpha … beta, for the side to move. Needed is the probability that the node matters at all, next move that of the move a helper would take. "
        + "Joined are the helpers so far, below the workers at or below the node; italics: it is closed already. Bars are lit up at the node that is chosen."))));
  }

  makeStage() {
    const stage = new Stage(this.stageRoot, this.channel, { pick: (time, id) => this.choose(stage, time, id) });
    const { tracksRoot } = stage;
    tracksRoot.addEventListener("keydown", (event) => this.key(event));
    tracksRoot.addEventListener("wheel", (event) => {
      if (!this.frozen && !event.ctrlKey) return;
      event.preventDefault();
      this.zoomTo(this.span * 1.2 ** Math.sign(event.deltaY));
    }, { passive: false });
    const fingers = new Map();
    const apart = () => { const [one, other] = [...fingers.values()]; return Math.max(20, Math.abs(one - other)); };
    tracksRoot.addEventListener("pointerdown", (event) => fingers.set(event.pointerId, event.clientX));
    for (const type of ["pointerup", "pointercancel", "pointerleave"]) tracksRoot.addEventListener(type, (event) => fingers.delete(event.pointerId));
    tracksRoot.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) return;
      const before = fingers.size === 2 && apart();
      fingers.set(event.pointerId, event.clientX);
      if (before) this.zoomTo((this.span * before) / apart());
    });
    return stage;
  }

  // -- the engine's search

  offer(settings) {
    for (const name of ["policy", "driver"]) {
      this[name].replaceChildren(...options(settings.find(({ id }) => id === name)?.choices ?? []));
    }
    this.takeState(this.settings);
  }

  takeState(state) {
    const { lines, ...settings } = state;
    Object.assign(this.settings, settings);
    this.runButton.textContent = this.settings.on ? "Stop" : "Analyse";
    for (const name of ["policy", "driver"]) {
      const value = this.settings[name];
      if (value === undefined) continue;
      if (![...this[name].options].some((one) => one.value === value)) this[name].append(...options([value]));
      this[name].value = value;
    }
  }

  configure(changed) {
    const { on, state, reason, ...settings } = this.settings;
    this.channel.send("analysis.configure", { ...settings, ...changed });
  }

  get ownPolicy() { return this.settings.policy ?? "calibrated"; }

  take(snapshot) {
    this.channel.send("workers.seen", {});
    const last = this.live.at(-1);
    const isAnother = last && (last.search !== snapshot.search || last.workers !== snapshot.workers
      || last.first !== snapshot.first || snapshot.now < last.now);
    if (isAnother) this.live = [];
    this.live.push({ ...snapshot, policy: snapshot.policy ?? this.ownPolicy });
    if (this.live.length > KEPT) this.live.shift();
    if (!this.frozen && this.isShown) this.later();
  }

  later() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = undefined;
      this.draw();
    });
  }

  // -- recordings

  tell(text) { this.told.textContent = text; }

  searchVirtually(policies) {
    this.tell("In virtual time: starting …");
    this.channel.send("virtual.run", { workers: Number(this.many.value), nodes: Number(this.nodes.value), policies });
  }

  showVirtual({ runs, workers, driver, depth, serial }) {
    const kept = ["policy", "speedup", "overhead", "idle", "aborted"];
    this.showRecordings(runs.map((one) => ({
      facts: { clock: "virtual", workers, driver, ...Object.fromEntries(kept.map((name) => [name, one[name]])) },
      looks: one.looks.map((look) => ({ ...look, policy: one.policy })),
    })));
    this.tell(`Depth ${depth}, ${grouped(serial.nodes)} nodes by one worker. The same on every machine; one position proves nothing.`);
  }

  showRecordings(recordings) {
    this.stopPlaying();
    this.shown = recordings?.slice(0, 2) ?? null;
    this.backToLive.hidden = !recordings;
    this.setTour(this.shown?.[0].facts.tour ?? null);
    this.tell("");
    const count = this.shown?.length ?? 1;
    this.stageRoot.classList.toggle("two", count === 2);
    this.channel.announce("board.hide", {});
    this.stageRoot.replaceChildren(); // nothing of the search before stays
    this.stages = Array.from({ length: count }, () => this.makeStage());
    this.stages.forEach((stage, number) => stage.title(this.shown ? figures(this.shown[number].facts, this.shown[number].looks.at(-1).now) : ""));
    this.frozen = this.shown ? this.shown.map(({ looks }) => looks) : null;
    if (this.shown) {
      this.at = this.whole();
      const slow = SPEEDS.find(([speed]) => this.whole() / 1e6 / speed >= PLAY_S / 4) ?? SPEEDS.at(-1);
      this.speed.value = String(slow[0]);
      this.zoomTo(this.whole());
    } else {
      this.speed.value = "0.1";
      this.zoomTo(SPANS[2][0]);
      if (!this.live.length) this.status.textContent = "No search is running.";
    }
    if (this.tour) this.tourStep(0);
  }

  save() {
    const looks = this.frozen?.[0] ?? this.live;
    if (!looks.length) { this.tell("There is nothing to save yet."); return; }
    const { policy, driver, workers } = looks.at(-1);
    const facts = { by: "psearch", policy, driver: driver ?? this.settings.driver, workers, clock: "real" };
    download("search.jsonl", textOf(this.shown ?? [{ facts, looks }]), "application/jsonl");
  }

  async open(file) {
    this.file.value = "";
    if (file) await this.read(file.name, file);
  }

  async openTour(name) {
    this.tours.value = "";
    if (name) await this.read(`${name}.jsonl.gz`, await (await fetch(`recordings/${name}.jsonl.gz`)).blob());
  }

  async read(name, blob) {
    try {
      if (blob.size > LONGEST_FILE) throw new Error(`more than ${LONGEST_FILE >> 20} MiB`);
      const text = name.endsWith(".gz") ? new Response(blob.stream().pipeThrough(new DecompressionStream("gzip"))) : blob;
      this.showRecordings(readRecordings(await text.text()));
    } catch (error) {
      this.tell(`${name}: ${error.message}`);
    }
  }

  setTour(steps) {
    this.tour = Array.isArray(steps) && steps.length ? steps : null;
    this.tourAt = 0;
    this.tourBox.hidden = !this.tour;
  }

  tourStep(by) {
    this.tourAt = Math.max(0, Math.min(this.tour.length - 1, this.tourAt + by));
    const { text, at, span, node, stage } = this.tour[this.tourAt];
    this.tourText.textContent = `${this.tourAt + 1} of ${this.tour.length}. ${text}`;
    this.at = at;
    this.zoomTo(span ?? this.whole());
    for (const [number, one] of this.stages.entries()) one.choose(number === (stage ?? 0) ? node ?? null : null);
  }

  // -- time

  // Snapshots of each stage: the engine's, or those of recordings.
  get histories() { return this.frozen ?? [this.live]; }

  whole() { return Math.max(1, ...this.histories.map((looks) => looks.at(-1)?.now ?? 1)); }

  freeze() {
    if (this.frozen || !this.live.length) return;
    this.frozen = [this.live.slice()];
    this.at = (this.live.findLast(({ nodes }) => nodes) ?? this.live.at(-1)).now;
  }

  pause() {
    this.stopPlaying();
    if (this.shown) this.showRecordings(null);
    else if (this.frozen) this.frozen = null;
    else this.freeze();
    if (!this.frozen) for (const stage of this.stages) stage.choose(null);
    this.draw(true);
  }

  step(by) {
    this.stopPlaying();
    this.freeze();
    if (!this.frozen) return;
    const [all] = this.frozen;
    const withNodes = all.filter(({ nodes }) => nodes); // so that tree and tracks are of one moment
    const looks = withNodes.length ? withNodes : all;
    const next = by < 0 ? looks.findLastIndex(({ now }) => now < this.at) + by + 1 : looks.findLastIndex(({ now }) => now <= this.at) + by;
    this.at = looks[Math.max(0, Math.min(looks.length - 1, next))].now;
    this.draw(true);
  }

  goTo(time) {
    this.stopPlaying();
    this.freeze();
    this.at = time;
    this.draw();
  }

  choose(stage, time, id) {
    this.stopPlaying();
    this.freeze();
    // the first snapshot after this time that has the node, else the one just after it
    const looks = this.histories[this.stages.indexOf(stage)];
    const has = ({ now, nodes }) => now >= time && nodes?.some((node) => node.id === id);
    const before = looks.findLast(({ now, nodes }) => now < time && nodes?.some((node) => node.id === id));
    const found = looks.find(has);
    const best = found && (!before || found.now - time <= time - before.now) ? found : before ?? looks.find(({ now }) => now >= time);
    if (best && !(time <= this.at && this.at - time < this.span && !id)) this.at = best.now;
    this.draw(true);
    stage.choose(id);
  }

  play() {
    if (this.playing) { this.stopPlaying(); return; }
    this.freeze();
    if (!this.frozen) return;
    const first = this.frozen[0][0].now;
    if (this.at >= this.whole()) this.at = first;
    if (this.span >= this.whole() - first) this.zoomTo((this.whole() - first) / 5);
    this.playButton.textContent = "Stop playing";
    let before = performance.now();
    const next = (now) => {
      this.at = Math.min(this.whole(), this.at + (now - before) * 1000 * Number(this.speed.value));
      before = now;
      this.draw();
      if (this.at >= this.whole()) this.stopPlaying();
      else this.playing = requestAnimationFrame(next);
    };
    this.playing = requestAnimationFrame(next);
  }

  stopPlaying() {
    if (this.playing) cancelAnimationFrame(this.playing);
    this.playing = null;
    this.playButton.textContent = "Play";
  }

  zoomTo(span) {
    this.span = Math.max(SHORTEST_US, Math.min(LONGEST_US, span));
    this.spanChoice.value = String(SPANS.some(([us]) => us === this.span) ? this.span : 0);
    this.draw(true);
  }

  key(event) {
    const spans = SPANS.map(([us]) => us);
    if (event.key === " ") this.pause();
    else if (event.key === "p") this.play();
    else if (event.key === "ArrowLeft") this.step(event.shiftKey ? -20 : -1);
    else if (event.key === "ArrowRight") this.step(event.shiftKey ? 20 : 1);
    else if (event.key === "+") this.zoomTo(spans.findLast((us) => us < this.span) ?? this.span / 2);
    else if (event.key === "-") this.zoomTo(spans.find((us) => us > this.span) ?? this.span * 2);
    else return;
    event.preventDefault();
    event.stopPropagation(); // elsewhere the arrow keys step through the game
  }

  draw(isAsked = false) {
    const [looks] = this.histories;
    const latest = looks.at(-1);
    this.pauseButton.textContent = this.shown ? "Close" : this.frozen ? "Resume" : "Pause";
    if (!latest) { allow(this.backButton, false); return; }
    const end = this.frozen ? this.at : latest.now;
    Object.assign(this.slider, { min: looks[0].now, max: this.whole() });
    this.slider.value = end;
    this.slider.setAttribute("aria-valuetext", timeText(end));
    allow(this.backButton, this.frozen === null || end > (looks.find(({ nodes }) => nodes) ?? looks[0]).now);
    allow(this.onButton, this.frozen !== null && end < (looks.findLast(({ nodes }) => nodes) ?? latest).now);
    const found = this.stages.map((stage, number) => stage.show(this.histories[number],
      { end, span: this.span, isLive: !this.frozen, policy: this.histories[number].at(-1).policy }));
    const [{ last, withNodes, shares }] = found;
    this.firstLabel.hidden = this.shown !== null || last.workers <= last.tracks.length;
    this.firstChoice.max = last.workers - 1;
    const step = Math.max(1, Math.min(10_000, this.span / 100));
    const back = this.frozen && latest.now > end ? `, ${timeText(latest.now - end, step)} back` : "";
    const goesOn = this.frozen && !this.shown && !this.live.at(-1)?.done ? " (the search goes on)" : "";
    const state = this.shown ? "recorded" : this.frozen ? `paused${goesOn}` : last.done ? "finished" : "searching";
    const workers = last.workers ?? last.tracks.length;
    this.status.textContent = `${state}, ${timeText(end, step)}${back}, ${workers} ${workers === 1 ? "worker" : "workers"}`
      + (last.depth ? `, depth ${last.depth}` : "");
    const now = performance.now();
    if (!isAsked && now - this.saidAt < SAY_MS) return;
    this.saidAt = now;
    for (const stage of this.stages) stage.describe();
    this.says.textContent = `${this.status.textContent}. ${saidShares(shares)} ${(withNodes.nodes?.length ?? 0) + (withNodes.hidden ?? 0)} open split nodes.`;
  }

  // -- a user's game

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
}
