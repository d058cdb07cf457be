// The analysis: its switch, its settings, and its lines, updated at most twenty times a second.

import { byId, el, grouped, isTyped, options, seconds, setField, setText, short } from "./dom.js";
import { moveNumber } from "./game.js";

const STATES = {
  waiting: "waiting",
  done: "searched to the end",
  over: "the game is over in this position",
  taken: "another tab is using the engine",
  failed: "failed",
};

const KEPT = "psearch-settings"; // sessionStorage: settings of this tab; localStorage: the latest of all tabs

function valueOf(field) {
  if (field.type === "checkbox") return field.checked;
  return field.type === "number" ? Number(field.value) : field.value;
}

export class Lines {
  constructor(channel, game) {
    this.channel = channel;
    this.game = game;
    this.rows = [];
    this.fields = [byId("multipv")];
    this.state = { on: false };
    this.body = byId("lines");
    this.switch = byId("analyse");
    this.switch.addEventListener("click", () => this.toggle());
    this.body.addEventListener("pointerdown", (event) => (this.pressed = this.lineAt(event)));
    this.body.addEventListener("click", (event) => this.follow(event));
    this.body.addEventListener("pointermove", (event) => this.peek(event));
    this.body.addEventListener("pointerleave", () => this.endPeek());
    channel.on("board.peeked", (found) => this.showPeek(found));
    channel.on("analysis.state", (state) => this.takeState(state));
    channel.on("analysis.lines", (found) => this.takeLines(found));
    channel.on("game.moved", () => this.clear());
    for (const type of ["game.moved", "game.previewed"]) channel.on(type, () => (this.peeked = null));
    channel.on("page.facts", (facts) => this.takeFacts(facts));
    channel.on("engine.state", (engine) => this.takeEngine(engine));
    channel.on("channel.open", () => {
      this.wanted = JSON.parse(sessionStorage.getItem(KEPT) ?? localStorage.getItem(KEPT)); // the server may be another
      channel.send("page.facts");
    });
    channel.on("channel.closed", () => this.takeState({ ...this.state, on: false, lines: null, reason: "" }));
    // fields return to the accepted values
    channel.on("analysis.error", () => this.fill());
    channel.on("engine.error", () => this.takeEngine(this.engine));
    byId("multipv").addEventListener("change", () => this.configure());
    for (const id of ["threads", "hash"]) byId(id).addEventListener("change", () => this.configureEngine());
    byId("forget").addEventListener("click", () => channel.send("engine.forget"));
    document.addEventListener("keydown", (event) => {
      if (event.key === " " && !isTyped(event, ", button, summary, [tabindex]")) {
        this.toggle();
        event.preventDefault();
      }
    });
  }

  toggle() {
    this.channel.send(this.state.on ? "analysis.stop" : "analysis.start");
  }

  takeState(state) {
    this.state = state;
    if (!this.wanted && this.fields.length > 1) {
      const kept = JSON.stringify(Object.fromEntries(this.fields.map(({ id }) => [id, state[id]])));
      for (const storage of [sessionStorage, localStorage]) storage.setItem(KEPT, kept);
    }
    this.switch.setAttribute("aria-pressed", String(state.on));
    setText(this.switch, state.on ? "Stop" : "Analyse");
    setText(byId("analysis-state"), state.reason || STATES[state.state] || "");
    // a state may be older than what is being chosen, and setting a value would disturb an open list
    if (!this.fields.includes(document.activeElement)) this.fill();
    if (state.lines?.lines) this.takeLines(state.lines);
    else if (state.lines !== undefined) this.clear(true);
  }

  fill() {
    for (const field of this.fields) {
      const value = this.state[field.id];
      if (field.type === "checkbox") field.checked = value;
      else if (value !== undefined) field.value = value;
    }
  }

  takeFacts(facts) {
    this.fields = [byId("multipv"), ...facts.settings.map((setting) => this.makeField(setting))];
    byId("settings").replaceChildren(
      ...facts.settings.map(({ name }, number) => el("label", { class: "field" }, el("span", {}, name), this.fields[number + 1])),
      ...facts.settings.filter(({ free }) => free).map(({ id, choices }) => el("datalist", { id: `${id}-choices` }, options(choices))),
    );
    this.fill();
    const wanted = this.fields.filter(({ id }) => this.wanted?.[id] !== undefined && this.wanted[id] !== this.state[id]);
    if (wanted.length) {
      const present = Object.fromEntries(this.fields.map(({ id }) => [id, this.state[id]]));
      this.channel.send("analysis.configure", { ...present, ...Object.fromEntries(wanted.map(({ id }) => [id, this.wanted[id]])) });
    }
    this.wanted = null;
    setText(byId("version"), facts.version);
  }

  // Create the field of a setting that the server has declared.
  makeField({ id, kind, choices, low, high, free, words }) {
    const attributes = { id, title: words, onchange: () => this.configure() };
    if (kind === "spin") return el("input", { ...attributes, type: "number", min: low, max: high, required: true });
    if (kind === "check") return el("input", { ...attributes, type: "checkbox" });
    if (!free) return el("select", attributes, options(choices));
    const text = { type: "text", list: `${id}-choices`, size: 14, maxlength: 400, autocomplete: "off", spellcheck: "false" };
    return el("input", { ...attributes, ...text });
  }

