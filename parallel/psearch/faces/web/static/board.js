// The board: chessground, operated by dragging, clicking or the keyboard. The server sends the legal moves.

import { Chessground } from "./vendor/chessground/chessground.min.js";
import { byId, colour, el } from "./dom.js";

const FILES = "abcdefgh";
const PROMOTIONS = { q: "Queen", r: "Rook", b: "Bishop", n: "Knight" };
const WORKER_BRUSHES = Object.fromEntries([..."01234567"].map((number) => {
  const key = `worker${number}`;
  return [key, { key, color: colour(`--worker-${number}`), opacity: 0.9, lineWidth: 7 }];
}));
const DRAWN = { G: "green", R: "red", Y: "yellow", B: "blue" }; // of [%cal] and [%csl] in a PGN
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

const shapesOf = (node) => (node?.shapes ?? []).map((text) =>
  ({ brush: DRAWN[text[0]], orig: text.slice(1, 3), dest: text.slice(3) || undefined }));

export class Board {
  constructor(channel, game) {
    this.channel = channel;
    this.game = game;
    this.root = byId("board");
    this.isMine = null; // colour of the user in a game; null: both
    this.lines = null; // the latest analysis
    this.latest = {}; // position drawn last, and whether the user plays on from it
    this.shown = null; // a line that is not in the game
    this.isEdited = false; // while the board is edited
    this.cursor = null; // square of the keyboard cursor
    this.showArrows = true;
    this.ground = Chessground(this.root, {
      orientation: "white",
      coordinates: true,
      animation: { enabled: !matchMedia("(prefers-reduced-motion: reduce)").matches, duration: 120 },
      movable: { free: false, color: undefined, dests: new Map(), events: { after: (...moved) => this.moved(...moved) } },
      premovable: { enabled: true }, // of the user's colour, while psearch thinks
      drawable: { enabled: true, eraseOnClick: false, onChange: (shapes) => this.drawn(shapes), brushes: { second: { key: "second", color: "#003088", opacity: 0.5, lineWidth: 8 }, ...WORKER_BRUSHES } },
      highlight: { custom: new Map() },
    });
    channel.on("game.moved", () => this.takePosition());
    channel.on("game.previewed", ({ node }) => this.preview(node));
    channel.on("analysis.lines", (found) => this.takeLines(found));
    channel.on("analysis.state", ({ lines }) => lines !== undefined && this.takeLines(lines));
    channel.on("channel.closed", () => this.takeLines(null));
    channel.on("play.state", (state) => this.takePlay(state));
    channel.on("board.show", (line) => this.showLine(line));
    channel.on("board.hide", () => this.hideLine());
    // chessground caches the place of the board on the page, so clear the cache at each press
    for (const press of ["mousedown", "touchstart"]) {
      this.root.addEventListener(press, () => this.ground.state.dom.bounds.clear(), { capture: true, passive: true });
    }
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("focus", () => this.setCursor(this.cursor ?? "e2"));
    this.root.addEventListener("blur", () => this.setCursor(null));
  }

  takePosition() {
    if (this.shown && this.shownAt !== this.game.here) this.hideLine(false); // the line belongs to another position
    this.draw();
  }

  draw() {
    const position = this.game.position;
    if (!position || this.shown || this.isEdited) return;
    // in a game go to the latest position
    const isLatest = !position.over && !this.game.node?.children.length;
    const mover = this.isMine === null ? !position.over && position.turn : isLatest && this.isMine;
    this.ground.set({
      fen: position.fen,
      turnColor: position.turn,
      lastMove: position.last ?? undefined,
      check: position.check,
      viewOnly: false,
      movable: { color: mover || undefined, dests: new Map(mover === position.turn ? Object.entries(position.dests) : []) },
    });
    // a piece stays picked up when its position is drawn again, and when the engine moves
    const inGame = this.isMine === mover;
    const goesOn = position.id === this.latest.id || (inGame && this.latest.inGame);
    this.latest = { id: position.id, inGame };
    const { pieces, selected } = this.ground.state;
    if (selected && !(goesOn && pieces.get(selected)?.color === mover)) this.ground.selectSquare(null);
    this.ground.setShapes(shapesOf(this.game.node));
    if (!inGame) this.ground.cancelPremove();
    else if (mover === position.turn) this.ground.playPremove();
    this.drawArrows();
    this.describe();
  }

  preview(node) {
    if (this.isEdited) return;
    this.hideLine(false);
    this.ground.cancelMove();
    this.ground.cancelPremove();
    this.ground.set({
      fen: node.fen,
      turnColor: node.turn,
      lastMove: node.uci ?? undefined,
      check: false,
      movable: { color: undefined, dests: new Map() },
    });
    this.ground.setShapes(shapesOf(node));
    this.ground.setAutoShapes([]);
  }

  // What the user draws with the right button belongs to the move, and is written into the PGN.
  drawn(shapes) {
    if (this.shown || this.isEdited) return;
    const texts = shapes.map(({ brush, orig, dest }) => `${(brush ?? "green")[0].toUpperCase()}${orig}${dest ?? ""}`);
    this.channel.send("board.draw", { id: this.game.here, shapes: texts });
  }

  takeLines(found) {
    this.lines = found;
    this.drawArrows();
  }

  drawArrows() {
    if (this.shown || this.isEdited) return;
    const found = this.lines;
    const lines = this.showArrows && this.isMine === null && found?.lines && found.id === this.game.here ? found.lines : [];
    const shapes = lines.slice(0, 5).map((line, number) => ({
      orig: line.uci[0].slice(0, 2),
      dest: line.uci[0].slice(2, 4),
      brush: number === 0 ? "green" : "second",
      modifiers: { lineWidth: Math.max(4, 11 - 2 * number) },
    }));
    this.ground.setAutoShapes(shapes.reverse());
  }

