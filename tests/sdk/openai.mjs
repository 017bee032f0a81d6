// Reads streams with the openai package: node openai.mjs BASE_URL, one job (JSON) a line on stdin, one result a line.
// Deliberately no judgement here: what a stream should have said is for the test to say.

import OpenAI from "openai";
import { answerJobs, emptyResult } from "./jobs.mjs";

const baseURL = process.argv[2];

await answerJobs(async ({ api, body, headers, helper }) => {
  const client = new OpenAI({ baseURL, apiKey: "test-key", maxRetries: 0, defaultHeaders: headers });
  const result = emptyResult();
  try {
    if (helper) {
      await readWithHelper(client, body, result);
    } else {
      const resource = api === "chat" ? client.chat.completions : client.completions;
      for await (const chunk of await resource.create({ ...body, stream: true })) take(result, chunk);
    }
  } catch (error) {
    result.error = `${error.constructor.name}: ${error.message}`;
  }
  return result;
});

// The library's own accumulation, which throws where a stream does not follow the protocol.
async function readWithHelper(client, body, result) {
  const stream = client.chat.completions.stream(body);
  stream.on("chunk", (chunk) => take(result, chunk));
  const final = await stream.finalChatCompletion();
  for (const choice of final.choices) {
    result.texts[choice.index] = choice.message.content ?? "";
    result.finish[choice.index] = choice.finish_reason;
  }
}

function take(result, chunk) {
  result.chunks += 1;
  if (chunk.usage) result.usage = chunk.usage;
  if (chunk.truthlens) result.truthlens = chunk.truthlens;
  for (const choice of chunk.choices) {
    const delta = choice.delta ?? { content: choice.text };
    result.texts[choice.index] = (result.texts[choice.index] ?? "") + (delta.content ?? "");
    result.reasoning += delta.reasoning_content ?? "";
    for (const call of delta.tool_calls ?? []) result.tools += call.function?.arguments ?? "";
    if (choice.finish_reason) result.finish[choice.index] = choice.finish_reason;
  }
}
