// A game against psearch: its terms, clocks and buttons.

import { byId, el, onSubmit, seconds, setText } from "./dom.js";

const CLOCKS = ["180+2", "300+3", "60+0", "600+5", "900+10", "1800+0", "none+0.5", "none+2", "none+10"]; // seconds
const STEP = 50; // Elo
const TICK_MS = 100;
const KEPT = "psearch-play"; // localStorage: the terms of the last game

function clockText(value) {
  const [clock, more] = value.split("+");
  if (clock === "none") return `no clock; psearch takes ${more} s per move`;
  return `${clock / 60} minute${clock === "60" ? "" : "s"}${more === "0" ? "" : ` + ${more} s`}`;
}

export class Play {
  constructor(channel, game, board) {
    this.channel = channel;
    this.game = game;
    this.board = board;
    this.state = { running: false };
    byId("clock").replaceChildren(...CLOCKS.map((value) => el("option", { value }, clockText(value))));
    channel.on("play.state", (state) => this.takeState(state));
    channel.on("page.facts", ({ elo }) => this.takeElo(elo));
    for (const type of ["board.turned", "game.changed", "game.moved", "game.previewed"]) {
      channel.on(type, () => this.drawPlayers());
    }
    this.fill(JSON.parse(localStorage.getItem(KEPT) ?? "{}"));
    onSubmit(byId("play-form"), () => this.start());
    byId("rematch").addEventListener("click", () => {
      this.fill({ color: this.state.color === "white" ? "black" : "white", from: "start" });
      this.start();
    });
    byId("review-game").addEventListener("click", () => {
      channel.announce("page.open", { tab: "game" });
      byId("review").click();
    });
    for (const [id, type] of [["resign", "resign"], ["draw", "draw"], ["take-back", "back"]]) {
      byId(id).addEventListener("click", () => channel.send(`play.${type}`));
    }
    byId("take-back").addEventListener("click", () => board.ground.cancelPremove()); // it answers a move that will be gone
  }

  takeElo([low, high]) {
    const options = [el("option", { value: "" }, "full strength")];
    for (let elo = high; elo >= low; elo -= STEP) options.push(el("option", { value: elo }, `Elo ${elo}`));
    const before = byId("elo").length ? byId("elo").value : this.wanted.elo ?? "";
    byId("elo").replaceChildren(...options);
    byId("elo").value = before;
  }

  // Fill in terms of a game; the strengths to choose from may come later.
  fill(terms) {
    this.wanted = terms;
    for (const [name, value] of Object.entries(terms)) {
      const field = byId("play-form").elements[name];
      if (field && (field.length === undefined || [...field].some((one) => one.value === value))) field.value = value;
    }
  }

  start() {
    const form = new FormData(byId("play-form"));
    const [clock, more] = form.get("clock").split("+");
    const elo = form.get("elo");
    localStorage.setItem(KEPT, JSON.stringify({ ...Object.fromEntries(form), from: "start" }));
    this.channel.send("play.start", {
      color: form.get("color"),
      elo: elo ? Number(elo) : null,
      clock: clock === "none" ? null : Number(clock),
      increment: clock === "none" ? 0 : Number(more),
      movetime: clock === "none" ? Number(more) : 0,
      delays: form.get("delays") === "human",
      fromHere: form.get("from") === "here",
    });
  }

  takeState(state) {
    this.state = state;
    this.since = performance.now();
    const ended = !state.running && ["resign", "draw"].includes(document.activeElement?.id);
    byId("resign").disabled = byId("draw").disabled = !state.running;
    byId("rematch").hidden = byId("review-game").hidden = state.running || !state.color;
    if (ended) byId("rematch").focus(); // what has the focus may not be disabled, or keys begin at the top of the page
    byId("take-back").disabled = !state.color;
    byId("analyse").disabled = state.running;
    byId("start-game").classList.toggle("main", !state.running);
    const doing = state.thinking ? "psearch is thinking" : "Your move";
    setText(byId("play-state"), state.running ? doing : state.result || "");
    this.drawPlayers();
    clearInterval(this.timer);
    if (state.ticking) this.timer = setInterval(() => this.drawPlayers(), TICK_MS);
  }

  // Names, side to move and time left. The clocks are always shown, so that a game does not shift the board.
  drawPlayers() {
    const { clocks, ticking } = this.state;
    const turn = this.game.position?.over ? null : this.game.node?.turn;
    for (const place of ["top", "bottom"]) {
      const element = byId(`clock-${place}`);
      const color = (place === "bottom") === (this.board.orientation === "white") ? "white" : "black";
      const name = this.game[color];
      setText(element.querySelector(".name"), name && name !== "?" ? name : color === "white" ? "White" : "Black");
      element.classList.toggle("to-move", turn === color);
      let left = clocks?.[color];
      if (left !== undefined && ticking === color) left -= (performance.now() - this.since) / 1000;
      setText(element.querySelector(".time"), left === undefined ? "" : seconds(left));
      element.classList.toggle("ticking", ticking === color);
      element.classList.toggle("low", left !== undefined && left < 10);
    }
  }
}
