// Runs in Node, on the file that FXFLOW_TEST_MODEL names, with the folder of
// onnxruntime-web in FXFLOW_ORT.
import assert from "node:assert";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { FxflowError, Model } from "../index.js";

const ort = await import(pathToFileURL(path.join(process.env.FXFLOW_ORT, "dist", "ort.node.min.mjs")));
const bytes = fs.readFileSync(process.env.FXFLOW_TEST_MODEL);
const says = (text) => (error) => error instanceof FxflowError && error.message.includes(text);

test("training, parameters, saving", async () => {
  const model = await Model.load(bytes, { ort });
  assert.deepStrictEqual(Object.keys(model.functions), ["step", "swapped"]);
  assert.strictEqual(model.functions.step.inputs[0].type, "f32[4,3]");
  const x = Float32Array.from({ length: 12 }, (_, i) => i / 11);
  let y;
  for (let i = 0; i < 100; ++i) y = (await model.call("step", { x })).output[0];
  console.log(`numbers ${y} ${[...(await model.get("w"))].join(" ")}`);
  const saved = await model.save();
  fs.writeFileSync(`${process.env.FXFLOW_TEST_MODEL}.saved`, saved);
  const again = await Model.load(saved, { ort });
  assert.deepStrictEqual(await again.get("w"), await model.get("w"));
  again.set("w", new Float32Array([5, 6, 7]));
  assert.deepStrictEqual([...(await again.get("w"))], [5, 6, 7]);
});

test("calls in turn", async () => {
  const model = await Model.load(bytes, { ort });
  const x = new Float32Array(12);
  await Promise.all(Array.from({ length: 5 }, () => model.call("swapped", { x })));
  assert.deepStrictEqual([...(await model.get("w"))], [6, 6, 6]);
});

test("refusals", async () => {
  const model = await Model.load(bytes, { ort });
  const x = new Float32Array(12);
  await assert.rejects(model.call("step", { z: x }), says("step has no argument z; it has x"));
  await assert.rejects(model.call("step", {}), says("step: x f32[4,3] is missing"));
  await assert.rejects(model.call("step", { x: new Float32Array(5) }), says("expected Float32Array of 12, got Float32Array of 5"));
  await assert.rejects(model.call("stop"), says("has no function stop as ONNX; it has step, swapped"));
  await assert.rejects(model.get("v"), says("there is no parameter v"));
  await assert.rejects(Model.load(bytes, {}), says("onnxruntime-web"));
  // It still works.
  assert.strictEqual((await model.call("step", { x })).output.length, 1);
  for (let i = 0; i < 200; ++i) {
    const damaged = Uint8Array.from(bytes);
    damaged[(i * 7919) % damaged.length] ^= 1 << i % 8;
    const cut = bytes.subarray(0, (i * 104729) % bytes.length);
    await assert.rejects(Model.load(cut, { ort }));
    await Model.load(damaged, { ort }).catch((error) => assert.ok(error instanceof FxflowError, error));
  }
});
