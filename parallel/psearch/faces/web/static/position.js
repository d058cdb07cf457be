// The tab "Position", and import and export: FEN, PGN, Chess960, and the board editor. The browser reads files and sends
// their text.
//
// The game outlives the server: the browser keeps its PGN, offers it without a server, and sends it to a server that no
// longer knows this page.

import { byId, download, el, onSubmit, setField, setText } from "./dom.js";
import { Games, textOf } from "./games.js";

const KEPT = "psearch-game"; // sessionStorage: game and position of this tab; localStorage: the last game
const FILES = [..."abcdefgh"];
const ROLES = ["king", "queen", "rook", "bishop", "knight", "pawn"];
const CASTLING = { K: "White O-O", Q: "White O-O-O", k: "Black O-O", q: "Black O-O-O" };

export class Positions {
  constructor(channel, game) {
    this.channel = channel;
    this.game = game;
    this.games = new Games(channel, game);
    onSubmit(byId("fen-form"), () => channel.send("board.fen", { text: byId("fen").value }));
    onSubmit(byId("pgn-form"), () => this.games.load(byId("pgn").value));
    onSubmit(byId("chess960-form"), () => {
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
    channel.on("channel.open", () => (this.isNew = true));
    channel.on("game.changed", () => this.bringBack());
    for (const type of ["board.kept", "game.moved"]) channel.on(type, () => this.keep());
    channel.on("game.moved", () => byId("edit-form").hidden && setField(byId("fen"), game.position.fen));
    document.addEventListener("paste", (event) => this.paste(event));
  }

  async readFile() {
    const [file] = byId("pgn-file").files;
    if (file) this.games.load(await textOf(file));
    byId("pgn-file").value = "";
  }

  // Handle a FEN or a game pasted outside of fields.
  paste(event) {
    if (event.target.closest?.("input, textarea") || !this.channel.isOpen) return;
    const text = event.clipboardData.getData("text").trim();
    if (!text) return;
    if (/^[1-8pnbrqkPNBRQK/]+ [wb]/.test(text)) this.channel.send("board.fen", { text });
    else this.games.load(text);
  }

  keep() {
    byId("last-game").hidden = !this.game.isBlank || !localStorage.getItem(KEPT);
    if (this.game.isBlank) {
      sessionStorage.removeItem(KEPT);
    } else if (this.game.kept) {
      const here = Math.max(0, [...this.game.nodes.keys()].indexOf(this.game.here)); // number of the node when the PGN is read
      const { pgn: text, name } = this.game.kept;
      for (const storage of [sessionStorage, localStorage]) storage.setItem(KEPT, JSON.stringify({ text, name, here }));
    }
  }

  // Restore the game on a server that no longer has it: it was restarted, or has dropped the page.
  bringBack() {
    const kept = sessionStorage.getItem(KEPT);
    if (this.isNew && kept && this.game.isBlank) {
      this.channel.send("board.pgn", JSON.parse(kept));
      this.channel.announce("page.note", { text: "The server no longer had this board. Your game was restored." });
    }
    this.isNew = false;
  }

  // Return the game from the server, which is always up to date, or else the copy kept here.
  async text(kind) {
    if (!this.channel.isOpen) return kind === "pgn" ? this.game.kept?.pgn ?? "" : this.game.position.fen;
    return new Promise((resolve) => {
      const end = this.channel.on("board.exported", (found) => {
        end();
        resolve(found[kind]);
      });
      this.channel.send("board.export");
    });
  }

  async copy(button, kind) {
    const label = (button.dataset.label ??= button.textContent);
    const text = await this.text(kind);
    byId(kind).value = text;
    try {
      await navigator.clipboard.writeText(text);
      setText(button, "Copied");
      setTimeout(() => setText(button, label), 1500);
    } catch {
      byId(kind).select(); // not allowed by the browser: the user can copy the text
    }
  }

  async save() {
    download("game.pgn", await this.text("pgn"), "application/x-chess-pgn");
  }
}

// The headers of the PGN; an empty one is removed.
export class Headers {
  constructor(channel, game) {
    this.root = byId("headers");
    const send = (name, value) => channel.send("board.header", { name, value });
    this.isSent = false; // a new header was sent to the server
    channel.on("game.changed", () => {
      if (this.isSent) byId("header-form").reset();
      this.isSent = false;
      this.draw(game.headers);
    });
    channel.on("board.error", () => {
      this.isSent = false;
      this.draw(game.headers); // fields return to the accepted values
    });
    this.root.addEventListener("change", ({ target }) => send(target.name, target.value));
    onSubmit(byId("header-form"), () => {
      this.isSent = true;
      send(byId("header-name").value.trim(), byId("header-value").value);
    });
  }

  // Labels stay where they are, so that a field keeps its focus: psearch may move meanwhile.
  draw(headers) {
    // not a form: its fields, named by the PGN, would hide its own properties
    const labels = new Map([...this.root.querySelectorAll("input")].map((field) => [field.name, field.parentElement]));
    for (const [name, label] of labels) if (!Object.hasOwn(headers, name)) label.remove();
    Object.entries(headers).forEach(([name, value], place) => {
      const label = labels.get(name) ?? el("label", { class: "field" }, el("span", {}, name),
        el("input", { name, maxlength: 1000, readonly: ["FEN", "SetUp", "Variant"].includes(name) }));
      if (this.root.children[place] !== label) this.root.insertBefore(label, this.root.children[place] ?? null);
      setField(label.lastChild, value);
    });
  }
}

// The board editor. The server reports what is wrong with the position.
export class Editor {
  constructor(channel, game, board) {
    this.board = board;
    this.game = game;
    this.chosen = null; // the button of the palette that is pressed
    this.wanted = new Set(); // castling rights that the pieces allow
    this.left = null; // position being edited when another tab was opened
    this.begun = ""; // name and beginning of the game on the board
    this.isSent = false; // the position was sent to the server
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
    onSubmit(byId("edit-form"), () => {
      this.isSent = true;
      channel.send("board.fen", { text: this.fen });
    });
    channel.on("board.error", () => (this.isSent = false));
    // the server sends the game for many reasons; only another one, or another set-up, ends the edit
    channel.on("game.changed", () => {
      const begin = [game.name, game.root.fen, game.root.turn].join();
      if (this.isSent || begin !== this.begun) this.end();
      this.isSent = false;
      this.begun = begin;
    });
    // the other parts of the page cannot use an unfinished position
    channel.on("page.opened", ({ tab }) => tab !== "position" && this.leave());
  }

  offer(name, piece, sign) {
    const attributes = { type: "button", "aria-label": name, title: name, "aria-pressed": "false" };
    const button = el("button", { ...attributes, onclick: () => this.choose(this.chosen === button ? null : button) }, sign);
    button.piece = piece;
    for (const press of piece ? ["mousedown", "touchstart"] : []) {
      button.addEventListener(press, (event) => this.board.ground.dragNewPiece(piece, event, true), { passive: true });
    }
    // chessground keeps a tap from becoming a click
    button.addEventListener("touchend", ({ changedTouches: [at] }) => piece && button.contains(document.elementFromPoint(at.clientX, at.clientY)) && button.click());
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

  // Opened again, it continues.
  leave() {
    const left = byId("edit-form").hidden ? this.left : this.fen;
    this.end();
    this.left = left;
  }

  put(square) {
    if (!this.chosen) return;
    const { piece } = this.chosen;
    // after chessground has handled the press
    queueMicrotask(() => {
      this.board.ground.cancelMove();
      this.board.ground.setPieces(new Map([[square, piece]]));
      this.follow();
    });
  }

  want(box) {
    this.wanted[box.checked ? "add" : "delete"](box.value);
    this.follow();
  }

  // The boxes and the FEN follow the pieces: impossible rights are not offered.
  follow() {
    for (const box of this.boxes) box.checked = this.wanted.has(box.value) && Boolean(this.rook(box.value));
    byId("fen").value = this.fen;
  }

  // Return the file of the rook with which a king may castle: the outermost on that side.
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

  // Tell whether a FEN has a castling right, by its letter or the file of the rook.
  hasRight(letter, rights) {
    const file = this.rook(letter) ?? letter;
    return rights.includes(letter) || rights.includes(letter < "a" ? file.toUpperCase() : file);
  }
}
