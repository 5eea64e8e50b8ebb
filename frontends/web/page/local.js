// The page of digits without a server: predicts, is corrected and trained in the tab.
import * as ort from "./ort.wasm.min.mjs";
import { Model } from "./fxflow-web.js";

ort.env.wasm.wasmPaths = new URL("./", import.meta.url).href;
ort.env.wasm.numThreads = 1; // more need headers that isolate the page
const ROUNDS = 20;

const panel = document.createElement("section");
panel.innerHTML = `
  <p id="state" role="status">loading …</p>
  <p>It was a <span id="digits"></span></p>
  <p><button id="save">save</button>
     <label>load <input id="file" type="file" accept=".fx"></label>
     <button id="forget">forget</button></p>`;
document.querySelector("main").after(panel);
const state = document.getElementById("state");

let model, image;
const corrections = []; // {image, label}

const bytesOf = (rows) => Uint8Array.from(rows.flat(), (v) => Math.round(255 * v));

async function begin(source) {
  const began = performance.now();
  model = await Model.load(source, { ort });
  await Promise.all(["predict", "tune"].map((name) => model.compile(name)));
  await model.call("predict", { images: new Uint8Array(784) });
  state.textContent = `Ready after ${(performance.now() - began).toFixed(0)} ms: nothing that you draw leaves this page.`;
  state.dataset.ready = "1";
}

window.answer = async (rows) => {
  image = bytesOf(rows);
  return [...(await model.call("predict", { images: image }))["output.probabilities"]];
};

async function correct(label) {
  if (!image) return;
  corrections.push({ image, label });
  const began = performance.now();
  let loss, steps = 0;
  for (let round = 0; round < ROUNDS; ++round)
    for (const known of corrections) {
      const labels = Uint8Array.of(known.label);
      loss = (await model.call("tune", { images: known.image, labels }))["output.loss"][0];
      ++steps;
    }
  const each = (performance.now() - began) / steps;
  state.textContent = `Trained the last layer on ${corrections.length} of your digits: ${steps} steps of ${each.toFixed(1)} ms, loss ${loss.toFixed(3)}.`;
  Object.assign(state.dataset, { trained: corrections.length, each });
  await window.predict();
}

for (let digit = 0; digit < 10; ++digit) {
  const button = document.createElement("button");
  button.textContent = digit;
  button.id = `is-${digit}`;
  button.onclick = () => correct(digit);
  document.getElementById("digits").append(button, " ");
}

document.getElementById("save").onclick = async () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([await model.save()]));
  link.download = "digits.fx";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};
document.getElementById("file").onchange = async ({ target }) => {
  try {
    await begin(await target.files[0].arrayBuffer());
    corrections.length = 0;
    await window.predict();
  } catch (error) {
    state.textContent = `Not loaded: ${error.message}`;
  }
};
document.getElementById("forget").onclick = async () => {
  corrections.length = 0;
  await begin("digits.fx");
  await window.predict();
};

window.page = { bytes: () => model.save(), load: begin };
await begin("digits.fx").catch((error) => { state.textContent = `Not loaded: ${error.message}`; });
