// Asks a model from Node, over HTTP and gRPC, by clients that are made from the server's
// own descriptions when they start.
//
//   npm install @grpc/grpc-js @grpc/proto-loader openapi-client-axios axios
//   python -m fxflow.serve.protocol.proto > inference.proto
//   node client.mjs http://127.0.0.1:8000 127.0.0.1:8001 inference.proto MODEL 1 2 3
import { createRequire } from "node:module";
import path from "node:path";

// Packages of the current folder, or of NODE_PACKAGES.
const require = createRequire(path.join(process.env.NODE_PACKAGES || process.cwd(), "here.js"));
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");
const { OpenAPIClientAxios } = require("openapi-client-axios");

const [http, address, proto, model, ...row] = process.argv.slice(2);
const numbers = row.map(Number);

const api = new OpenAPIClientAxios({ definition: `${http}/openapi.json`, axiosConfigDefaults: { baseURL: http } });
const client = await api.init();
const { data } = await client[`predict_${model}`](null, [numbers]);
console.log("http", JSON.stringify(data));

const { inference } = grpc.loadPackageDefinition(loader.loadSync(proto, { keepCase: true, longs: Number }));
const service = new inference.GRPCInferenceService(address, grpc.credentials.createInsecure());
const ask = (method, request) =>
  new Promise((done, failed) =>
    service[method](request, { deadline: Date.now() + 30_000 }, (error, answer) => (error ? failed(error) : done(answer))),
  );
const [given] = (await ask("ModelMetadata", { name: model })).inputs;
const answer = await ask("ModelInfer", {
  model_name: model,
  inputs: [{ name: given.name, datatype: given.datatype, shape: [1, numbers.length], contents: { fp32_contents: numbers } }],
});
const bytes = answer.raw_output_contents[0];
const outputs = Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
console.log("grpc", outputs.join(" "));
service.close();
