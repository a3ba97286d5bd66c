// Prints how far llama.cpp's log-probabilities are from those that llamacpp.py
// wrote, over tokens with a probability above 1e-4.
import fs from "node:fs";
import path from "node:path";
import {getLlama} from "node-llama-cpp";

const folder = process.argv[2];
const llama = await getLlama({build: "never", gpu: false, logLevel: "error"});
const everything = {temperature: 1, topK: 0, topP: 1, minP: 0};
for (const file of fs.readdirSync(folder).filter((f) => f.endsWith(".gguf")).sort()) {
  const modelPath = path.join(folder, file);
  const want = JSON.parse(fs.readFileSync(modelPath.replace(/gguf$/, "json")));
  const model = await llama.loadModel({modelPath, gpuLayers: 0});
  const context = await model.createContext({contextSize: 64, flashAttention: false,
    experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32"});
  const last = want.ids.length - 1;
  const input = want.ids.map((id, i) => i < last ? id : [id, {generateNext: {probabilities: true, options: everything}}]);
  const out = await context.getSequence().controlledEvaluate(input);
  let worst = 0;
  for (const [id, p] of out[last].next.probabilities)
    if (p > 1e-4) worst = Math.max(worst, Math.abs(Math.log(p) - want.logprobs[id]));
  console.log(file, worst.toExponential(1));
  await context.dispose();
  await model.dispose();
}
process.exit(0);
