// The forward pass of llama.cpp through node-llama-cpp, loaded: the time until the
// logits of the last position are there.
//   node llama.mjs MODEL IDS.json T REPEATS THREADS
import fs from "node:fs";
import { getLlama } from "node-llama-cpp";

const [modelPath, idsFile, length, repeats, threads] = process.argv.slice(2);
const T = Number(length);
const ids = JSON.parse(fs.readFileSync(idsFile, "utf8")).slice(0, T);
const llama = await getLlama({ build: "never", gpu: false, maxThreads: Number(threads), logLevel: "error" });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ contextSize: T + 16, batchSize: T, threads: Number(threads) });
const sequence = context.getSequence();
const seconds = [];
for (let i = 0; i <= Number(repeats); i++) {
    await sequence.clearHistory();
    const input = ids.map((id, at) => at === T - 1 ? [id, { generateNext: { probabilities: true } }] : id);
    const start = performance.now();
    await sequence.controlledEvaluate(input);
    if (i > 0) seconds.push((performance.now() - start) / 1000);
}
console.log(JSON.stringify({ what: "forward", seconds }));
process.exit(0);
