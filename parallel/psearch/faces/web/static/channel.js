// The page's end of the WebSocket, through which its parts talk to the server and to each other.
//
//   channel.send(type, payload)            to the server; waits for the connection if there is none yet
//   channel.on(type, handler)              calls handler(payload, type) for each message of a type, or of all ("*");
//                                          returns a function that ends this
//   channel.announce(type, payload)        to the handlers on this page, without the server
//
// Announcements within the page: "channel.open"; "channel.closed" {reason, code, final}; "page.open" {tab} to open a tab,
// "page.opened" {tab} when it is open; "board.show" {fen, last, title} to show a position that is not in the game, with
// its last moves in UCI notation, a title and further arrows {move, brush}; "board.hide" to end that. The server sends the position on the board as
// "board.position" {id, fen, turn, ...}.

const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 5000;
export const OPENED_ELSEWHERE = 4001; // another tab has taken over this board
// 1008: wrong token, or too many tabs. It is retried slowly, since the user may open the server's address in another tab.
const FINAL = [1008, OPENED_ELSEWHERE];
const MOST_WAITING = 100;
const LONGEST = 1 << 20; // bytes of a message that the server takes (messages.py)

export class Channel {
  constructor(address) {
    this.address = address;
    this.handlers = new Map();
    this.waiting = []; // messages sent before there was a connection
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
    if (new Blob([text]).size > LONGEST) {
      this.announce(`${type.split(".")[0]}.error`, { text: "this is longer than 1 MiB, more than the server takes at once" });
    } else if (this.isOpen) this.socket.send(text);
    else if (this.waiting.length < MOST_WAITING) this.waiting.push(text);
  }

  on(type, handler) {
    if (!this.handlers.has(type)) this.handlers.set(type, new Set());
    this.handlers.get(type).add(handler);
    return () => this.handlers.get(type).delete(handler);
  }

  announce(type, payload) {
    for (const name of [type, "*"]) {
      for (const handler of this.handlers.get(name) ?? []) {
        try { handler(payload, type); } catch (error) { reportError(error); } // the other parts of the page go on
      }
    }
  }
}