  takeEngine(engine) {
    this.engine = engine;
    byId("threads").max = engine.mostThreads;
    byId("hash").max = engine.mostHash;
    for (const id of ["threads", "hash"]) setField(byId(id), engine[id]);
  }

  configure() {
    this.channel.send("analysis.configure", Object.fromEntries(this.fields.map((field) => [field.id, valueOf(field)])));
  }

  configureEngine() {
    const [threads, hash] = ["threads", "hash"].map((id) => Number(byId(id).value));
    this.channel.send("engine.configure", { threads, hash });
  }

  clear(always = false) {
    if (this.shownId === this.game.here && !always) return;
    for (const row of this.rows) row.element.hidden = true;
    for (const id of ["depth", "nodes", "nps", "hashfull", "time"]) setText(byId(id), "–");
  }

  takeLines(found) {
    if (found.id !== this.game.here) return;
    this.shownId = found.id;
    const [best] = found.lines;
    setText(byId("depth"), best ? `${found.depth}/${best.seldepth}` : String(found.depth));
    setText(byId("nodes"), short(found.nodes));
    setText(byId("nps"), `${short(found.nps)}/s`);
    setText(byId("hashfull"), `${(found.hashfull / 10).toFixed(0)}%`);
    setText(byId("time"), seconds(found.time));
    byId("nodes").title = `${grouped(found.nodes)} nodes`;
    found.lines.forEach((line, number) => this.drawLine(number, line));
    for (const row of this.rows.slice(found.lines.length)) row.element.hidden = true;
  }

  drawLine(number, line) {
    const row = (this.rows[number] ??= this.makeRow());
    row.element.hidden = false;
    setText(row.score, line.text);
    setText(row.depth, String(line.depth));
    if (line.wdl) row.score.title = `White wins ${line.wdl[0] / 10}%, draws ${line.wdl[1] / 10}%, loses ${line.wdl[2] / 10}%`;
    const key = `${this.shownId} ${line.san.join(" ")}`;
    if (row.key === key) return;
    row.key = key;
    row.uci = line.uci;
    const first = this.game.nodes.get(this.shownId)?.ply ?? 0;
    // keep the buttons: one that disappears between press and release is not clicked
    while (row.moves.children.length < line.san.length) row.moves.append(this.makeButton(number, row.moves.children.length));
    [...row.moves.children].forEach((button, index) => {
      button.hidden = index >= line.san.length;
      setText(button.firstChild, moveNumber({ ply: first + index + 1 }, index === 0));
      setText(button.lastChild, line.san[index] ?? "");
    });
  }

  makeRow() {
    const [score, moves] = ["score", "pv"].map((name) => el("td", { class: name }));
    const depth = el("span");
    const unfold = el("button", { type: "button", class: "unfold", "aria-label": "Whole line", "aria-expanded": "false", onclick }, "▾");
    function onclick() {
      unfold.setAttribute("aria-expanded", String(element.classList.toggle("whole")));
    }
    const element = el("tr", {}, score, el("td", { class: "depth" }, depth, unfold), moves);
    this.body.append(element);
    return { element, score, depth, moves, key: "", uci: [] };
  }

  makeButton(number, index) {
    const attributes = { type: "button", class: "move", "data-row": number, "data-index": index, tabindex: index ? -1 : 0 };
    return el("button", attributes, el("span", { class: "number" }), el("span"));
  }

  // Return the moves up to the button of an event.
  lineAt(event) {
    const button = event.target.closest("button.move");
    const uci = button && this.rows[Number(button.dataset.row)].uci.slice(0, Number(button.dataset.index) + 1);
    return button && { button, id: this.shownId, uci };
  }

  // Show the position after the move under a moving mouse. New lines under a resting mouse show nothing.
  peek(event) {
    const line = event.pointerType === "mouse" && this.lineAt(event);
    if (!line || line.id !== this.game.here || this.peeked?.button === line.button) return;
    const words = [...line.button.parentElement.children].slice(0, line.uci.length).map((button) => button.textContent);
    this.peeked = { button: line.button, title: words.join(" ") };
    this.channel.send("board.peek", { at: line.id, moves: line.uci });
  }

  showPeek({ fen, last }) {
    if (this.peeked) this.channel.announce("board.show", { fen, last, title: this.peeked.title });
  }

  endPeek() {
    if (this.peeked) this.channel.announce("board.hide", {});
    this.peeked = null;
  }

  // A click on a move adds the line up to it, as it was when the button was pressed, to the game.
  follow(event) {
    const found = this.lineAt(event);
    const line = found?.button === this.pressed?.button ? this.pressed : found;
    this.pressed = null;
    this.endPeek();
    if (line?.id === this.game.here) this.channel.send("board.line", { moves: line.uci });
  }
}
