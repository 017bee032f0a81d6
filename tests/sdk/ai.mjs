// Reads streams with the ai package: node ai.mjs BASE_URL, one job (JSON) a line on stdin, one result a line.
// It asks in the package's own words, so that its requests are the ones that applications send; it knows one choice only.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";
import { answerJobs, emptyResult } from "./jobs.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const baseURL = process.argv[2];

await answerJobs(async ({ api, body, headers, includeUsage }) => {
  const provider = createOpenAICompatible({ name: "test", baseURL, apiKey: "test-key", headers, includeUsage });
  const model = api === "chat" ? provider.chatModel(body.model) : provider.completionModel(body.model);
  const prompt = api === "chat" ? { messages: body.messages } : { prompt: body.prompt };
  const result = emptyResult();
  const { fullStream } = streamText({ model, ...prompt, maxRetries: 0, includeRawChunks: true, onError: () => {} });
  for await (const part of fullStream) take(result, part);
  return result;
});

function take(result, part) {
  switch (part.type) {
    case "raw":
      result.chunks += 1;
      if (part.rawValue?.truthlens) result.truthlens = part.rawValue.truthlens;
      break;
    case "text-delta":
      result.texts[0] = (result.texts[0] ?? "") + part.text;
      break;
    case "reasoning-delta":
      result.reasoning += part.text;
      break;
    case "tool-call":
      result.tools += JSON.stringify(part.input);
      break;
    case "finish-step":
      result.finish[0] = part.rawFinishReason ?? part.finishReason;
      result.usage = part.usage?.raw ?? null;
      break;
    case "error":
      result.error = `${part.error?.name ?? "Error"}: ${part.error?.message ?? part.error}`;
      break;
  }
}
