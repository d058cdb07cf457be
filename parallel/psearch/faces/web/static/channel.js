// The page's end of the WebSocket. Everything on the page talks to the server, and to other parts of the page, by it.
//
//   channel.send(type, payload)            to the server; waits for the connection if there is none yet
//   channel.on(type, handler)              handler(payload, type) for each message of that type, or of all: "*"; gives a
//                                          function that ends it
//   channel.announce(type, payload)        the same handlers, without the server: from one part of the page to another
//
// What the page announces itself: "channel.open"; "channel.closed" {reason, code, final}; "page.open" {tab} to open a
// tab, "page.opened" {tab} when one is open; "board.show" {fen, last, title} to see a position on the board that is not
// in the game, the moves before it in UCI notation, what it is; "board.hide" ends that. What stands on the board comes
// from the server as "board.position" {id, fen, turn, ...}.

const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 5000;
export const OPENED_ELSEWHERE = 4001; // another tab has taken over this board
const FINAL = [1008, OPENED_ELSEWHERE]; // 1008: the token is not that of this server, or there are too many tabs: both
// may change, as soon as the server's address has been opened in another tab of this browser
const MOST_WAITING = 100;

export class Channel {
  constructor(address) {
    this.address = address;
    this.handlers = new Map();
    this.waiting = []; // what was said before there was a connection
    this.retryMs = FIRST_RETRY_MS;
    this.socket = null;
    this.isOpen = false;
  }

  open() {
    const socket = new WebSocket(this.address);
    this.socket = socket;
    socket.addEventListener("open", () => {
      this.isOpen = true;
      this.retryMs = FIRST_RETRY_MS;
      this.announce("channel.open", {});
      for (const text of this.waiting.splice(0)) socket.send(text);
    });
    socket.addEventListener("message", (event) => {
      const message = JSON.parse(event.data);
      this.announce(message.type, message.payload ?? {});
    });
    socket.addEventListener("close", (event) => {
      this.isOpen = false;
      const final = FINAL.includes(event.code);
      this.announce("channel.closed", { reason: event.reason, code: event.code, final });
      if (event.code === OPENED_ELSEWHERE) return;
      setTimeout(() => this.open(), final ? LONGEST_RETRY_MS : this.retryMs);
      this.retryMs = Math.min(2 * this.retryMs, LONGEST_RETRY_MS);
    });
  }

  send(type, payload = {}) {
    const text = JSON.stringify({ type, payload });
    if (this.isOpen) this.socket.send(text);
    else if (this.waiting.length < MOST_WAITING) this.waiting.push(text);
  }

  on(type, handler) {
    if (!this.handlers.has(type)) this.handlers.set(type, new Set());
    this.handlers.get(type).add(handler);
    return () => this.handlers.get(type).delete(handler);
  }

  announce(type, payload) {
    for (const name of [type, "*"]) {
      for (const handler of this.handlers.get(name) ?? []) handler(payload, type);
    }
  }
}
