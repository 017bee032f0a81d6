// What the scripts of this folder share: jobs in, results out, one JSON value a line, one job at a time.

import { createInterface } from "node:readline";

export async function answerJobs(read) {
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await read(JSON.parse(line))));
  }
}

// `texts` and `finish` by choice; `truthlens` is the verdict where the client lets it be seen.
export function emptyResult() {
  return { texts: {}, finish: {}, usage: null, chunks: 0, truthlens: null, reasoning: "", tools: "", error: null };
}
