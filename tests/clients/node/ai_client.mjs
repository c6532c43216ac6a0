// The Vercel AI SDK with an OpenAI-compatible provider: one operation, asked for and answered as JSON.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateObject, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { answer, CITY, TOOL, MAX_TOKENS } from "./shared.mjs";

await answer(async ({ url, model, text, operation }) => {
  const provider = createOpenAICompatible({
    name: "strata", baseURL: `${url}/v1`, apiKey: "any-key",
    includeUsage: true, supportsStructuredOutputs: true,
  });
  const asked = { model: provider(model), prompt: text, temperature: 0, maxRetries: 0 };
  switch (operation) {
    case "ask":
      return (await generateText({ ...asked, maxOutputTokens: MAX_TOKENS })).text;
    case "stream": {
      const pieces = [];
      for await (const piece of streamText({ ...asked, maxOutputTokens: MAX_TOKENS }).textStream) {
        pieces.push(piece);
      }
      return pieces;
    }
    case "call_tool": {
      const calls = [];
      const weather = tool({
        description: TOOL.function.description,
        inputSchema: jsonSchema(TOOL.function.parameters),
        execute: async (input) => {
          calls.push(["weather", input]);
          return "21";
        },
      });
      const made = await generateText({
        ...asked, tools: { weather }, stopWhen: stepCountIs(2), maxOutputTokens: 3 * MAX_TOKENS,
        prepareStep: ({ stepNumber }) => ({
          toolChoice: stepNumber === 0 ? { type: "tool", toolName: "weather" } : "none",
        }),
      });
      return [calls[0], made.text];
    }
    case "structured":
      return (await generateObject({ ...asked, schema: jsonSchema(CITY) })).object;
    case "leave": {
      const abort = new AbortController();
      const stream = streamText({ ...asked, maxOutputTokens: 1000, abortSignal: abort.signal });
      for await (const piece of stream.textStream) {
        abort.abort();
        return piece;
      }
    }
  }
}, (error) => (APICallError.isInstance(error) ? [error.statusCode, error.message] : null));
