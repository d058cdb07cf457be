// Positions and games in and out: FEN, PGN, Chess960. A file is read by the browser, which sends its text.

import { byId, el, setText } from "./dom.js";

const LONGEST_PGN = 500000;
const COPIED_MS = 1500;

export class Positions {
  constructor(channel, game) {
    this.channel = channel;
    this.game = game;
    byId("fen-form").addEventListener("submit", (event) => {
      event.preventDefault();
      channel.send("board.fen", { text: byId("fen").value });
    });
    byId("pgn-form").addEventListener("submit", (event) => {
      event.preventDefault();
      channel.send("board.pgn", { text: byId("pgn").value });
    });
    byId("games").addEventListener("change", () => channel.send("board.pick", { number: Number(byId("games").value) }));
    byId("chess960-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const number = byId("chess960").value;
      channel.send("board.chess960", { number: number === "" ? null : Number(number) });
    });
    byId("pgn-file").addEventListener("change", () => this.readFile());
    byId("new-game").addEventListener("click", () => channel.send("board.start"));
    byId("copy-fen").addEventListener("click", () => this.export("fen"));
    byId("copy-pgn").addEventListener("click", () => this.export("pgn"));
    byId("save-pgn").addEventListener("click", () => this.export("file"));
    channel.on("board.exported", (found) => this.takeExport(found));
    channel.on("board.games", (games) => this.takeGames(games));
    channel.on("game.moved", () => {
      if (document.activeElement !== byId("fen")) byId("fen").value = game.position.fen;
    });
    document.addEventListener("paste", (event) => this.paste(event));
  }

  async readFile() {
    const [file] = byId("pgn-file").files;
    if (!file) return;
    if (file.size > LONGEST_PGN) {
      this.channel.announce("board.error", { text: `the file is longer than ${LONGEST_PGN} bytes: take one game out of it` });
    } else {
      byId("pgn").value = await file.text();
      this.channel.send("board.pgn", { text: byId("pgn").value });
    }
    byId("pgn-file").value = "";
  }

  // Pasted anywhere but in a field: a FEN or a game.
  paste(event) {
    if (event.target.closest?.("input, textarea")) return;
    const text = event.clipboardData.getData("text").trim();
    if (!text) return;
    this.channel.send(/^[1-8pnbrqkPNBRQK/]+ [wb]/.test(text) ? "board.fen" : "board.pgn", { text });
  }

  takeGames({ titles, here, opened }) {
    byId("games-field").hidden = titles.length < 2;
    byId("games").replaceChildren(...titles.map((title, number) => el("option", { value: number }, title)));
    byId("games").value = here;
    if (opened) this.channel.announce("page.open", { tab: "game" });
  }

  export(kind) {
    this.wanted = kind;
    this.channel.send("board.export");
  }

  async takeExport(found) {
    if (this.wanted === "file") {
      const href = URL.createObjectURL(new Blob([found.pgn], { type: "application/x-chess-pgn" }));
      el("a", { href, download: "game.pgn" }).click();
      URL.revokeObjectURL(href);
      return;
    }
    if (this.wanted === "pgn") byId("pgn").value = found.pgn;
    else byId("fen").value = found.fen;
    const button = byId(`copy-${this.wanted}`);
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(found[this.wanted]);
      setText(button, "Copied");
      setTimeout(() => setText(button, label), COPIED_MS);
    } catch {
      byId(this.wanted).select(); // the browser does not let us: it is there to be copied
    }
  }
}
