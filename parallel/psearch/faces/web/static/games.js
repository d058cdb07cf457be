// The games of a PGN: their list, which is searched, and the one that is opened.
//
// The browser cuts a PGN into games, sends them to the server one at a time, and keeps them over a reload: in its cache
// lies the PGN of a list, and beside it each game as the user left it. Games are named "list/number".

import { allow, byId, el, grouped, setText } from "./dom.js";

const MOST_LISTED = 300;
const MOST_LISTS = 4; // kept, of all tabs
const LONGEST_NAME = 40;
const KEPT = "psearch-games"; // name of the cache; sessionStorage: name of the list
// Comments and lines that are skipped, or else the tags of a game, a bracket of a variation, or a first move.
const TOKEN = /\{[^{}]*\}|;.*|^%.*|((?:\[\s*\w[\w+#=:-]*\s*"[^\n\r]*?"\s*\]\s*)+)|[()]|1\s*\.(?!\s*\.)(?<=(?:^|\s)1\s*\.)/gm;
const MOVES = /\d\s*\.|\*|1-0|0-1|1\/2/;

// Return the texts of the games of a PGN. A game begins with tags after moves, or with another move 1.
export function cutGames(text) {
  const begins = [0];
  let from = 0; // end of the game's tags
  let hasFirst = false;
  let depth = 0; // open variations
  for (const { 0: token, 1: tags, index } of text.matchAll(TOKEN)) {
    if (tags) {
      if (MOVES.test(text.slice(from, index))) begins.push(index);
      from = index + token.length;
      hasFirst = false;
      depth = 0;
    } else if (token === "(" || token === ")") {
      depth = Math.max(0, depth + (token === "(" ? 1 : -1));
    } else if (token[0] === "1" && !depth) {
      if (hasFirst) begins.push((from = index));
      hasFirst = true;
    }
  }
  return begins.map((begin, number) => text.slice(begin, begins[number + 1])).filter((game) => game.trim());
}

// Return players, result and date of a game.
export function titleOf(game) {
  const tag = (name) => game.match(new RegExp(`^\\s*\\[${name}\\s+"((?:[^"\\\\\n]|\\\\.)*)"`, "m"))?.[1].slice(0, LONGEST_NAME) || "?";
  const facts = [tag("Result"), tag("Date")].filter((fact) => !/^[?*]/.test(fact));
  return [`${tag("White")} - ${tag("Black")}`, ...facts].join(", ");
}

// Return the numbers of the titles that have all words, in either case.
export function matching(titles, words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return [...titles.keys()].filter((number) => wanted.every((word) => titles[number].toLowerCase().includes(word)));
}

// Return the text of a file, which may be older than UTF-8.
export async function textOf(file) {
  const bytes = await file.arrayBuffer();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

export class Games {
  constructor(channel, game) {
    this.channel = channel;
    this.game = game;
    this.here = -1; // number of the game on the board; -1: it is not of the list
    this.asked = null; // name of the game that was sent
    this.loaded = null; // a single game that replaces the list when the server takes it
    this.take(null, []);
    channel.on("game.changed", () => this.follow());
    channel.on("board.error", () => {
      this.asked = null;
      this.draw(); // the list returns to the game on the board
    });
    channel.on("board.kept", ({ pgn, name }) => this.keep(pgn, name));
    byId("games").addEventListener("change", () => this.open(Number(byId("games").value)));
    byId("games-search").addEventListener("input", () => this.draw());
    for (const [id, step] of [["games-back", -1], ["games-forward", 1]]) {
      byId(id).addEventListener("click", () => this.open(this.shown[this.shown.indexOf(this.here) + step]));
    }
    this.bringBack().catch(() => {}); // this browser keeps nothing
  }

  take(list, texts) {
    this.list = list;
    this.texts = texts;
    this.titles = texts.map((text) => titleOf(text));
    this.follow();
    this.draw();
  }

  // Show the games of a PGN, the first on the board.
  load(text) {
    const texts = cutGames(text);
    if (!texts.length) {
      this.channel.announce("board.error", { text: "there is no game in this PGN" });
      return;
    }
    byId("games-search").value = "";
    const list = String(Date.now());
    const put = () => {
      this.loaded = null;
      this.take(list, texts);
      this.store(text).catch(() => {});
    };
    this.loaded = { name: `${list}/0`, put };
    if (texts.length > 1) put();
    this.ask(`${list}/0`, texts[0]);
  }

  open(number) {
    this.ask(`${this.list}/${number}`, this.texts[number]);
  }

  ask(name, text) {
    this.asked = name;
    this.channel.send("board.pgn", { text, name });
  }

  follow() {
    if (this.loaded && this.loaded.name === this.game.name) this.loaded.put();
    const [list, number] = (this.game.name ?? "").split("/");
    const here = list === this.list ? Number(number) : -1;
    if (here !== this.here) {
      this.here = here;
      this.draw();
    }
    if (this.asked && this.asked === this.game.name) {
      this.asked = null;
      this.channel.announce("page.open", { tab: "game" });
    }
  }

  // Keep a game as the user leaves it.
  async keep(pgn, name) {
    const [list, number] = name.split("/");
    if (list !== this.list || this.texts[number] === pgn) return;
    this.texts[number] = pgn;
    if (this.titles[number] !== titleOf(pgn)) {
      this.titles[number] = titleOf(pgn);
      this.draw();
    }
    await (await caches.open(KEPT)).put(`/${name}`, new Response(pgn)).catch(() => {});
  }

  async store(text) {
    sessionStorage.setItem(KEPT, this.list);
    const cache = await caches.open(KEPT);
    await cache.put(`/${this.list}`, new Response(text));
    const listOf = ({ url }) => new URL(url).pathname.split("/")[1];
    const kept = await cache.keys();
    const latest = [...new Set(kept.map(listOf))].sort().slice(-MOST_LISTS);
    for (const request of kept) if (!latest.includes(listOf(request))) await cache.delete(request);
  }

  async bringBack() {
    const list = sessionStorage.getItem(KEPT);
    const cache = await caches.open(KEPT);
    const whole = list && await cache.match(`/${list}`);
    if (!whole) return;
    const texts = cutGames(await whole.text());
    for (const request of await cache.keys()) {
      const [, of, number] = new URL(request.url).pathname.split("/");
      if (of === list && number) texts[number] = await (await cache.match(request)).text();
    }
    if (!this.list) this.take(list, texts);
  }

  draw() {
    byId("games-field").hidden = this.titles.length < 2;
    this.shown = matching(this.titles, byId("games-search").value);
    const place = this.shown.indexOf(this.here);
    const first = Math.max(0, Math.min(place - MOST_LISTED / 2, this.shown.length - MOST_LISTED));
    const listed = this.shown.slice(first, first + MOST_LISTED);
    byId("games").replaceChildren(...listed.map((number) => el("option", { value: number }, `${number + 1}. ${this.titles[number]}`)));
    byId("games").value = this.here;
    allow(byId("games-back"), place >= 1);
    allow(byId("games-forward"), place + 1 < this.shown.length);
    setText(byId("games-count"), `${grouped(this.shown.length)} of ${grouped(this.titles.length)}`);
  }
}
