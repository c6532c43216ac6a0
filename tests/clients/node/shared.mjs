// What both Node clients ask for, and how a result leaves the process.
export const MAX_TOKENS = 40;
export const CITY = {
  type: "object",
  properties: {
    city: { type: "string", maxLength: 12 },
    population: { type: "integer", minimum: 0, maximum: 99 },
  },
  required: ["city", "population"],
  additionalProperties: false,
};
export const TOOL = {
  type: "function",
  function: {
    name: "weather",
    description: "Tell the weather.",
    parameters: {
      type: "object",
      properties: { city: { type: "string", maxLength: 12 } },
      required: ["city"],
      additionalProperties: false,
    },
  },
};
export const user = (content) => [{ role: "user", content }];

export async function answer(run, statusOf) {
  const job = JSON.parse(process.argv[2]);
  let result;
  try {
    result = { value: await run(job) };
  } catch (error) {
    const status = statusOf(error);
    if (status === null) throw error;
    result = { error: status };
  }
  process.stdout.write(JSON.stringify(result), () => process.exit(0));
}
