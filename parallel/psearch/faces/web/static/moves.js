// The moves of the game with variations, marks and comments, their navigation, and the analysis of the game.

import { allow, byId, el, hide, isTyped, setText } from "./dom.js";
import { MISTAKES, moveNumber } from "./game.js";

const KEYS = { ArrowLeft: "back", ArrowRight: "forward", ArrowUp: "first", ArrowDown: "last", Home: "first", End: "last" };
const KINDS = ["inaccuracies", "mistakes", "blunders"];
const MARK_NAMES = { ...MISTAKES, "!": "good", "!!": "brilliant", "!?": "interesting" };

const comment = (node) => (node.comment ? [el("span", { class: "comment" }, node.comment)] : []);

// Go to the move whose button was clicked.
function goTo(event, game) {
  const id = event.target.closest("button")?.dataset.id;
  if (id !== undefined) game.go(Number(id));
}

export class Moves {
  constructor(channel, game) {
    this.channel = channel;
    this.game = game;
    this.root = byId("moves");
    this.buttons = new Map();
    this.current = null;
    channel.on("game.changed", () => this.draw());
    channel.on("game.moved", () => this.markCurrent());
    channel.on("game.previewed", () => this.markCurrent());
    channel.on("game.scored", ({ id }) => this.drawMarks(id));
    for (const where of ["first", "back", "forward", "last"]) {
      byId(`go-${where}`).addEventListener("click", () => game.step(where));
    }
    this.root.addEventListener("click", (event) => goTo(event, game));
    for (const name of ["remove", "promote", "undo", "redo"]) {
      byId(name).addEventListener("click", () => channel.send(`board.${name}`, { id: game.here }));
    }
    document.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const where = KEYS[event.key];
    if (!where || isTyped(event, ", [role=tablist], [role=region]")) return;
    this.game.step(where);
    event.preventDefault();
  }

  draw() {
    const focused = this.root.contains(document.activeElement) ? Number(document.activeElement.dataset.id) : null;
    this.buttons.clear();
    const root = this.game.root;
    const parts = comment(root);
    this.writeLine(root, parts, 0);
    if (!parts.length) parts.push(el("span", { class: "muted" }, "No moves yet: make one on the board."));
    const over = this.game.result !== "*" ? [el("span", { class: "result" }, this.game.result)] : [];
    this.root.replaceChildren(...parts, ...over);
    this.buttons.get(focused)?.focus({ preventScroll: true });
    this.markCurrent();
  }

  // Add what follows a node: first child, variations in brackets, and so on. A loop, since games are long.
  writeLine(start, parts, level) {
    let node = start;
    let alone = level === 0 || Boolean(start.comment);
    while (node.children.length) {
      const [main, ...others] = node.children;
      parts.push(this.button(main, alone), ...comment(main));
      alone = Boolean(main.comment);
      for (const other of others) {
        const inside = ["(", ...comment({ comment: other.before }), this.button(other, true), ...comment(other)];
        if (level < 12) this.writeLine(other, inside, level + 1);
        inside.push(")");
        parts.push(el("span", { class: level ? "variation" : "variation own-line" }, inside));
        alone = true;
      }
      node = main;
    }
  }

  button(node, alone) {
    const button = el("button", { type: "button", class: `move ${node.turn === "white" ? "by-black" : ""}`, "data-id": node.id });
    this.buttons.set(node.id, button);
    button.dataset.number = moveNumber(node, alone);
    this.drawMark(node, button);
    return button;
  }

  drawMark(node, button) {
    const score = node.main && !node.san.endsWith("#") ? node.eval?.text ?? "" : "";
    const key = `${node.mark}${node.best}${score}`;
    if (button.dataset.drawn === key) return;
    button.dataset.drawn = key;
    const number = button.dataset.number ? [el("span", { class: "number" }, button.dataset.number)] : [];
    button.replaceChildren(...number, node.san + (node.mark ?? ""), el("span", { class: "score" }, score && ` ${score}`));
    for (const [mark, name] of Object.entries(MISTAKES)) button.classList.toggle(name, node.mark === mark);
    if (node.mark) button.title = (MARK_NAMES[node.mark] ?? "") + (node.best ? `; better was ${node.best}` : "");
  }

  // Update one move, or all.
  drawMarks(only) {
    for (const id of only === undefined ? this.buttons.keys() : [only]) {
      const [node, button] = [this.game.nodes.get(id), this.buttons.get(id)];
      if (node && button) this.drawMark(node, button);
    }
  }

  markCurrent() {
    const button = this.buttons.get(this.game.here) ?? null;
    if (this.current !== button) {
      this.current?.removeAttribute("aria-current");
      button?.setAttribute("aria-current", "true");
      this.current = button;
      if (button) {
        // scroll only the list, since the page must not jump
        const [top, height] = [button.offsetTop, this.root.clientHeight];
        if (top < this.root.scrollTop || top + button.offsetHeight > this.root.scrollTop + height) {
          this.root.scrollTop = top - height / 2;
        }
      }
    }
    let named = this.game.node; // or a position before it
    while (named && !named.opening) named = this.game.nodes.get(named.parent);
    byId("opening").hidden = !named;
    setText(byId("opening"), named?.opening ?? "");
    allow(byId("undo"), this.game.canUndo);
    hide("redo", !this.game.canRedo, "undo");
    const node = this.game.node;
    for (const id of ["go-back", "go-first", "remove", "promote"]) allow(byId(id), node?.parent !== undefined);
    for (const id of ["go-forward", "go-last"]) allow(byId(id), Boolean(node?.children.length));
    hide("promote", node?.main !== false, "remove");
    const over = this.game.position?.over;
    if (node && this.game.position?.id === node.id) {
      const said = node.san ? `${moveNumber(node, true)}${node.san}` : "Initial position";
      byId("said").textContent = over ? `${said}. ${over}` : said;
      byId("over").textContent = over ?? "";
    }
  }
}

// The analysis of the game: progress, accuracy of each side, mistakes.
export class Review {
  constructor(channel, game) {
    this.channel = channel;
    this.game = game;
    this.state = null;
    byId("review").addEventListener("click", () => this.toggle());
    byId("mistakes").addEventListener("click", (event) => goTo(event, game));
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
    setText(byId("review-state"), state.running ? `${state.done} of ${state.total} positions` : state.text);
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
