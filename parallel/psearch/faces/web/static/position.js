// Positions and games in and out: FEN, PGN, Chess960. A file is read by the browser, which sends its text.
//
// The game outlives the server: the browser keeps its PGN, gives it out without a server, and to a server that does not
// know this page any more.

import { byId, el, setText } from "./dom.js";

const LONGEST_PGN = 500000;
const COPIED_MS = 1500;
const KEPT = "psearch-game"; // in sessionStorage: the game of this tab, and where it is; in localStorage: the last one

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
    byId("last-game").addEventListener("click", () => channel.send("board.pgn", JSON.parse(localStorage.getItem(KEPT))));
    for (const [id, kind] of [["copy-fen", "fen"], ["copy-pgn", "pgn"], ["kept-copy", "pgn"]]) {
      byId(id).addEventListener("click", () => this.copy(byId(id), kind));
    }
    for (const id of ["save-pgn", "kept-save"]) byId(id).addEventListener("click", () => this.save());
    channel.on("board.games", (games) => this.takeGames(games));
    channel.on("channel.open", () => (this.isNew = true));
    channel.on("game.changed", () => this.bringBack());
    for (const type of ["board.kept", "game.moved"]) channel.on(type, () => this.keep());
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
    if (event.target.closest?.("input, textarea") || !this.channel.isOpen) return;
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

  // -- the game without a server

  keep() {
    byId("last-game").hidden = !this.game.isBlank || !localStorage.getItem(KEPT);
    if (this.game.isBlank) {
      sessionStorage.removeItem(KEPT);
    } else if (this.game.pgn) {
      const here = Math.max(0, [...this.game.nodes.keys()].indexOf(this.game.here)); // as the game is numbered when it is read
      for (const storage of [sessionStorage, localStorage]) storage.setItem(KEPT, JSON.stringify({ text: this.game.pgn, here }));
    }
  }

  // A server that has no game of this tab, which has had one: it was started anew, or has forgotten it.
  bringBack() {
    const kept = sessionStorage.getItem(KEPT);
    if (this.isNew && kept && this.game.isBlank) {
      this.channel.send("board.pgn", JSON.parse(kept));
      this.channel.announce("page.note", { text: "The server did not know this board any more: your game is here again." });
    }
    this.isNew = false;
  }

  // -- out

  // The text of the server, which is never behind, or what is kept of it.
  async text(kind) {
    if (!this.channel.isOpen) return kind === "pgn" ? this.game.pgn : this.game.position.fen;
    return new Promise((resolve) => {
      const end = this.channel.on("board.exported", (found) => {
        end();
        resolve(found[kind]);
      });
      this.channel.send("board.export");
    });
  }

  async copy(button, kind) {
    const label = button.textContent;
    const text = await this.text(kind);
    byId(kind).value = text;
    try {
      await navigator.clipboard.writeText(text);
      setText(button, "Copied");
      setTimeout(() => setText(button, label), COPIED_MS);
    } catch {
      byId(kind).select(); // the browser does not let us: it is there to be copied
    }
  }

  async save() {
    const href = URL.createObjectURL(new Blob([await this.text("pgn")], { type: "application/x-chess-pgn" }));
    el("a", { href, download: "game.pgn" }).click();
    setTimeout(() => URL.revokeObjectURL(href), COPIED_MS);
  }
}
