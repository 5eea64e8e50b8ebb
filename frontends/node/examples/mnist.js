// Trains a net for MNIST for an epoch, tests it, and saves it.
//
//   python frontends/export_mnist.py build
//   node frontends/node/build.js
//   FXFLOW_PJRT_PLUGIN=$(python -m fxflow.export.plugin) node frontends/node/examples/mnist.js build
"use strict";
const fs = require("node:fs");
const { Runtime } = require("..");

const [BATCH, PIXELS] = [100, 784];
const folder = process.argv[2] || "build";
const read = (name) => new Uint8Array(fs.readFileSync(`${folder}/${name}.u8`));
const model = new Runtime().load(`${folder}/mnist.fx`);

const [images, labels] = [read("train-images"), read("train-labels")];
let sum = 0;
const steps = Math.floor(labels.length / BATCH);
for (let i = 0; i < steps; ++i) {
  const batch = {
    images: images.subarray(i * BATCH * PIXELS, (i + 1) * BATCH * PIXELS),
    labels: labels.subarray(i * BATCH, (i + 1) * BATCH),
  };
  sum += model.call("step", batch)["output.loss"][0];
}

const [unseen, truth] = [read("test-images"), read("test-labels")];
let right = 0;
const count = Math.floor(truth.length / BATCH);
for (let i = 0; i < count; ++i) {
  const found = model.call("predict", { images: unseen.subarray(i * BATCH * PIXELS, (i + 1) * BATCH * PIXELS) });
  found["output.digits"].forEach((digit, j) => (right += digit === truth[i * BATCH + j]));
}
console.log(`loss ${(sum / steps).toFixed(6)}, accuracy ${(right / (count * BATCH)).toFixed(4)}`);
model.save(`${folder}/trained.fx`);
