// Calls and trains functions of a .fx file that has them as ONNX models; see index.d.ts.
// The format of files is described in fxflow/export/files.py and tables.py.

const HEAD = 48; // signature, version, length of the header, its digest
const NONE = 0xffffffff;
const MARK = [0x89, 0x46, 0x58, 13, 10, 0x1a, 10, 0];
// ONNX Runtime's name and the typed array of each dtype, by its number in the table.
const KINDS = {
  1: ["bool", Uint8Array], 2: ["int8", Int8Array], 3: ["int16", Int16Array],
  4: ["int32", Int32Array], 5: ["int64", BigInt64Array], 6: ["uint8", Uint8Array],
  7: ["uint16", Uint16Array], 8: ["uint32", Uint32Array], 9: ["uint64", BigUint64Array],
  10: ["float16", Uint16Array], 11: ["float32", Float32Array], 12: ["float64", Float64Array],
};

export class FxflowError extends Error {
  name = "FxflowError";
}

function refuse(message) {
  throw new FxflowError(message);
}

const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const digest = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

// -- files -------------------------------------------------------------------------

/** Reads numbers and texts of a table; what does not fit is an error. */
class Cursor {
  constructor(bytes, where) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.bytes = bytes;
    this.where = where;
    this.at = 0;
  }
  take(size) {
    if (size > this.bytes.length - this.at) refuse(`${this.where} is damaged: its table`);
    this.at += size;
    return this.at - size;
  }
  u8() { return this.view.getUint8(this.take(1)); }
  u32() { return this.view.getUint32(this.take(4), true); }
  u64() { return Number(this.view.getBigUint64(this.take(8), true)); }
  text() {
    const size = this.view.getUint16(this.take(2), true);
    const at = this.take(size);
    return new TextDecoder().decode(this.bytes.subarray(at, at + size));
  }
  digest() {
    const at = this.take(32);
    return this.bytes.slice(at, at + 32);
  }
  many(read) {
    const count = this.u32();
    if (count > this.bytes.length) refuse(`${this.where} is damaged: its table`);
    return Array.from({ length: count }, read);
  }
  type() {
    const found = { name: this.text(), type: this.text(), dtype: this.u8(), bytes: this.u64() };
    const rank = this.u8();
    return { ...found, shape: Array.from({ length: rank }, () => this.u64()) };
  }
}

function readTable(bytes, where) {
  const c = new Cursor(bytes, where);
  if (c.u32() !== 1) refuse(`${where}: its table is of a version that this package does not read`);
  c.text();
  const [beside, start, size, sha256] = [c.text(), c.u64(), c.u64(), c.digest()];
  const params = c.many(() => ({ ...c.type(), start: c.u64(), size: c.u64() }));
  const functions = c.many(() => {
    const name = c.text();
    c.take(16 + 32 + 4 + 1);
    c.many(() => c.text());
    const inputs = c.many(() => {
      const param = c.u32();
      c.u8();
      return { param, ...c.type() };
    });
    return { name, inputs, outputs: c.many(() => ({ param: c.u32(), ...c.type() })) };
  });
  return { held: { beside, start, size, sha256 }, params, functions };
}

