// openai for Node: one operation, asked for and answered as JSON.
import OpenAI from "openai";
import { answer, CITY, TOOL, user, MAX_TOKENS } from "./shared.mjs";

await answer(async ({ url, model, text, operation }) => {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "any-key", maxRetries: 0 });
  const create = (more) =>
    client.chat.completions.create({ model, messages: user(text), temperature: 0, ...more });
  switch (operation) {
    case "ask":
      return (await create({ max_tokens: MAX_TOKENS })).choices[0].message.content;
    case "stream": {
      const pieces = [];
      const stream = client.chat.completions.stream({
        model, messages: user(text), temperature: 0, max_tokens: MAX_TOKENS,
      });
      stream.on("content", (piece) => pieces.push(piece));
      await stream.done();
      return pieces;
    }
    case "call_tool": {
      const choice = { type: "function", function: { name: "weather" } };
      const first = (await create({ tools: [TOOL], tool_choice: choice })).choices[0].message;
      const made = first.tool_calls[0];
      const result = { role: "tool", tool_call_id: made.id, content: "21" };
      const second = await create({
        messages: [...user(text), first, result], max_tokens: MAX_TOKENS,
      });
      const call = [made.function.name, JSON.parse(made.function.arguments)];
      return [call, second.choices[0].message.content];
    }
    case "structured": {
      const format = { name: "city", strict: true, schema: CITY };
      const made = await create({ response_format: { type: "json_schema", json_schema: format } });
      return JSON.parse(made.choices[0].message.content);
    }
    case "leave": {
      for await (const chunk of await create({ stream: true, max_tokens: 1000 })) {
        const piece = chunk.choices[0]?.delta?.content;
        if (piece) return piece; // leaving the loop aborts the request
      }
    }
  }
}, (error) => (error instanceof OpenAI.APIError ? [error.status, error.message] : null));
