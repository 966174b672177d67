// The connection to the server. It reconnects when it is lost.
export class Stream {
  constructor(on) {
    this.on = on;
    this.open();
  }

  open() {
    const url = new URL("stream", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    this.socket = new WebSocket(url);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => this.on.trouble("");
    this.socket.onmessage = e => this.read(e.data);
    this.socket.onclose = () => {
      this.on.state("lost");
      setTimeout(() => this.open(), 1000);
    };
  }

  read(data) {
    if (data instanceof ArrayBuffer) {
      this.on.picture(data);
      this.on.state("live");
      return;
    }
    const m = JSON.parse(data);
    if ("trouble" in m) this.on.trouble(m.trouble);
    else this.on.figures(m);
  }

  send(order) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(order));
  }
}
