// The board as one wants it: pieces put, moved and taken away by hand. The server says what is wrong with the position.

import { byId, el } from "./dom.js";

const ROLES = ["king", "queen", "rook", "bishop", "knight", "pawn"];
const CASTLING = { K: "White short", Q: "White long", k: "Black short", q: "Black long" };

export class Editor {
  constructor(channel, game, board) {
    this.board = board;
    this.game = game;
    this.chosen = null; // the button of the palette that is pressed
    for (const color of ["white", "black"]) {
      for (const role of ROLES) this.offer(`${color} ${role}`, { color, role }, el("piece", { class: `${color} ${role}` }));
    }
    this.offer("nothing", undefined, "×");
    for (const [letter, name] of Object.entries(CASTLING)) {
      byId("edit-castling").append(el("label", {}, el("input", { type: "checkbox", value: letter }), ` ${name} `));
    }
    byId("edit").addEventListener("click", () => this.begin());
    byId("edit-cancel").addEventListener("click", () => this.end());
    byId("edit-clear").addEventListener("click", () => board.ground.set({ fen: "8/8/8/8/8/8/8/8" }));
    byId("edit-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const rights = [...byId("edit-castling").querySelectorAll(":checked")].map((box) => box.value).join("");
      channel.send("board.fen", { text: `${board.ground.getFen()} ${byId("edit-turn").value} ${rights || "-"} - 0 1` });
    });
    channel.on("game.changed", () => this.end());
    // its pieces are no position yet: no other part of the page could do anything with them
    channel.on("page.opened", ({ tab }) => tab !== "position" && this.end());
  }

  offer(name, piece, sign) {
    const attributes = { type: "button", "aria-label": name, title: name, "aria-pressed": "false" };
    const button = el("button", { ...attributes, onclick: () => this.choose(this.chosen === button ? null : button) }, sign);
    button.piece = piece;
    byId("palette").append(button);
  }

  choose(button) {
    this.chosen?.setAttribute("aria-pressed", "false");
    button?.setAttribute("aria-pressed", "true");
    this.chosen = button;
  }

  begin() {
    const [, turn, rights] = this.game.position.fen.split(" ");
    byId("edit-turn").value = turn;
    for (const box of byId("edit-castling").querySelectorAll("input")) box.checked = rights.includes(box.value);
    byId("edit-form").hidden = false;
    this.board.edit((square) => this.put(square));
  }

  end() {
    if (byId("edit-form").hidden) return;
    byId("edit-form").hidden = true;
    this.choose(null);
    this.board.edit(null);
  }

  put(square) {
    if (!this.chosen) return;
    const { piece } = this.chosen;
    // once chessground has done with the press
    queueMicrotask(() => {
      this.board.ground.cancelMove();
      this.board.ground.setPieces(new Map([[square, piece]]));
    });
  }
}
