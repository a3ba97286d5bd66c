// Ids of llama.cpp: reads a JSON list of texts, writes a JSON list of lists.
//
//   npm i -E --ignore-scripts node-llama-cpp@3.21.1
//   node llama.mjs FILE.gguf <texts.json >ids.json
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const require = createRequire(process.cwd() + "/");
const {getLlama} = await import(pathToFileURL(require.resolve("node-llama-cpp")));
const parts = [];
for await (const part of process.stdin) parts.push(part);
const texts = JSON.parse(Buffer.concat(parts).toString("utf8"));
const llama = await getLlama({build: "never", gpu: false, logLevel: "error"});
const model = await llama.loadModel({modelPath: process.argv[2], vocabOnly: true});
const ids = JSON.stringify(texts.map((text) => [model.tokenize(text, false), model.tokenize(text, true)]));
process.stdout.write(ids, () => process.exit(0));
