// The games of a PGN: their list, which is searched, and the one that is opened.
//
// The server cuts a PGN that fits into a message. A longer one is cut here, and its games are sent one at a time.

import { byId, el, grouped, setText } from "./dom.js";

const LONGEST_PGN = 500000; // characters that the server takes
const MOST_LISTED = 300;
const LONGEST_NAME = 40;
const TAGS = /(?:^[ \t]*\[\w+[ \t]+"(?:[^"\\\n]|\\.)*"[ \t]*\][ \t]*\r?\n\s*)+/gm;

// Return the texts of the games of a PGN. A game begins with its tags.
export function cutGames(text) {
  const begins = [...text.matchAll(TAGS)].map((tags) => tags.index);
  if (begins.length === 0 || text.slice(0, begins[0]).trim()) begins.unshift(0);
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

export class Games {
  constructor(channel, game) {
    this.channel = channel;
    this.game = game;
    this.titles = [];
    this.texts = null; // the games, if they were cut here
    this.here = 0;
    this.isShown = false; // whether the game on the board is that of `texts`
    this.isAsked = false;
    channel.on("board.games", (games) => this.take(games));
    channel.on("board.error", () => (this.isAsked = false));
    byId("games").addEventListener("change", () => this.open(Number(byId("games").value)));
    byId("games-search").addEventListener("input", () => this.draw());
    for (const [id, step] of [["games-back", -1], ["games-forward", 1]]) {
      byId(id).addEventListener("click", () => this.open(this.shown[this.shown.indexOf(this.here) + step]));
    }
  }

  // Show the games of a PGN, the first on the board.
  load(text) {
    if (text.length <= LONGEST_PGN) {
      this.channel.send("board.pgn", { text });
      return;
    }
    this.texts = cutGames(text);
    this.titles = this.texts.map((one, number) => `${number + 1}. ${titleOf(one)}`);
    this.isShown = false;
    byId("games-search").value = "";
    this.open(0);
  }

  open(number) {
    if (!this.texts) {
      this.channel.send("board.pick", { number });
      return;
    }
    if (this.isShown && this.game.pgn) this.texts[this.here] = this.game.pgn; // as the user leaves it
    this.here = number;
    this.isAsked = true;
    this.channel.send("board.pgn", { text: this.texts[number] });
    this.draw();
  }

  // The server has one game of a list that was cut here.
  take({ titles, here, opened }) {
    this.isShown = this.isAsked;
    if (this.texts === null || titles.length > 1 || (opened && !this.isAsked)) {
      this.texts = null;
      this.titles = titles;
      this.here = here;
    }
    this.isAsked = false;
    this.draw();
    if (opened) this.channel.announce("page.open", { tab: "game" });
  }

  draw() {
    byId("games-field").hidden = this.titles.length < 2;
    this.shown = matching(this.titles, byId("games-search").value);
    const place = this.shown.indexOf(this.here);
    const first = Math.max(0, Math.min(place - MOST_LISTED / 2, this.shown.length - MOST_LISTED));
    const listed = this.shown.slice(first, first + MOST_LISTED);
    byId("games").replaceChildren(...listed.map((number) => el("option", { value: number }, this.titles[number])));
    byId("games").value = this.here;
    byId("games-back").disabled = place < 1;
    byId("games-forward").disabled = place + 1 >= this.shown.length;
    setText(byId("games-count"), `${grouped(this.shown.length)} of ${grouped(this.titles.length)}`);
  }
}