  // Edit the board without rules. `press` takes each square that is pressed (null ends editing); `change` is called when
  // the pieces change.
  edit(press, change = undefined) {
    this.hideLine();
    this.isEdited = press !== null;
    const movable = this.isEdited ? { free: true, color: "both" } : { free: false };
    this.ground.set({ movable, draggable: { deleteOnDropOff: this.isEdited } });
    this.ground.set({ events: { select: press ?? undefined, change } });
    this.ground.set({ autoCastle: !this.isEdited, lastMove: undefined, check: false });
    this.ground.setShapes([]);
    this.ground.setAutoShapes([]);
    this.draw();
  }

  // Show a line that is not in the game: its last position, with arrows for its moves.
  showLine({ fen, last = [], title = "", arrows = [] }) {
    if (this.isEdited) return;
    this.shown = true;
    this.shownAt = this.game.here;
    byId("shown").hidden = false;
    byId("shown-title").textContent = title || "A line of the search";
    this.ground.set({ fen, lastMove: undefined, check: false, movable: { color: undefined, dests: new Map() } });
    this.ground.setShapes([]);
    const shapes = [...last.map((move) => ({ move, brush: "blue" })), ...arrows];
    this.ground.setAutoShapes(shapes.map(({ move, brush }) => ({ orig: move.slice(0, 2), dest: move.slice(2, 4), brush })));
  }

  hideLine(draws = true) {
    if (!this.shown) return;
    this.shown = null;
    byId("shown").hidden = true;
    if (draws) this.draw();
  }

  flip() {
    this.ground.toggleOrientation();
    this.channel.announce("board.turned", { orientation: this.orientation });
  }

  get orientation() {
    return this.ground.state.orientation;
  }

  takePlay(state) {
    this.isMine = state.running ? state.color : null;
    if (state.running && this.began !== state.began) {
      this.began = state.began; // a new game
      if (this.orientation !== state.color) this.flip();
    }
    this.draw();
  }

  async moved(from, to, { premove } = {}) {
    if (this.isEdited) return;
    const piece = this.ground.state.pieces.get(to);
    const meant = { at: this.game.position.id, playing: this.isMine !== null };
    let promotion = "";
    if (piece?.role === "pawn" && (to[1] === "8" || to[1] === "1")) {
      promotion = premove ? "q" : await this.askPromotion(piece.color, to);
      if (!promotion) {
        this.draw();
        return;
      }
    }
    this.channel.send("board.move", { from, to, promotion, ...meant });
  }

  // Offer four pieces over the board, the queen on the promotion square; a click elsewhere takes the move back.
  askPromotion(color, square) {
    return new Promise((resolve) => {
      const choices = Object.entries(PROMOTIONS).map(([letter, name]) =>
        el("button", { type: "button", "aria-label": name, onclick: () => dialog.close(letter) },
          el("piece", { class: `${name.toLowerCase()} ${color}` })),
      );
      const dialog = el("dialog", { class: "promotion", "aria-label": "Promote to" }, el("div", { class: "cg-wrap" }, choices));
      dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
      const squares = this.root.querySelector("cg-board");
      const isTurned = this.orientation === "black";
      const column = isTurned ? 7 - FILES.indexOf(square[0]) : FILES.indexOf(square[0]);
      const isBelow = (square[1] === "1") !== isTurned;
      dialog.classList.toggle("below", isBelow);
      const place = () => {
        const box = squares.getBoundingClientRect();
        dialog.style.left = `${box.left + (column * box.width) / 8}px`;
        dialog.style.top = `${box.top + (isBelow ? box.height / 2 : 0)}px`;
        dialog.style.width = `${box.width / 8}px`;
        dialog.style.height = `${box.height / 2}px`;
      };
      place();
      // keep it on its squares when the page is scrolled or the phone is turned
      const resized = new ResizeObserver(place);
      resized.observe(squares);
      for (const event of ["scroll", "resize"]) window.addEventListener(event, place);
      dialog.addEventListener("close", () => {
        resized.disconnect();
        for (const event of ["scroll", "resize"]) window.removeEventListener(event, place);
        dialog.remove();
        resolve(dialog.returnValue);
      });
      document.body.append(dialog);
      dialog.showModal();
    });
  }

  key(event) {
    const step = STEPS[event.key];
    if (step) {
      const turn = this.orientation === "white" ? 1 : -1;
      const [file, rank] = [FILES.indexOf(this.cursor[0]) + turn * step[0], Number(this.cursor[1]) + turn * step[1]];
      if (FILES[file] && rank >= 1 && rank <= 8) this.setCursor(FILES[file] + rank);
    } else if (event.key === "Enter" || event.key === " ") {
      this.ground.selectSquare(this.cursor);
      this.describe();
    } else if (event.key === "Escape") {
      this.ground.cancelMove();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  setCursor(square) {
    if (square) this.cursor = square;
    const marked = square ? new Map([[square, "cursor"]]) : new Map();
    this.ground.set({ highlight: { custom: marked } });
    if (square) this.describe();
  }

  // Describe the square of the keyboard cursor for screen readers.
  describe() {
    if (document.activeElement !== this.root || !this.cursor) return;
    const piece = this.ground.state.pieces.get(this.cursor);
    const selected = this.ground.state.selected;
    const what = piece ? `${piece.color} ${piece.role}` : "empty";
    byId("square").textContent = `${this.cursor}, ${what}${selected ? `, ${selected} is picked up` : ""}`;
  }
}