/** Returns the header, the table and the parts of a file, after checking their digests. */
async function readFile(bytes, where) {
  if (bytes.length < 2 * HEAD || MARK.some((byte, i) => bytes[i] !== byte)) refuse(`${where} is not a .fx file`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [version, length] = [view.getUint32(8, true), view.getUint32(12, true)];
  if (version !== 1) refuse(`${where} has format version ${version}; this package reads version 1`);
  const header = bytes.subarray(HEAD, HEAD + length);
  if (hex(await digest(header)) !== hex(bytes.subarray(16, HEAD))) refuse(`${where} is damaged: the digest of the header differs`);
  const parts = {};
  for (const part of JSON.parse(new TextDecoder().decode(header)).parts) {
    const data = bytes.subarray(part.start, part.start + part.size);
    const needed = part.name === "table" || part.name === "params" || part.name.startsWith("onnx:");
    if (needed && hex(await digest(data)) !== part.sha256) refuse(`${where} is damaged: the digest of ${part.name} differs`);
    parts[part.name] = { ...part, data };
  }
  if (!parts.table) refuse(`${where} was written by an older fxflow: save it again`);
  const table = readTable(parts.table.data.subarray(0, -HEAD), where);
  if (table.held.beside) refuse(`${where}: its parameters are in a separate file, ${table.held.beside}: save them in one file`);
  for (const { start, size, name } of table.params)
    if (start < table.held.start || start + size > table.held.start + table.held.size || start + size > bytes.length)
      refuse(`${where} is damaged: ${name}`);
  return { length, parts, table };
}

// -- models ------------------------------------------------------------------------

export class Model {
  static async load(source, { ort, webgpu = false, verbose = false } = {}) {
    if (!ort) refuse("Model.load needs { ort }: the module onnxruntime-web");
    let bytes = source, where = "the file";
    if (typeof source === "string" || source instanceof URL) {
      where = String(source);
      const answer = await fetch(source);
      if (!answer.ok) refuse(`${where}: ${answer.status} ${answer.statusText}`);
      bytes = await answer.arrayBuffer();
    }
    bytes = new Uint8Array(bytes.buffer ? bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) : bytes.slice(0));
    const file = await readFile(bytes, where);
    return new Model(bytes, file, where, { ort, webgpu, verbose });
  }

  #bytes; #file; #where; #options; #sessions = {}; #state; #turn = Promise.resolve();

  constructor(bytes, file, where, options) {
    Object.assign(this, { functions: {}, params: file.table.params.map(own) });
    [this.#bytes, this.#file, this.#where, this.#options] = [bytes, file, where, options];
    for (const { name, inputs, outputs } of file.table.functions)
      if (file.parts[`onnx:${name}`])
        this.functions[name] = { inputs: inputs.filter(free).map(own), outputs: outputs.filter(free).map(own) };
    this.#state = file.table.params.map((type) => this.#tensor(type, arrayAt(type, bytes)));
  }

  #tensor(type, data) {
    const [kind] = KINDS[type.dtype] || refuse(`${type.name}: browsers have no ${type.type}`);
    return new this.#options.ort.Tensor(kind, data, type.shape);
  }

  async #session(name) {
    const part = this.#file.parts[`onnx:${name}`];
    if (!part) refuse(`${this.#where} has no function ${name} as ONNX; it has ${Object.keys(this.functions).join(", ") || "none"}: save it with onnx=("${name}",)`);
    const { ort, webgpu, verbose } = this.#options;
    this.#sessions[name] ??= ort.InferenceSession.create(part.data, {
      executionProviders: webgpu ? ["webgpu", "wasm"] : ["wasm"],
      logSeverityLevel: verbose ? 2 : 3,
      ...(webgpu ? { preferredOutputLocation: "gpu-buffer" } : {}),
    });
    return this.#sessions[name];
  }

  /** Prepares a function, which its first call does otherwise. */
  async compile(name) {
    await this.#session(name);
  }

  /** One call at a time: each sees the state that the one before it left. */
  call(name, inputs = {}) {
    const run = this.#turn.then(() => this.#call(name, inputs));
    this.#turn = run.catch(() => {});
    return run;
  }

  async #call(name, given) {
    const session = await this.#session(name);
    const { inputs, outputs } = this.#file.table.functions.find((f) => f.name === name);
    const mine = inputs.filter(free);
    for (const key of Object.keys(given))
      if (!mine.some((type) => type.name === key)) refuse(`${name} has no argument ${key}; it has ${mine.map((t) => t.name).join(", ") || "none"}`);
    const feeds = {};
    inputs.forEach((type, i) => {
      feeds[session.inputNames[i]] = free(type) ? this.#tensor(type, checked(name, type, given)) : this.#state[type.param];
    });
    const made = await session.run(feeds);
    const results = {};
    for (const [i, type] of outputs.entries()) {
      const tensor = made[session.outputNames[i]];
      if (free(type)) results[type.name] = await tensor.getData();
      else {
        this.#state[type.param].dispose?.();
        this.#state[type.param] = tensor;
      }
    }
    return results;
  }

  #index(name) {
    const i = this.params.findIndex((type) => type.name === name);
    return i < 0 ? refuse(`there is no parameter ${name}; the file has ${this.params.map((type) => type.name).join(", ") || "none"}`) : i;
  }

  async get(name) {
    return (await this.#state[this.#index(name)].getData()).slice();
  }

  set(name, data) {
    const i = this.#index(name);
    this.#state[i] = this.#tensor(this.params[i], checked("set", this.params[i], { [name]: data }));
  }

  /** The bytes of the file with the present parameters. */
  async save() {
    await this.#turn;
    const bytes = this.#bytes.slice();
    const { length, parts, table } = this.#file;
    const { start, size, sha256 } = table.held;
    for (const [i, type] of table.params.entries()) {
      const data = await this.#state[i].getData();
      bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), type.start);
    }
    const after = await digest(bytes.subarray(start, start + size));
    const last = parts.table.start;
    const tableBytes = bytes.subarray(last);
    const at = indexOf(tableBytes, sha256);
    if (size) tableBytes.set(after, at);
    tableBytes.set(await digest(tableBytes.subarray(0, -HEAD)), tableBytes.length - HEAD);
    const header = bytes.subarray(HEAD, HEAD + length);
    const write = (old, now) => header.set(new TextEncoder().encode(now), indexOf(header, new TextEncoder().encode(old)));
    if (size) write(hex(sha256), hex(after));
    write(parts.table.sha256, hex(await digest(tableBytes)));
    bytes.set(await digest(header), 16);
    return bytes;
  }
}

const free = (type) => type.param === NONE;
const own = ({ name, type, dtype, shape, bytes }) => ({ name, type, dtype, shape, bytes });

function arrayAt(type, bytes) {
  const [, kind] = KINDS[type.dtype] || refuse(`${type.name}: browsers have no ${type.type}`);
  return new kind(bytes.slice(type.start, type.start + type.size).buffer);
}

function checked(where, type, given) {
  if (!(type.name in given)) refuse(`${where}: ${type.name} ${type.type} is missing`);
  const [, kind] = KINDS[type.dtype] || refuse(`${type.name}: browsers have no ${type.type}`);
  const value = given[type.name];
  const data = typeof value === "number" && type.shape.length === 0 ? new kind([value]) : value;
  if (!(data instanceof kind) || data.byteLength !== type.bytes)
    refuse(`${where}: ${type.name} is ${type.type}: expected ${kind.name} of ${type.bytes / kind.BYTES_PER_ELEMENT}, got ${data?.constructor?.name} of ${data?.length}`);
  return data;
}

function indexOf(bytes, wanted) {
  for (let i = 0; i + wanted.length <= bytes.length; ++i) {
    let j = 0;
    while (j < wanted.length && bytes[i + j] === wanted[j]) ++j;
    if (j === wanted.length) return i;
  }
  return refuse("the file is damaged: it lacks a digest");
}
