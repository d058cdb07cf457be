// The board as one wants it: pieces put, moved and taken away by hand. The server says what is wrong with the position.

import { byId, el } from "./dom.js";

const FILES = [..."abcdefgh"];
const ROLES = ["king", "queen", "rook", "bishop", "knight", "pawn"];
const CASTLING = { K: "White short", Q: "White long", k: "Black short", q: "Black long" };

export class Editor {
  constructor(channel, game, board) {
    this.board = board;
    this.game = game;
    this.chosen = null; // the button of the palette that is pressed
    this.wanted = new Set(); // castling, where king and rook stand for it
    this.left = null; // what was being edited when another tab was opened
    for (const color of ["white", "black"]) {
      for (const role of ROLES) this.offer(`${color} ${role}`, { color, role }, el("piece", { class: `${color} ${role}` }));
    }
    this.offer("nothing", undefined, "×");
    this.boxes = Object.entries(CASTLING).map(([letter, name]) => {
      const box = el("input", { type: "checkbox", value: letter, onchange: () => this.want(box) });
      byId("edit-castling").append(el("label", {}, box, ` ${name} `));
      return box;
    });
    byId("edit").addEventListener("click", () => this.begin());
    byId("edit-cancel").addEventListener("click", () => this.end());
    byId("edit-clear").addEventListener("click", () => {
      this.wanted.clear();
      board.ground.set({ fen: "8/8/8/8/8/8/8/8" });
      this.follow();
    });
    byId("edit-turn").addEventListener("change", () => this.follow());
    byId("edit-form").addEventListener("submit", (event) => {
      event.preventDefault();
      channel.send("board.fen", { text: this.fen });
    });
    channel.on("game.changed", () => this.end());
    // its pieces are no position yet: no other part of the page could do anything with them
    channel.on("page.opened", ({ tab }) => tab !== "position" && this.leave());
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

  get fen() {
    const rights = this.boxes.filter((box) => box.checked).map((box) => box.value).join("");
    return `${this.board.ground.getFen()} ${byId("edit-turn").value} ${rights || "-"} - 0 1`;
  }

  begin() {
    byId("edit-form").hidden = false;
    this.board.edit((square) => this.put(square), () => this.follow());
    const [pieces, turn, rights] = (this.left ?? this.game.position.fen).split(" ");
    if (this.left) this.board.ground.set({ fen: pieces });
    byId("edit-turn").value = turn;
    this.wanted = new Set(Object.keys(CASTLING).filter((letter) => this.hasRight(letter, rights)));
    this.left = null;
    this.follow();
  }

  end() {
    this.left = null;
    if (byId("edit-form").hidden) return;
    byId("edit-form").hidden = true;
    this.choose(null);
    this.board.edit(null);
    byId("fen").value = this.game.position.fen;
  }

  // Begun again, it goes on.
  leave() {
    const left = byId("edit-form").hidden ? this.left : this.fen;
    this.end();
    this.left = left;
  }

  put(square) {
    if (!this.chosen) return;
    const { piece } = this.chosen;
    // once chessground has done with the press
    queueMicrotask(() => {
      this.board.ground.cancelMove();
      this.board.ground.setPieces(new Map([[square, piece]]));
      this.follow();
    });
  }

  // -- castling

  want(box) {
    this.wanted[box.checked ? "add" : "delete"](box.value);
    this.follow();
  }

  // The boxes and the FEN follow the pieces: what cannot be is not asked for.
  follow() {
    for (const box of this.boxes) box.checked = this.wanted.has(box.value) && Boolean(this.rook(box.value));
    byId("fen").value = this.fen;
  }

  // The file of the rook with which a king may castle: the outermost on that side of it.
  rook(letter) {
    const [color, rank] = letter < "a" ? ["white", 1] : ["black", 8];
    const isShort = letter.toUpperCase() === "K";
    const is = (role) => (file) => {
      const piece = this.board.ground.state.pieces.get(file + rank);
      return piece?.color === color && piece.role === role;
    };
    const king = FILES.find(is("king"));
    const rook = isShort ? FILES.findLast(is("rook")) : FILES.find(is("rook"));
    const isPlaced = king && rook && rook > king === isShort;
    return isPlaced && (this.game.position.chess960 || king + rook === (isShort ? "eh" : "ea")) ? rook : undefined;
  }

  // Whether a FEN has a right: its letter, or the file of the rook.
  hasRight(letter, rights) {
    const file = this.rook(letter) ?? letter;
    return rights.includes(letter) || rights.includes(letter < "a" ? file.toUpperCase() : file);
  }
}
