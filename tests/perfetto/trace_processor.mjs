// Perfetto's own trace processor, compiled to WebAssembly, behind the HTTP endpoints that the `perfetto` Python client speaks.
// usage: node trace_processor.mjs ENGINE_BUNDLE.js WASM_FOLDER    prints "listening PORT"; loopback only, ends when stdin closes.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const [bundle, folder] = process.argv.slice(2);
const local = (url) => fs.readFileSync(path.join(folder, path.basename(String(url))));

// The bundle is a web worker: it wants a worker's globals, and must not see Node's, or its loader takes another way.
const self = {location: {href: `file://${folder}/`}};
globalThis.self = self;
globalThis.WorkerGlobalScope = function () {};
globalThis.fetch = async (url) => new Response(local(url), {headers: {'content-type': 'application/wasm'}});
globalThis.XMLHttpRequest = self.XMLHttpRequest = class {
  open(_method, url) { this.url = url; }
  send() {
    const bytes = local(this.url);
    this.status = 200;
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    this.onload?.();
  }
};
new Function('process', 'require', 'module', 'exports', 'window', 'document', fs.readFileSync(bundle, 'utf8')).call(globalThis);

// Protobuf, as far as the remote procedure calls need it.
function varint(value) {
  const out = [];
  for (value = BigInt(value); value > 127n; value >>= 7n) out.push(Number(value & 127n) | 128);
  return Buffer.from([...out, Number(value)]);
}
const bytesField = (number, bytes) => Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
const intField = (number, value) => Buffer.concat([varint(number * 8), varint(value)]);

function readVarint(buffer, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    if (at >= buffer.length) return null;
    const byte = buffer[at++];
    value |= BigInt(byte & 127) << shift;
    if (!(byte & 128)) return [value, at];
  }
}

function* fields(buffer) {
  for (let at = 0; at < buffer.length; ) {
    let tag, value;
    [tag, at] = readVarint(buffer, at);
    const wire = Number(tag & 7n);
    if (wire === 0) {
      [value, at] = readVarint(buffer, at);
    } else {
      let length = wire === 1 ? 8 : 4;
      if (wire === 2) { [length, at] = readVarint(buffer, at); length = Number(length); }
      value = buffer.subarray(at, at + length);
      at += length;
    }
    yield [Number(tag >> 3n), value];
  }
}

function field(buffer, number) {
  for (const [n, value] of fields(buffer)) if (n === number) return value;
}

// TraceProcessorRpc: seq 1, request 2, fatal_error 5.
const METHODS = {  // endpoint: method, field of its argument, field of its result
  '/parse': [1, 101, 201], '/notify_eof': [2, 0, 0], '/query': [3, 103, 203], '/status': [10, 0, 210], '/reset': [11, 0, 0],
};
const channel = new MessageChannel();
self.onmessage({data: channel.port1});
let received = Buffer.alloc(0);
let sequence = 1;
let listener;
channel.port2.onmessage = (event) => {
  received = Buffer.concat([received, Buffer.from(event.data)]);
  for (let size; received.length && (size = readVarint(received, 1)) && received.length >= size[1] + Number(size[0]); ) {
    const end = size[1] + Number(size[0]);
    const message = received.subarray(size[1], end);
    received = received.subarray(end);
    listener(message);
  }
};

// A query's answer comes in batches; the last one says so (QueryResult.batch 3, CellsBatch.is_last_batch 6).
function isLast(message, method) {
  const result = method === 3 && field(message, 203);
  if (!result) return true;
  for (const [n, batch] of fields(result)) if (n === 3 && field(batch, 6) === 1n) return true;
  return false;
}

let queue = Promise.resolve();
const call = ([method, argument, result], body) => (queue = queue.then(() => new Promise((resolve, reject) => {
  const parts = [];
  listener = (message) => {
    const fatal = field(message, 5);
    if (fatal) return reject(new Error(String(fatal)));
    parts.push(Buffer.from(result && field(message, result) || []));
    if (isLast(message, method)) resolve(Buffer.concat(parts));
  };
  const request = [intField(1, sequence++), intField(2, method), ...(argument ? [bytesField(argument, body)] : [])];
  channel.port2.postMessage(new Uint8Array(bytesField(1, Buffer.concat(request))));
})));

const server = http.createServer(async (request, response) => {
  const method = METHODS[request.url.split('?')[0]];
  const body = [];
  for await (const part of request) body.push(part);
  try {
    if (!method) return response.writeHead(404).end();
    const answer = await call(method, Buffer.concat(body));
    response.writeHead(200, {'content-type': 'application/x-protobuf', 'content-length': answer.length}).end(answer);
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
});
server.keepAliveTimeout = 600000;
server.listen(0, '127.0.0.1', () => console.log(`listening ${server.address().port}`));
process.stdin.on('end', () => process.exit(0)).resume();
