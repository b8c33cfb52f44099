// A page that costs something, served on port 8080. Its digest comes from the pool of libuv, and a worker
// thread counts prices all the time.
import { pbkdf2 } from "node:crypto";
import { createServer } from "node:http";
import { isMainThread, Worker } from "node:worker_threads";

const rows = () => Array.from({ length: 200 }, (_, item) => ({ item, costs: (item * 17) % 101 }));

if (isMainThread) {
  new Worker(new URL(import.meta.url), { name: "prices" });
  createServer((request, response) => {
    pbkdf2(JSON.stringify(rows()), "salt", 20, 32, "sha256", (error, digest) => {
      response.end(error ? String(error) : digest.toString("hex"));
    });
  }).listen(8080);
} else {
  setInterval(() => rows().sort((one, other) => one.costs - other.costs), 5);
}
