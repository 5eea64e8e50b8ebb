// Runs on the file that FXFLOW_TEST_MODEL names: step(state, x: f32[4,3]).
"use strict";
const assert = require("node:assert");
const { test } = require("node:test");
const { Runtime, FxflowError } = require("..");

const says = (code, text) => (error) =>
  error instanceof FxflowError && error.code === code && error.message.includes(text);

test("absent plug-ins and files", () => {
  assert.throws(() => new Runtime("/nowhere.so"), says("BAD_PLUGIN", "/nowhere.so"));
  assert.throws(() => new Runtime(null, { cpu_device_count: "x" }), says("BAD_ARGUMENT", "is not a number"));
  const runtime = new Runtime(null, { cpu_device_count: 3 });
  assert.ok(runtime.deviceCount === 3 && runtime.platform === "cpu");
  assert.throws(() => runtime.load(process.env.FXFLOW_TEST_MODEL, 3), says("BAD_ARGUMENT", "device 3 of 3"));
  assert.throws(() => runtime.load("/nowhere.fx"), says("BAD_FILE", "/nowhere.fx cannot be read"));
});

test("calls and refusals", () => {
  const model = new Runtime().load(process.env.FXFLOW_TEST_MODEL);
  assert.deepStrictEqual(Object.keys(model.functions), ["step", "swapped"]);
  assert.strictEqual(model.functions.step.inputs[0].type, "f32[4,3]");
  const x = new Float32Array(12).fill(1);
  for (let i = 0; i < 3; ++i) assert.strictEqual(model.call("step", { x }).output.length, 1);
  assert.deepStrictEqual(model.call("step", { x }, []), {});
  const w = model.getParam("w");
  assert.ok(w[0] < 1 && w[0] === w[2]);
  model.setParam("w", new Float32Array([5, 6, 7]));
  assert.deepStrictEqual([...model.getParam("w")], [5, 6, 7]);
  for (const [inputs, text] of [
    [{ x: new Float32Array(16) }, "x is f32[4,3]: expected Float32Array of 12, got Float32Array of 16"],
    [{ x: new Int32Array(12) }, "expected Float32Array of 12, got Int32Array of 12"],
    [{ z: x }, "step has no argument z; it has x"],
    [{}, "step: x f32[4,3] is missing"],
  ])
    assert.throws(() => model.call("step", inputs), says("BAD_ARGUMENT", text));
  assert.throws(() => model.call("stop"), says("BAD_ARGUMENT", "the file has step, swapped"));
  assert.throws(() => model.getParam("v"), says("BAD_ARGUMENT", "there is no parameter v"));
  class Liar extends Float32Array {
    get byteLength() { return 48; }
  }
  assert.throws(() => model.call("step", { x: new Liar(3) }), { code: "BAD_ARGUMENT" });
  for (const path of ["a\0b", "", undefined, 3])
    assert.throws(() => model.save(path), says("BAD_ARGUMENT", "save: "));
  assert.throws(() => new Runtime().load(process.env.FXFLOW_TEST_MODEL, "1"), says("BAD_ARGUMENT", "device 1 is not"));
  model.close();
  assert.throws(() => model.call("step", { x }), says("BAD_ARGUMENT", "the model is closed"));
});
