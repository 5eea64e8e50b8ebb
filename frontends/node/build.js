// Compiles addon.c and the C front end with the system's C compiler (CC). Node's headers
// come with Node, or with `npm install node-api-headers`.
"use strict";
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

function headers() {
  const near = path.resolve(path.dirname(process.execPath), "..", "include", "node");
  const places = [near, "/usr/include/node", "/usr/local/include/node"];
  try {
    places.unshift(require("node-api-headers").include_dir);
  } catch {} // not installed
  const found = places.find((place) => fs.existsSync(path.join(place, "node_api.h")));
  if (!found) throw new Error("node_api.h is missing: npm install node-api-headers");
  return found;
}

const c = path.resolve(__dirname, "..", "c");
const out = process.env.FXFLOW_NODE_BUILD || path.join(__dirname, "build");
fs.mkdirSync(out, { recursive: true });
const shared = process.platform === "darwin" ? ["-bundle", "-undefined", "dynamic_lookup"] : ["-shared"];
execFileSync(
  process.env.CC || "cc",
  ["-std=c11", "-O2", "-fPIC", "-Wall", "-Wextra", ...shared, `-I${headers()}`, `-I${c}`,
    path.join(__dirname, "addon.c"), path.join(c, "fxflow.c"), "-ldl", "-o",
    path.join(out, "fxflow.node")],
  { stdio: "inherit" },
);
