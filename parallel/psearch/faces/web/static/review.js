// The analysis of a game: how far it is, how well each side played, what was wrong.

import { byId, el, setText } from "./dom.js";
import { MISTAKES, moveNumber } from "./game.js";

const KINDS = ["inaccuracies", "mistakes", "blunders"];

export class Review {
  constructor(channel, game) {
    this.channel = channel;
    this.game = game;
    this.state = null;
    byId("review").addEventListener("click", () => this.toggle());
    byId("mistakes").addEventListener("click", (event) => {
      const id = event.target.closest("button")?.dataset.id;
      if (id !== undefined) game.go(Number(id));
    });
    channel.on("review.state", (state) => this.takeState(state));
    channel.on("game.changed", () => this.drawMistakes());
  }

  toggle() {
    if (this.state?.running) {
      this.channel.send("review.stop");
      return;
    }
    const [kind, amount] = byId("review-limit").value.split(" ");
    this.channel.send("review.start", { kind, amount: Number(amount) });
  }

  takeState(state) {
    this.state = state;
    setText(byId("review"), state.running ? "Stop" : "Analyse the game");
    const progress = byId("review-progress");
    progress.hidden = !state.running;
    progress.max = Math.max(1, state.total);
    progress.value = state.done;
    const words = state.running ? `${state.done} of ${state.total} positions` : state.text;
    setText(byId("review-state"), words);
    this.drawPlayers(state.players);
    this.drawMistakes();
  }

  drawPlayers(players) {
    byId("accuracy").hidden = !players;
    if (!players) return;
    const rows = ["white", "black"].map((color) => {
      const { accuracy, loss, marks } = players[color];
      const name = this.game[color] || (color === "white" ? "White" : "Black");
      const cells = [accuracy === null ? "–" : `${accuracy.toFixed(0)}%`, loss === null ? "–" : loss.toFixed(0)];
      for (const kind of KINDS) cells.push(String(marks[kind]));
      return el("tr", {}, el("th", { scope: "row" }, name), ...cells.map((text) => el("td", {}, text)));
    });
    byId("accuracy").querySelector("tbody").replaceChildren(...rows);
  }

  drawMistakes() {
    const bad = this.game.mainLine().filter((node) => MISTAKES[node.mark]);
    const items = bad.map((node) => {
      const better = node.best ? el("span", { class: "muted" }, ` better ${node.best}`) : null;
      const button = el("button", { type: "button", class: `move ${MISTAKES[node.mark]}`, "data-id": node.id });
      button.append(`${moveNumber(node, true)}${node.san}${node.mark}`);
      return el("li", {}, button, better);
    });
    const key = items.map((item) => item.textContent).join();
    if (key === this.drawn) return;
    this.drawn = key;
    byId("mistakes").replaceChildren(...items);
  }
}
