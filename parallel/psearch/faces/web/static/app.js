// Puts the parts of the page together.

import { Board } from "./board.js";
import { Channel, OPENED_ELSEWHERE } from "./channel.js";
import { Evaluation } from "./curves.js";
import { byId, el, followTyping, guardClicks, isTyped, onSubmit, setText } from "./dom.js";
import { Game } from "./game.js";
import { Lines } from "./lines.js";
import { Moves, Review } from "./moves.js";
import { Play } from "./play.js";
import { Editor, Headers, Positions } from "./position.js";

const NOTE_MS = 8000;
// Tabs that are loaded when first opened: classes, constructed with an empty element and the channel. Their
// show() and hide() are called as the tab comes and goes. The content security policy is strict: no inline script, no
// style="..." in markup (element.style is fine), nothing from elsewhere.
const LOADERS = {
  workers: async () => (await import("./workers.js")).WorkersTab,
  laboratory: async () => (await import("./laboratory.js")).Laboratory,
};

// The token is in a cookie now; remove it from the address, so that it does not stay in the history.
history.replaceState(null, "", location.pathname);

// A name that survives a reload and differs from tab to tab.
const pageName = sessionStorage.getItem("psearch-page") ?? crypto.randomUUID().replaceAll("-", "");
sessionStorage.setItem("psearch-page", pageName);

followTyping();
guardClicks();
const channel = new Channel(`ws://${location.host}/socket?page=${pageName}`);
const game = new Game(channel);
const board = new Board(channel, game);
new Evaluation(channel, game);
new Moves(channel, game);
new Lines(channel, game);
new Play(channel, game, board);
new Review(channel, game);
new Positions(channel, game);
new Editor(channel, game, board);
new Headers(channel, game);

// -- notes

function note(text, kind = "note") {
  const line = el("p", { class: kind, role: kind === "error" ? "alert" : "status" }, text);
  line.append(el("button", { type: "button", "aria-label": "Close this note", onclick: () => line.remove() }, "×"));
  byId("notes").append(line);
  while (byId("notes").children.length > 4) byId("notes").firstElementChild.remove();
  setTimeout(() => line.remove(), NOTE_MS);
}

channel.on("*", (payload, type) => {
  if (!type.endsWith(".error")) return;
  if (isSaid && (type === "board.error" || type === "play.error")) {
    isSaid = false;
    say.setCustomValidity(payload.text);
    say.reportValidity();
  }
  note(payload.text, "error");
});
for (const type of ["engine.note", "page.note"]) channel.on(type, ({ text }) => note(text));

channel.on("engine.state", (engine) => {
  const words = {
    starting: "The engine is starting",
    compiling: `The engine is not ready yet: ${engine.text}`,
    failed: `The engine failed: ${engine.text}`,
  };
  setText(byId("engine-state"), words[engine.state] ?? "");
  byId("engine-state").classList.toggle("error", engine.state === "failed");
  document.documentElement.dataset.engine = engine.state;
});

channel.on("channel.open", () => {
  byId("connection").hidden = true;
  byId("main").inert = false;
});
channel.on("channel.closed", ({ reason, code, final }) => {
  setText(byId("connection-text"), final ? reason : "The server does not answer. Trying again …");
  byId("reconnect").hidden = code !== OPENED_ELSEWHERE;
  byId("kept").hidden = game.isBlank;
  byId("connection").hidden = false;
  byId("main").inert = true;
});
channel.on("page.open", ({ tab }) => openTab(tab));
byId("reconnect").addEventListener("click", () => channel.open());

// -- buttons of the board

byId("flip").addEventListener("click", () => board.flip());
function showArrows(isOn) {
  board.showArrows = isOn;
  localStorage.setItem("psearch-arrows", isOn ? "on" : "off");
  byId("arrows").setAttribute("aria-pressed", String(isOn));
  board.drawArrows();
}
showArrows(localStorage.getItem("psearch-arrows") !== "off");
byId("arrows").addEventListener("click", () => showArrows(!board.showArrows));
byId("help-open").addEventListener("click", () => byId("help").showModal());
byId("help-close").addEventListener("click", () => byId("help").close());
byId("hide-line").addEventListener("click", () => board.hideLine());
// A move that is refused stays in its field, with the reason beside it.
const say = byId("say");
let isSaid = false;
onSubmit(byId("say-form"), () => {
  isSaid = true;
  channel.send("board.say", { text: say.value, playing: board.isMine !== null });
});
say.addEventListener("input", () => say.setCustomValidity(""));
channel.on("game.moved", () => {
  if (!isSaid) return;
  isSaid = false;
  say.value = "";
  say.blur();
});

// -- keys: they go to the board, unless a field or button has the focus

document.addEventListener("click", (event) => {
  if (event.detail && event.target.closest("button, summary")) document.activeElement.blur();
});
byId("board").addEventListener("pointerdown", () => document.activeElement.blur());
// the page is useless without the server, but the game must not be lost
window.addEventListener("keydown", (event) => byId("main").inert && event.stopImmediatePropagation(), { capture: true });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.matches?.("input, select, textarea")) event.target.blur();
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !event.target.closest?.("input, textarea")) {
    channel.send(event.shiftKey ? "board.redo" : "board.undo");
  }
  if (isTyped(event)) return;
  if (event.key === "f") board.flip();
  if (event.key === "?") byId("help").showModal();
  if (event.key === "m") {
    board.hideLine(); // the title of a shown line covers the field
    byId("say").focus();
    event.preventDefault();
  }
});

// -- tabs (https://www.w3.org/WAI/ARIA/apg/patterns/tabs/)

const tablist = byId("tabs");
const parts = {}; // loaded tabs, by name
let current = null;

async function openTab(name) {
  if (current === name) return;
  parts[current]?.hide();
  current = name;
  sessionStorage.setItem("psearch-tab", name);
  channel.announce("page.opened", { tab: name });
  for (const tab of tablist.children) {
    const isOpen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(isOpen));
    tab.tabIndex = isOpen ? 0 : -1;
    byId(tab.getAttribute("aria-controls")).hidden = !isOpen;
  }
  if (!LOADERS[name]) return;
  try {
    const Part = await LOADERS[name]();
    parts[name] ??= new Part(byId(`panel-${name}`), channel);
    if (current === name) parts[name].show();
  } catch (error) {
    note(`This part cannot be shown: ${error.message}`, "error");
  }
}

tablist.addEventListener("click", (event) => {
  const tab = event.target.closest("[role=tab]");
  if (tab) openTab(tab.id.slice("tab-".length));
});
tablist.addEventListener("keydown", (event) => {
  const tabs = [...tablist.children];
  const at = tabs.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (to === undefined || at < 0) return;
  const tab = tabs[(to + tabs.length) % tabs.length];
  tab.focus();
  openTab(tab.id.slice("tab-".length));
  event.preventDefault();
});
const before = sessionStorage.getItem("psearch-tab");
openTab(byId(`tab-${before}`) ? before : "analysis"); // a reload opens the same tab

channel.open();
