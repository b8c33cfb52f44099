// Runs the trace_processor of the Perfetto UI (WebAssembly) in node. Usage: node FILE FOLDER-OF-THE-UI
// stdin and stdout: messages TraceProcessorRpcStream, each after its size as 32 bits, little-endian.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const folder = process.argv[2];
const read = (url) => {
  const content = fs.readFileSync(path.join(folder, path.basename(url)));
  return content.buffer.slice(content.byteOffset, content.byteOffset + content.length);
};

// The engine loads its WebAssembly as in a worker of a browser: by a synchronous XMLHttpRequest or by fetch.
class FileRequest {
  open(method, url) { this.url = url; }
  setRequestHeader() {}
  send() {
    this.response = read(this.url);
    this.status = 200;
    this.readyState = 4;
    if (this.onload) this.onload();
  }
}

const scope = { location: { href: "http://localhost/", pathname: "/engine_bundle.js" } };
const complain = (...words) => process.stderr.write(words.join(" ") + "\n");
// TypeError and Uint8Array are those of this context, since the engine tells them apart by identity.
const context = {
  self: scope, location: scope.location, XMLHttpRequest: FileRequest,
  WorkerGlobalScope: function () {}, importScripts: () => {},
  console: { log: complain, warn: complain, error: complain },
  fetch: async (url) => ({ ok: true, arrayBuffer: async () => read(url) }),
  setTimeout, clearTimeout, queueMicrotask, performance, crypto: globalThis.crypto,
  TextDecoder, TextEncoder, URL, WebAssembly, TypeError, Error, Uint8Array,
};
context.globalThis = context;
Object.assign(scope, context);
vm.createContext(context);
vm.runInContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"), context);

const port = {
  postMessage: (content) => {
    const size = Buffer.alloc(4);
    size.writeUInt32LE(content.length);
    process.stdout.write(size);
    process.stdout.write(Buffer.from(content));
  },
};

const feed = () => {
  let pending = Buffer.alloc(0);
  process.stdin.on("data", (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= 4 && pending.length >= 4 + pending.readUInt32LE(0)) {
      const end = 4 + pending.readUInt32LE(0);
      port.onmessage({ data: new Uint8Array(pending.subarray(4, end)) });
      pending = pending.subarray(end);
    }
  });
  process.stdin.on("end", () => setTimeout(() => process.exit(0), 50));
};
setTimeout(() => { scope.onmessage({ data: port }); feed(); }, 0);
