// The game as sent by the server: a tree of moves and the position on the board. Other modules read it from here.

const FIRST = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR";
// Marks of the analysis; the names are also CSS classes. A PGN may contain other marks.
export const MISTAKES = { "?!": "inaccuracy", "?": "mistake", "??": "blunder" };

export class Game {
  constructor(channel) {
    this.channel = channel;
    this.nodes = new Map(); // by number: data from the server, and children
    this.root = null;
    this.here = 0;
    this.asked = null; // requested position that the server has not confirmed
    this.position = null;
    this.white = this.black = "";
    this.headers = {};
    this.result = "*";
    this.kept = null; // PGN and name of the whole game, in case the server ends
    channel.on("board.kept", (kept) => (this.kept = kept));
    channel.on("board.tree", (tree) => this.takeTree(tree));
    channel.on("board.position", (position) => this.takePosition(position));
    for (const type of ["board.error", "channel.closed"]) channel.on(type, () => (this.asked = null));
    channel.on("analysis.lines", (found) => this.takeScore(found));
    channel.on("review.state", (review) => this.takeReview(review));
  }

  takeTree(tree) {
    this.nodes = new Map(tree.nodes.map((node) => [node.id, { ...node, children: [] }]));
    this.root = this.nodes.get(tree.nodes[0].id);
    for (const node of this.nodes.values()) {
      if (node.parent !== undefined) this.nodes.get(node.parent).children.push(node);
    }
    this.here = this.nodes.has(this.asked) ? this.asked : tree.here;
    this.headers = tree.headers ?? {};
    this.white = this.headers.White ?? "";
    this.black = this.headers.Black ?? "";
    this.result = this.headers.Result ?? "*";
    this.name = tree.name;
    this.canUndo = tree.undo;
    this.canRedo = tree.redo;
    this.channel.announce("game.changed", {});
  }

  takePosition(position) {
    // after several keys only the last answer counts; earlier ones would move the board back
    if (this.asked !== null && this.asked !== position.id && this.nodes.has(this.asked)) return;
    this.asked = null;
    this.position = position;
    this.here = position.id;
    this.channel.announce("game.moved", {});
  }

  takeScore(found) {
    const node = this.nodes.get(found.id);
    if (!node || !found.eval) return;
    node.eval = found.eval;
    this.channel.announce("game.scored", { id: found.id });
  }

  takeReview(review) {
    if (review.first && this.root) this.root.eval = review.first;
    for (const move of review.moves) {
      const node = this.nodes.get(move.id);
      if (!node) continue;
      if (move.eval) node.eval = move.eval;
      node.mark = move.mark || node.mark;
      node.best = move.best;
    }
    this.channel.announce("game.scored", {});
  }

  get node() {
    return this.nodes.get(this.here);
  }

  // Tell whether there is only the initial position of chess.
  get isBlank() {
    return this.nodes.size < 2 && (this.root?.fen ?? FIRST) === FIRST && this.root?.turn !== "black";
  }

  // Return the main line, including the root.
  mainLine() {
    const line = [];
    for (let node = this.root; node; node = node.children[0]) line.push(node);
    return line;
  }

  go(id) {
    const node = this.nodes.get(id);
    if (!node || id === this.here) return;
    this.here = this.asked = id;
    // shown at once; the legal moves come from the server
    this.channel.announce("game.previewed", { node });
    this.channel.send("board.go", { id });
  }

  step(where) {
    const node = this.node;
    if (!node) return;
    let last = node;
    while (last.children.length) last = last.children[0];
    this.go({ back: node.parent, forward: node.children[0]?.id, first: this.root.id, last: last.id }[where]);
  }
}

// Return "12. " for a move by White, "12... " for one by Black without White's before it.
export function moveNumber(node, alone) {
  const number = Math.ceil(node.ply / 2);
  if (node.ply % 2 === 1) return `${number}. `;
  return alone ? `${number}... ` : "";
}
