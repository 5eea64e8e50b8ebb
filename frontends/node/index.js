// Calls and trains programs that fxflow exported, over the C front end; see index.d.ts.
"use strict";
const path = require("node:path");
const native = require(path.join(process.env.FXFLOW_NODE_BUILD || path.join(__dirname, "build"), "fxflow.node"));

// The typed array of each dtype, by its number in fxflow.h. Others are given as bytes.
const ARRAYS = {
  1: Uint8Array, 2: Int8Array, 3: Int16Array, 4: Int32Array, 5: BigInt64Array,
  6: Uint8Array, 7: Uint16Array, 8: Uint32Array, 9: BigUint64Array,
  11: Float32Array, 12: Float64Array, 14: Float32Array, 15: Float64Array,
};

class FxflowError extends Error {
  constructor(message, code) {
    super(message);
    this.name = "FxflowError";
    this.code = code;
  }
}

function told(run) {
  try {
    return run();
  } catch (error) {
    throw error.code && !(error instanceof FxflowError) ? new FxflowError(error.message, error.code) : error;
  }
}

function refuse(message) {
  throw new FxflowError(message, "BAD_ARGUMENT");
}

function pathOf(where, file) {
  if (typeof file !== "string" || !file || file.includes("\0")) refuse(`${where}: ${JSON.stringify(file)} is not a path`);
  return file;
}

function arrayOf(where, type, value) {
  const kind = ARRAYS[type.dtype] || Uint8Array;
  const data = typeof value === "number" && type.shape.length === 0 ? new kind([value]) : value;
  if (!(data instanceof kind) || data.byteLength !== type.bytes) {
    const given = data && data.constructor ? `${data.constructor.name} of ${data.length}` : String(data);
    refuse(`${where}: ${type.name} is ${type.type}: expected ${kind.name} of ${type.bytes / kind.BYTES_PER_ELEMENT}, got ${given}`);
  }
  return { ...type, data };
}

function room(type) {
  const kind = ARRAYS[type.dtype] || Uint8Array;
  return { ...type, data: new kind(type.bytes / kind.BYTES_PER_ELEMENT) };
}

class Runtime {
  #held;
  constructor(plugin = undefined, options = {}) {
    const texts = Object.entries(options).map(([name, value]) => `${name}=${value}`);
    this.#held = told(() => native.open(plugin, texts));
    Object.assign(this, native.about(this.#held));
  }
  load(file, device = 0) {
    if (!Number.isInteger(device)) refuse(`load: the device ${device} is not an integer`);
    return new Model(told(() => native.load(this.#held, pathOf("load", file), device)));
  }
}

class Model {
  #held;
  constructor(held) {
    this.#held = held;
    Object.assign(this, native.describe(held));
  }
  #signature(name) {
    const known = Object.keys(this.functions);
    if (!known.includes(name)) refuse(`there is no function ${name}; the file has ${known.join(", ")}`);
    return this.functions[name];
  }
  call(name, inputs = {}, wanted = undefined) {
    const { inputs: ins, outputs: outs } = this.#signature(name);
    for (const given of Object.keys(inputs))
      if (!ins.some((type) => type.name === given))
        refuse(`${name} has no argument ${given}; it has ${ins.map((type) => type.name).join(", ") || "none"}`);
    const arrays = ins.map((type) => {
      if (!(type.name in inputs)) refuse(`${name}: ${type.name} ${type.type} is missing`);
      return arrayOf(name, type, inputs[type.name]);
    });
    for (const given of wanted || [])
      if (!outs.some((type) => type.name === given))
        refuse(`${name} has no result ${given}; it has ${outs.map((type) => type.name).join(", ") || "none"}`);
    const results = outs.filter((type) => !wanted || wanted.includes(type.name)).map(room);
    told(() => native.call(this.#held, name, arrays, results));
    return Object.fromEntries(results.map((array) => [array.name, array.data]));
  }
  #param(name) {
    return this.params.find((type) => type.name === name) || refuse(`there is no parameter ${name}; the file has ${this.params.map((type) => type.name).join(", ") || "none"}`);
  }
  getParam(name) {
    const array = room(this.#param(name));
    told(() => native.param(this.#held, array, false));
    return array.data;
  }
  setParam(name, data) {
    const array = arrayOf("setParam", this.#param(name), data);
    told(() => native.param(this.#held, array, true));
  }
  save(file) {
    told(() => native.save(this.#held, pathOf("save", file)));
  }
  close() {
    native.close(this.#held);
  }
}

module.exports = { Runtime, Model, FxflowError };
