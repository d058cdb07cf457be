// Unit tests of the page's scripts: node --test, in a folder with a copy of them (test_web_scripts.py).

import assert from "node:assert/strict";
import test from "node:test";

import { grouped, seconds, short } from "./dom.js";
import { Game, moveNumber } from "./game.js";
import { cutGames, matching, titleOf } from "./games.js";
import { Channel } from "./channel.js";
import { readRecordings } from "./workers.js";

const GAME = '[Event "A"]\n[White "Anderssen, A."]\n[Black "B"]\n[Date "1851.06.21"]\n[Result "1-0"]\n\n1. e4 {[%clk 0:01:00]\n[%eval 0.3]} e5 1-0\n\n';

test("a PGN is cut where the tags of a game begin", () => {
  for (const end of ["\n", "\r\n"]) {
    const text = (GAME + GAME.replace("Anderssen", "Morphy")).replaceAll("\n", end);
    const games = cutGames(text);
    assert.equal(games.length, 2);
    assert.equal(games.join(""), text);
    assert.deepEqual(games.map(titleOf), ["Anderssen, A. - B, 1-0, 1851.06.21", "Morphy, A. - B, 1-0, 1851.06.21"]);
  }
});

test("moves before all tags, blank lines between tags, no tags at all, and comments with tags and moves", () => {
  assert.equal(cutGames(`1. d4 d5 *\n\n${GAME}`).length, 2);
  assert.equal(cutGames(GAME.replace('[Black', '\n[Black')).length, 1);
  assert.deepEqual(cutGames("1. e4 e5 *"), ["1. e4 e5 *"]);
  assert.deepEqual(cutGames(" \n"), []);
  assert.deepEqual(cutGames("1. e4 (1. d4) e5 1-0\n\n1. c4 *"), ["1. e4 (1. d4) e5 1-0\n\n", "1. c4 *"]);
  for (const comment of ["{\n[Event \"no\"]\n1. d4 }", ";[Event \"no\"] 1. d4\n", "\n% 1. d4\n", "{unclosed", "1... d5", '[%evp 0,1]']) {
    assert.equal(cutGames(`1. e4 ${comment} e5 2. Nf3 *\n[Event "The "big" cup"][Site "x"]\n\n11. Rd8 *\n\n${GAME}`).length, 3, comment);
  }
  assert.equal(titleOf("1. e4 *"), "? - ?");
  assert.equal(titleOf('[White "a \\" b"]\n[Result "*"]'), 'a \\" b - ?');
});

test("20 MB are cut within seconds", () => {
  const count = Math.ceil(20e6 / GAME.length);
  const began = performance.now();
  assert.equal(cutGames(GAME.repeat(count)).length, count);
  assert.ok(performance.now() - began < 20000);
});

test("titles are found by all words in any order", () => {
  const titles = ["1. Morphy - Allies, 1858", "2. Anderssen - Kieseritzky, 1851", "3. Morphy - Anderssen, 1858"];
  assert.deepEqual(matching(titles, "anderssen MORPHY"), [2]);
  assert.deepEqual(matching(titles, "  "), [0, 1, 2]);
  assert.deepEqual(matching(titles, "nobody"), []);
});

test("numbers are written in one way", () => {
  assert.deepEqual([0, 99, 1.25, 1234, 1234567].map(short), ["0", "99", "1.3", "1.23\u2009k", "1.23\u2009M"]);
  assert.equal(grouped(1234567.4), "1,234,567");
  assert.deepEqual([0, 9.96, 61, 3661].map(seconds), ["0:00.0", "0:09", "1:01", "1:01:01"]);
  assert.deepEqual([1, 2, 3].map((ply) => moveNumber({ ply }, ply === 2)), ["1. ", "1... ", "2. "]);
});

test("a game is a tree that is walked, and later messages are not overtaken by earlier ones", () => {
  const channel = new Channel("ws://nowhere");
  const game = new Game(channel);
  const nodes = [{ id: 0 }, { id: 1, parent: 0, ply: 1 }, { id: 2, parent: 1, ply: 2 }, { id: 3, parent: 0, ply: 1 }];
  assert.ok(game.isBlank);
  channel.announce("board.tree", { nodes, here: 0 });
  channel.announce("board.position", { id: 0 });
  assert.ok(!game.isBlank);
  assert.deepEqual(game.mainLine().map((node) => node.id), [0, 1, 2]);
  game.step("last");
  game.step("back");
  channel.announce("board.position", { id: 2 });
  assert.equal(game.here, 1);
  channel.announce("board.position", { id: 1 });
  assert.equal(game.position.id, 1);
  assert.deepEqual(channel.waiting.map((text) => JSON.parse(text).payload.id), [2, 1]);
});

test("recordings are read line by line, and a wrong line is named", () => {
  const facts = '{"psearch_recording":1,"title":"a"}', look = '{"begin":0,"now":5,"tracks":[]}';
  const found = readRecordings(`${facts}\n${look}\n\n${look}\n${facts}\n${look}\n`);
  assert.deepEqual(found.map(({ looks }) => looks.length), [2, 1]);
  assert.throws(() => readRecordings(`${facts}\n{`), /^Error: line 2 is not one of a recording/);
  assert.throws(() => readRecordings(look), /^Error: line 1 /);
  assert.throws(() => readRecordings(facts), /^Error: the recording is empty/);
  const sparse = '{"begin":0,"now":5,"tracks":[],"nodes":[{"id":"a","under_way":[{}]}],"events":[{"kind":"closed"}],"line":{}}';
  const [{ looks: [filled] }] = readRecordings(`${facts}\n${sparse}\n`);
  assert.deepEqual(filled.nodes, [{ id: "a", under_way: [{ san: "", workers: [] }], type: "", moves: [], words: [] }]);
  assert.deepEqual([filled.events[0].type, filled.line.words], ["", []]);
});
